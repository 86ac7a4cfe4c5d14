// One engine instance: a queue, a KV pool, and the lanes that work on them.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/serving/lane.h"
#include "engine/serving/serving_rows.h"

namespace engine {

class Replica {
 public:
  struct Setup {
    const ServingSettings* settings = nullptr;
    StepTable* table = nullptr;
    ServingStats* stats = nullptr;
    std::int32_t number = 0;
    std::int64_t lanes = 1;  // pipeline stages, each with a batch in flight
    std::int64_t kv_blocks = 1;
    std::int64_t longest = 1;  // tokens of the longest sequence the model is made for
    std::int64_t window = 0;
    double ttft_limit = 0;                // for ordering by slack
    double seconds_per_prompt_token = 0;  // likewise
    bool audit = false;
  };
  void reset(const Setup& setup);

  // When one of its lanes has something to do.
  double next_event() const { return next_event_; }
  // That is the end of work; otherwise only the time to plan.
  bool working() const { return lanes_[next_lane_].working(); }
  void advance(double next_event);
  // False where the request could never fit; then it is not taken.
  bool enqueue(const Request& request);
  // Long stretches are cut at the first step boundary from `time` on.
  void split(double time);
  // The pool is what it is at `time`, inside stretches, too.
  void settle(double time);

  std::int64_t outstanding() const { return state_.outstanding; }
  std::int64_t outstanding_tokens() const { return state_.outstanding_tokens; }
  std::int64_t cached_tokens(const Request& request) const {
    return state_.pool.match(request.prefix, request.prompt - 1).tokens;
  }
  std::int64_t waiting() const { return state_.waiting.size(); }
  const KvPool& pool() const { return state_.pool; }
  // Clients whose answers came with the last `advance`, at that time.
  std::vector<std::int64_t>& answered() { return state_.answered; }
  // Of all lanes; work that is not done yet counts neither as idle nor as busy.
  double idle_seconds(double until) const;
  TimelineRow row_at(double time, double& tokens_before) const;

 private:
  void find_next();
  double order_of(const Request& request);

  ReplicaState state_;
  std::vector<Lane> lanes_;
  double next_event_ = kNever;
  std::size_t next_lane_ = 0;
  double ttft_limit_ = 0;
  double seconds_per_prompt_token_ = 0;
};

}  // namespace engine
