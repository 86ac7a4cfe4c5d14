// The way of a request through the pools of a deployment: which pool reads its prompt, which one writes
// its answer, and how KV gets from one to the other.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/deployment_role.h"
#include "engine/serving/adapter_cache.h"
#include "engine/serving/serving_settings.h"
#include "engine/step/clock_levels.h"
#include "engine/step/draft_step.h"
#include "engine/step/pace.h"
#include "engine/step/step_time.h"

namespace engine {

// KV caches of prefixes below the device's memory, as a replica sees them.
struct TierSetup {
  std::int64_t blocks = 0;       // 0: there is no such tier
  double seconds_per_token = 0;  // on the way up
  double latency = 0;
};

// Equal replicas behind one router. Everything referred to outlives the run.
struct PoolSetup {
  const ServingSettings& settings;
  const StepContext& context;
  std::int64_t kv_blocks = 1;  // of a replica
  std::int64_t replicas = 1;
  std::int64_t unit = 1;  // replicas that are only on together
  TierSetup host, disk;
  AdapterCache::Setup adapters = {.slots = 0};  // no slots: all that are asked for are there
  std::int64_t longest = 1;                     // tokens of the longest sequence
  Pace pace = {};
  const DraftStep* draft = nullptr;  // who proposes tokens that the pace counts on; null: nobody
  DeploymentRole role = DeploymentRole::main;
  ClockChoice clock = {};  // of steps that only decode
};

// KV on its way into a pool. A replica sends or receives with all its adapters at once; sequences that
// it carries at the same time share them (engine/serving/transfers.h).
struct Carry {
  // Of a token's KV over the adapters of a replica that sends, and of one that receives.
  double sent_per_token = 0, received_per_token = 0;
  // The same over the fabric between the two pools, which all sequences share; 0: it never limits them.
  double fabric_per_token = 0;
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
};

}  // namespace engine
