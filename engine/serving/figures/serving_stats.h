// What a serving simulation is asked for, gathered while it runs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "engine/base/percentiles.h"
#include "engine/base/units.h"
#include "engine/serving/figures/group_sums.h"
#include "engine/serving/figures/measurement.h"
#include "engine/serving/figures/serving_rows.h"
#include "engine/serving/sequences/sequence.h"
#include "engine/serving/sequences/stretch.h"
#include "engine/serving/settings/slo.h"

namespace engine {

// A request that left the system: all that figures of the measured part are made of.
struct ServedRequest {
  double arrival = 0;
  double scheduled = 0;
  double first_token = 0;
  double finish = 0;
  // Its KV, from the replica that read it; -1: it was read where it was written.
  double received = -1;
  double read = 0;  // when its prompt had been read
  std::int32_t prompt = 0;
  std::int32_t output = 0;  // 0: it was refused; -1: it was shed, or failed
  std::int32_t others = 0;  // tokens of the answers beside the one that was the last to be done
  std::int32_t tenant = 0;
  std::int32_t history = 0,
               cached = 0;  // prompt tokens of its session before it; found in the cache
  RequestClass service_class = RequestClass::normal;
};
constexpr std::int32_t kGivenUp = -1;

// When an answer has left the engine, and when its client has all of it: tokens may queue in between (lane/front_end.h).
struct AnswerTimes {
  double made = 0;
  double told = 0;
};

// What happened in the measured part.
struct MeasuredSums {
  double requests = 0;                       // that arrived in it and were answered
  double good_requests = 0;                  // of these, within the limits of the SLO
  double prompts = 0, outputs = 0;           // their tokens
  double arrived = 0;                        // in it
  double given_up = 0;                       // of these, refused, shed or failed
  double carried = 0, transfer_seconds = 0;  // those whose KV was carried, and how long that took
  // Seconds of those that were answered: until their first step, and from then on.
  double queued = 0, in_service = 0;
  double finished = 0, good = 0;  // answers that came in it
  double prompt_tokens = 0,
         output_tokens = 0;  // read (cached ones, too, recomputed ones once), made

  // Requests of an open load cannot be answered faster than they come, in the long run. A part that begins with far more inside than it
  // ends with, as after a failure or a burst, has worked off a backlog: then the requests that came in it are counted, with their
  // answers. `inside` is the mean number inside; by chance alone two counts differ by the square root of twice as many.
  void leave_out_worked_off(double inside);
};

// What the replicas of a pool did in the whole run.
struct PoolSums {
  double busy = 0, steps = 0, sequence_steps = 0, kv_token_seconds = 0;
  double empty_seconds = 0;  // of replicas in steps of others, whose experts they share; not busy
  double preemptions = 0, lost_tokens = 0;
  // Tokens of prompts that were let in for the first time, and those of them that were in the cache
  double looked_up = 0, found = 0;
  double waste = 0, held = 0;  // token-steps of room that held nothing, and in all, while decoding
  double wasted_tokens = 0;    // made past the end of an answer
  // Where steps pick how much they propose, or sequences draw how much of it holds: tokens proposed and made, of
  // sequences in their steps.
  double proposed_tokens = 0, verified_tokens = 0, verifications = 0;
  // The same by class, where classes have acceptances of their own.
  struct Verified {
    double steps = 0, tokens = 0;
    void verified(std::int64_t made) {
      steps += 1;
      tokens += double(made);
    }
  };
  std::array<Verified, kRequestClasses> by_class{};
  double encoded = 0;  // requests whose images were encoded where their prompts are read,
  std::vector<double> encoded_together;          // and how often those of 1, 2, ... of them at once
  double carried_tokens = 0, carry_seconds = 0;  // KV that came from the pool before,
  double carried_states = 0;                     // and what goes with a sequence as a whole
  double reservations = 0, reserve_wait = 0;     // blocks set aside before a prompt is read
  std::array<double, kTiers> tier_tokens{};      // of those found, tokens from lower tiers
  double loads = 0, load_seconds = 0;            // begun from there, and how long they take
  double kv_peak = 0;                            // blocks of one replica
  double adapter_steps = 0;                      // different adapters, summed over steps
  double adapters_asked = 0, adapters_there = 0;  // by requests, and those that were on the device
  double adapter_wait = 0;                        // of the others, until they were

