// The way of a request through the pools of a deployment: which pool reads its prompt, which one writes
// its answer, and how KV gets from one to the other.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "engine/serving/serving_settings.h"
#include "engine/step/draft_step.h"
#include "engine/step/pace.h"
#include "engine/step/step_time.h"

namespace engine {

// Equal replicas behind one router. Everything referred to outlives the run.
struct PoolSetup {
  const ServingSettings& settings;
  const StepContext& context;
  std::int64_t kv_blocks = 1;  // of a replica
  std::int64_t replicas = 1;
  std::int64_t longest = 1;  // tokens of the longest sequence
  Pace pace = {};
  const DraftStep* draft = nullptr;  // who proposes tokens that the pace counts on; null: nobody
};

// KV on its way into a pool. Each sequence has the link to itself: shares of a link that several use
// would be settled here.
struct Carry {
  Bytes per_token{0};
  BytesPerSecond bandwidth{std::numeric_limits<double>::infinity()};
  Seconds latency{0};

  double seconds(std::int64_t tokens) const {
    return (latency + per_token * double(tokens) / bandwidth).value;
  }
};

// A stage that only reads makes the first token and hands the request over to the next one, which only
// writes. The first stage reads and the last one writes.
struct Stage {
  std::uint8_t pool = 0;
  bool reads = true, writes = true;
  Carry carry = {};  // of KV from the stage before
};

using Journey = std::vector<Stage>;

// Sequences whose KV is under way, the first to be there first.
class Transfers {
 public:
  struct Transfer {
    double end = 0;
    std::int64_t order = 0;   // of two at one time, the one that began first
    std::size_t replica = 0;  // where it goes,
    std::int32_t slot = -1;   // and the sequence there
    bool operator>(const Transfer& other) const {
      return end != other.end ? end > other.end : order > other.order;
    }
  };
  void reset();
  double next() const;
  void start(double end, std::size_t replica, std::int32_t slot);
  Transfer take();

 private:
  std::vector<Transfer> heap_;
  std::int64_t started_ = 0;
};

}  // namespace engine
