// The way of a request through the pools of a deployment: which pool reads its prompt, which one writes
// its answer, and how KV gets from one to the other.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/deployment_role.h"
#include "engine/memory/kv_tier.h"
#include "engine/serving/replica/adapter_cache.h"
#include "engine/serving/sequences/draft_investment.h"
#include "engine/serving/sequences/sequence_paces.h"
#include "engine/serving/sequences/turns.h"
#include "engine/serving/settings/serving_settings.h"
#include "engine/step/clock_levels.h"
#include "engine/step/draft_lengths.h"
#include "engine/step/draft_step.h"
#include "engine/step/pace.h"
#include "engine/step/step_time.h"

namespace engine {

// KV caches of prefixes below the device's memory, as a replica sees them.
struct TierSetup {
  std::int64_t blocks = 0;       // 0: there is no such tier
  double seconds_per_token = 0;  // on the way up, of which one load follows another
  double starts_per_token = 0;   // seconds besides, of tokens that come block by block
  double latency = 0;
  double seconds_per_token_alone = 0;  // the same of one load, where it cannot use all of the way
};

// In the order in which they are asked. All but the store are a replica's own.
enum class TierName : std::uint8_t { peer, host, disk, store };
using TierSetups = std::array<TierSetup, kTiers>;

// Equal replicas behind one router. Everything referred to outlives the run.
struct PoolSetup {
  const ServingSettings& settings;
  const StepContext& context;
  std::int64_t kv_blocks = 1;  // of a replica
  std::int64_t replicas = 1;
  std::int64_t unit = 1;  // replicas that are only on together
  TierSetups tiers = {};
  AdapterCache::Setup adapters = {.slots = 0};  // no slots: all that are asked for are there
  std::int64_t longest = 1;                     // tokens of the longest sequence
  Pace pace = {};
  std::int64_t state = 0;   // what a prefix keeps whatever its length, as so many tokens
  std::int64_t states = 0;  // and a sequence, which has one for every token that may not hold
  double expected = 0;  // tokens that a step makes of a sequence on average; 0: as the pace has it
  const DraftStep* draft = nullptr;  // who proposes tokens that the pace counts on; null: nobody
  DeploymentRole role = DeploymentRole::main;
  ClockChoice clock = {};   // of steps that only decode
  std::int64_t window = 0;  // tokens that windowed layers of the model, or of its draft, attend to
  std::span<const DraftLength> lengths =
      {};  // of proposals, where steps pick one; none: they do not
  // Where sequences make different numbers of tokens in a step; null: all make as many.
  const SequencePaces* own_paces = nullptr;
  // The draft reads a prompt only when tokens are first proposed for it; null: with the main model.
  const LateReading* late_reading = nullptr;

  // Where replicas encode images themselves: of those of 1, 2, ... requests together; none: they do not.
  std::span<const double> encode_seconds = {};
  double encode_slower = 1;  // beside a neighbour that takes so many times as long
  // Steps take so many times as long as predicted, besides the scale of the run: beside a neighbour, or where they share
  // adapters with transfers.
  double slower = 1;
  Turns turns = {};  // of the devices, where models take turns

  double made_in_a_step() const {
    return expected > 0 ? expected : double(pace.tokens) / double(pace.steps);
  }
};

// KV on its way into a pool. A replica sends or receives with all its adapters at once; sequences that
// it carries at the same time share them (engine/serving/fleet/transfers.h).
struct Carry {
  // What takes so many seconds over the adapters of a replica that sends, and of one that receives, and over the fabric
  // between the two pools, which all sequences share (0: it never limits them).
  struct Load {
    double sent = 0, received = 0, fabric = 0;
  };
  Load token;  // the KV of one token
  Load state;  // what a sequence has whatever its length: the state of scans
  Load of(double tokens, double states = 1) const {
    return {tokens * token.sent + states * state.sent,
            tokens * token.received + states * state.received,
            tokens * token.fabric + states * state.fabric};
  }
  double latency = 0;
  // The share that has to wait until the prompt has been read: all, or the last layer.
  double last_share = 1;
  // The first token is told when the KV is there, not when it was made.
  bool tells_first_token = false;
};

// A stage that only reads makes the first token and hands the request over to the next one, which only
// writes. The first stage reads and the last one writes.
struct Stage {
  std::uint8_t pool = 0;
  bool reads = true, writes = true;
  Carry carry = {};  // of KV from the stage before
};

struct Journey {
  std::vector<Stage> stages = {Stage{}};  // by default the first pool reads and writes
  // A prompt with no more tokens than this that the last stage has not cached is read there.
  std::int64_t short_prompt = 0;
  // The last stage sets blocks aside for a request before its prompt is read, and gets the KV as soon as it was.
  bool pushes = false;
};

}  // namespace engine