  void look_up(std::int64_t tokens, std::int64_t in_cache) {
    looked_up += double(tokens);
    found += double(in_cache);
  }
  void preempted(std::int64_t tokens) {
    preemptions += 1;
    lost_tokens += double(tokens);
  }
  void found_again(std::int64_t tokens) { lost_tokens -= double(tokens); }
  void decoded_with(double more_waste, double more_held) {
    waste += more_waste;
    held += more_held;
  }
  // Steps that took `seconds` in all.
  void ran(double count, double seconds, double sequences) {
    busy += seconds;
    steps += count;
    sequence_steps += count * sequences;
  }
  double stepping() const { return busy + empty_seconds; }
  void loads_for(double seconds) {
    loads += 1;
    load_seconds += seconds;
  }
  // What was brought and is still there when it is looked up. What others have left there meanwhile did not come from below.
  void found_of_loads(std::int64_t in_cache, const Sequence::Brought& brought) {
    std::int64_t left = std::max<std::int64_t>(0, in_cache - brought.before);
    for (std::size_t i = 0; i < kTiers; ++i) {
      const std::int64_t used = std::min<std::int64_t>(left, brought.tokens[i]);
      tier_tokens[i] += double(used);
      left -= used;
    }
  }
  void peak(std::int64_t blocks) { kv_peak = std::max(kv_peak, double(blocks)); }
  void add(const PoolSums& other);
};

class ServingStats {
 public:
  struct Setup {
    Slo slo;
    const Load* load = nullptr;
    std::int64_t tenants = 1;
    RunPlan plan;
    double request_latency = 0;  // clients see answers this much later
    std::size_t pools = 1;
    std::vector<RequestRow>* requests = nullptr;  // where rows are asked for
    bool gaps = true;                             // those between tokens are counted,
    bool whole_times = true;  // and times in the queue and to the end of an answer
  };
  void reset(const Setup& setup);

  // What is added next belongs to a step that began at this time.
  void step_began(double time) {
    segment_ = segments_ - 1;
    if (time >= last_edge_) return;
    while (segment_ > 0 && time < edges_[segment_ - 1] - kSameMoment) --segment_;
  }

  void arrived(const Request& request) {
    sums_.in_system_seconds += inside_ * (request.arrival - inside_since_);
    inside_since_ = request.arrival;
    inside_ += 1;
    if (watch_.arrived(request.arrival, request.opens)) add_edge(request.arrival);
  }
  // A request is refused or shed: when it arrives, or before its prompt is read.
  void turned_away(const Request& request, RequestEnd why, std::int32_t replica, double time);
  // A request comes while no replica takes any.
  void held() { sums_.held += 1; }
  // What failures of replicas cost: KV tokens that were lost, requests that begin again, requests that are given up.
  void lost(std::int64_t tokens) { sums_.failure_lost_tokens += double(tokens); }
  void retried() { sums_.retried += 1; }
  void failed(const Sequence& sequence, double time, std::int32_t replica);
  void finished(const Sequence& sequence, const AnswerTimes& times, std::int32_t replica);

  // Whether gaps between tokens are asked for. Otherwise none are added.
  bool counts_gaps() const { return setup_.gaps; }
  // One gap between two tokens, `weight` times.
  void add_gap(double seconds, double weight) {
    Gaps& gaps = gaps_[segment_];
    gaps.lengths.add(seconds, weight);
    gaps.sum += seconds * weight;
  }
  // The gaps of steps [first, count) of a stretch, `seconds` in all, one for each sequence.
  void add_gaps(const Stretch& stretch, std::int64_t first, std::int64_t count, double seconds);
  PoolSums& pool(std::size_t index) { return pools_[index]; }
  const PoolSums& pool(std::size_t index) const { return pools_[index]; }

