// The way of a request through the pools of a deployment: which pool reads its prompt, which one writes
// its answer, and how KV gets from one to the other.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
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
#include "engine/workload/load_classes.h"

namespace engine {

// A tier below the device's memory that keeps the KV of prefixes, as a replica sees it.
struct TierSetup {
  std::int64_t blocks = 0;       // 0: there is no such tier
  double seconds_per_token = 0;  // on the way up, which takes one load after another
  double starts_per_token = 0;   // further seconds for tokens that come block by block
  double latency = 0;
  // On the way up for a single load, where it cannot use all of the way.
  double seconds_per_token_alone = 0;
};

// In the order in which they are asked. Each replica has tiers of its own, but all share the store.
enum class TierName : std::uint8_t { peer, host, disk, store };
using TierSetups = std::array<TierSetup, kTiers>;

// Equal replicas behind one router. Everything referred to outlives the run.
struct PoolSetup {
  const ServingSettings& settings;
  const StepContext& context;
  std::int64_t kv_blocks = 1;  // of one replica
  std::int64_t replicas = 1;
  std::int64_t unit = 1;  // replicas that can only be switched on and off together
  TierSetups tiers = {};
  AdapterCache::Setup adapters = {.slots = 0};  // no slots: every adapter is always loaded
  std::int64_t longest = 1;                     // tokens of the longest sequence
  Pace pace = {};
  // Models with scans keep a state of fixed size, counted here in tokens: of a cached prefix, and of a running sequence, which
  // has one state for every proposed token that may be refused.
  std::int64_t state = 0;
  std::int64_t states = 0;
  double expected = 0;  // tokens that a step makes of one sequence on average; 0: as the pace says
  // Proposes the tokens that the pace counts on; null: nothing does.
  const DraftStep* draft = nullptr;
  DeploymentRole role = DeploymentRole::main;
  ClockChoice clock = {};   // of steps that only decode
  std::int64_t window = 0;  // tokens that windowed layers of the model, or of its draft, attend to
  // Lengths of proposals among which steps pick one; empty: the length is fixed.
  std::span<const DraftLength> lengths = {};
  // For sequences that make different numbers of tokens in a step; null: all make as many.
  const SequencePaces* own_paces = nullptr;
  // For a draft that reads a prompt only when it first proposes tokens for it; null: it reads with the main model.
  const LateReading* late_reading = nullptr;

  // For replicas that encode images themselves: seconds for the images of 1, 2, ... requests together; empty: they do not.
  std::span<const double> encode_seconds = {};
  double encode_slower = 1;  // how many times longer that takes beside a neighbour
  // How many times longer steps take than predicted, besides the scale of the run, because of a neighbour, or because
  // collectives share adapters with transfers.
  double slower = 1;
  Turns turns = {};  // where two models take turns on the devices
  // Seconds of a replica that a request of each class takes, up to a factor: where classes have replicas of their own.
  std::array<double, kRequestClasses> class_seconds = {1, 1, 1};

  // Where preempted sequences leave their KV in the host's memory: the way back.
  struct WayBack {
    double seconds_per_token = 0;
    double latency = 0;
  };
  std::optional<WayBack> from_host = {};

  double made_in_a_step() const {
    return expected > 0 ? expected : double(pace.tokens) / double(pace.steps);
  }
};

// How KV gets into a pool. A replica sends or receives with all its adapters at once, and all sequences that it sends or receives
// at the same time share them (engine/serving/fleet/transfers.h).
struct Carry {
  // Seconds that something takes over the adapters of the replica that sends, over those of the one that receives, and over the
  // fabric between the two pools, which all sequences share (0: the fabric never limits them).
  struct Load {
    double sent = 0, received = 0, fabric = 0;
  };
  Load token;  // the KV of one token
  Load state;  // the state of scans, which is of one size whatever the sequence's length
  Load of(double tokens, double states = 1) const {
    return {tokens * token.sent + states * state.sent,
            tokens * token.received + states * state.received,
            tokens * token.fabric + states * state.fabric};
  }
  double latency = 0;
  // The share of the KV that can only leave when the prompt has been read: all of it, or the last layer's.
  double last_share = 1;
  // Clients get the first token when the KV has arrived, not when the token was made.
  bool tells_first_token = false;
  // That token is made anew here, from the prompt's last one, and told then; the one that reading made is dropped.
  bool remakes_first_token = false;
};

// One stage of a request's way. A stage that only reads makes the first token and hands the request over to the next stage, which
// only writes. The first stage reads and the last one writes.
struct Stage {
  std::uint8_t pool = 0;
  bool reads = true, writes = true;
  Carry carry = {};  // how KV comes from the stage before
};

struct Journey {
  std::vector<Stage> stages = {Stage{}};  // by default the first pool reads and writes
  // The last stage reads a prompt itself where at most so many of its tokens are not in its cache.
  std::int64_t short_prompt = 0;
  // Whether the last stage sets blocks aside before the prompt is read, so that the KV is sent as soon as it exists.
  bool pushes = false;
};

}  // namespace engine