  // A measured part may begin or end here: steps from here on are told from those before.
  void add_edge(double time);
  // Whether there was such a moment since this was asked last, and when.
  bool take_edge(double& time) {
    if (!new_edge_) return false;
    time = edges_.back();
    new_edge_ = false;
    return true;
  }
  // The run goes on as it is: no edge was added since that was asked, and no length of it is over.
  bool nothing_to_decide() const {
    return !new_edge_ && watch_.state() == RunWatch::State::running;
  }
  RunWatch& watch() { return watch_; }
  const RunWatch& watch() const { return watch_; }
  // The run is over: sums and samples of its measured part.
  void measure(double end);
  const MeasuredPart& part() const { return part_; }
  const MeasuredSums& measured() const { return measured_; }
  Samples ttft, tpot, e2e, queue;  // of the measured requests
  // Gaps between tokens that steps of a part ended.
  void look_at_gaps(const MeasuredPart& part);
  double gap_mean() const { return part_gaps_.sum / part_gaps_.lengths.count(); }
  double gap_percentile(double share) const { return part_gaps_.lengths.percentile(share); }
  double gap_count() const { return part_gaps_.lengths.count(); }

  // Everything about the whole run, over all pools.
  struct Summary : PoolSums {
    double finished = 0, refused = 0, shed = 0, failed = 0;
    double held = 0, retried = 0, failure_lost_tokens = 0;
    double tokens_in = 0, tokens_out = 0, tokens_refused = 0;
    double tokens_given_up = 0;  // of those that were shed or failed
    double last_finish = 0;
    double in_system_seconds = 0;  // integral of requests inside
  };
  Summary summary() const;
  // Requests that have come and not left.
  double inside() const { return inside_; }
  // Requests that left and are not summed up yet, in the order of leaving.
  const std::vector<ServedRequest>& served() const { return served_; }
  double request_latency() const { return setup_.request_latency; }
  // Limits on the first token of a request, by class.
  const std::array<double, kRequestClasses>& ttft_limits() const { return ttft_limit_; }
  GroupSums groups;  // of the measured requests
  // Latencies as clients see them.
  double ttft_of(const ServedRequest& request) const {
    return request.first_token - request.arrival + setup_.request_latency;
  }
  double e2e_of(const ServedRequest& request) const {
    return request.finish - request.arrival + setup_.request_latency;
  }
  static double tpot_of(const ServedRequest& request) {
    return request.output > 1 ? (request.finish - request.first_token) / double(request.output - 1)
                              : 0;
  }

 private:
  struct Gaps {
    LogHistogram<8> lengths;
    double sum = 0;
  };
  // Long runs are summed up piece by piece, so that memory does not follow their length. The later half stays, because who judges the run
  // looks at single requests.
  static constexpr std::size_t kMostServed = std::size_t{1} << 17;
  // A sequence is inside no longer.
  void leaves(double arrival, const AnswerTimes& times, bool closes);
  void keep(const ServedRequest& request) {
    served_.push_back(request);
    if (served_.size() >= kMostServed && setup_.plan.lengths <= 1)
      sum_up(watch_.part_so_far(), kMostServed / 2);
  }
  struct Latencies {
    double ttft, tpot, e2e;
  };
  bool is_good(const Latencies& latencies, RequestClass service_class) const {
    const auto i = std::size_t(service_class);
    return latencies.ttft <= ttft_limit_[i] && latencies.tpot <= tpot_limit_[i] &&
           latencies.e2e <= e2e_limit_[i];
  }
  void add_to_groups(const ServedRequest& request, bool good);
  void sum_up(MeasuredPart part, std::size_t count);  // the first ones that were served

  Setup setup_;
  RunWatch watch_;
  std::array<double, kRequestClasses> ttft_limit_{}, tpot_limit_{}, e2e_limit_{};
  std::vector<ServedRequest> served_;
  MeasuredPart part_;
  MeasuredSums measured_;
  // Gaps by the moments between which their steps began; the vector keeps its memory.
  std::vector<Gaps> gaps_;
  std::vector<double> edges_;
  std::size_t segments_ = 1, segment_ = 0;
  double last_edge_ = -kNever;  // steps that began then or later belong to the last of them
  Gaps part_gaps_;
  bool new_edge_ = false;
  Summary sums_;
  std::vector<PoolSums> pools_;
  double inside_ = 0, inside_since_ = 0;
};

}  // namespace engine
