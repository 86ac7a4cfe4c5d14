// What a serving simulation is asked for, gathered while it runs.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/percentiles.h"
#include "engine/base/units.h"
#include "engine/serving/sequence.h"
#include "engine/serving/serving_rows.h"
#include "engine/serving/slo.h"
#include "engine/step/step_table.h"

namespace engine {

// Boundaries closer than this are one moment, whichever way they were summed up. Seconds.
constexpr double kSameMoment = 1e-9;

// Steps of a decode stretch on one line: contexts grow by `sequences` a step, the part inside windows
// by `growing`.
struct Stretch {
  DecodeLine line;
  double context = 0;  // of the first step
  double window = 0;
  double sequences = 0;
  double growing = 0;

  double step(double i) const { return line.step(context + i * sequences, window + i * growing); }
  double context_sum(double n) const { return n * context + sequences * n * (n - 1) / 2; }
  double window_sum(double n) const { return n * window + growing * n * (n - 1) / 2; }
};

class ServingStats {
 public:
  struct Setup {
    Slo slo;
    double window_begin = 0;                      // arrivals from here ...
    double window_end = 0;                        // ... to here are measured
    double request_latency = 0;                   // clients see answers this much later
    std::vector<RequestRow>* requests = nullptr;  // where rows are asked for
  };
  void reset(const Setup& setup);

  // What is added next belongs to a step that began at this time: it counts if that lies in the
  // measured window.
  void step_began(double time) {
    measuring_ =
        time >= setup_.window_begin - kSameMoment && time < setup_.window_end - kSameMoment;
  }

  void arrived(double time) {
    if (first_arrival_ < 0) first_arrival_ = time;
    last_arrival_ = time;
    arrivals_ += 1;
    sums_.in_system_seconds += inside_ * (time - inside_since_);
    inside_since_ = time;
    inside_ += 1;
  }
  void refused(const Request& request, std::int32_t replica);
  void looked_up(std::int64_t tokens, std::int64_t found) {
    sums_.looked_up += double(tokens);
    sums_.found += double(found);
  }
  void preempted(std::int64_t lost_tokens);
  // `waste` and `held`: token-steps of room that held nothing, and in all, over its decoding.
  void finished(const Sequence& sequence, double time, std::int32_t replica);
  void decoded_with(double waste, double held) {
    sums_.waste += waste;
    sums_.held += held;
  }

  // One gap between two tokens, `weight` times.
  void add_gap(double seconds, double weight) {
    if (!measuring_) return;
    gaps_.add(seconds, weight);
    gap_sum_ += seconds * weight;
  }
  // The gaps of steps [first, count) of a stretch, `seconds` in all, one for each sequence.
  void add_gaps(const Stretch& stretch, std::int64_t first, std::int64_t count, double seconds);
  // Steps that took `seconds` in all with `kv_token_seconds` of KV held.
  void ran(double steps, double seconds, double sequences, double kv_token_seconds) {
    sums_.busy += seconds;
    sums_.steps += steps;
    sums_.sequence_steps += steps * sequences;
    sums_.kv_token_seconds += kv_token_seconds;
  }
  void kv_peak(std::int64_t blocks) { kv_peak_ = std::max(kv_peak_, blocks); }

  // Everything the metrics are made of.
  struct Summary {
    double finished = 0, measured = 0, refused = 0, good = 0;
    double prompt_tokens = 0, output_tokens = 0;               // of measured requests
    double tokens_in = 0, tokens_out = 0, tokens_refused = 0;  // of all
    double begin = 0, end = 0;                                 // of the measured part
    double last_finish = 0;
    double busy = 0, steps = 0, sequence_steps = 0, kv_token_seconds = 0;
    double in_system_seconds = 0;  // integral of requests inside
    double preemptions = 0, lost_tokens = 0;
    double looked_up = 0, found = 0;
    double waste = 0, held = 0;
    double kv_peak = 0;
    double queue_growth = 0;  // seconds of queueing more for each second of arrivals
  };
  Summary summary() const;
  Samples ttft, tpot, e2e, queue;
  double gap_mean() const { return gaps_.count() > 0 ? gap_sum_ / gaps_.count() : 0; }
  double gap_percentile(double share) const { return gaps_.percentile(share); }
  // Arrivals a second, from the first to the last one.
  double offered_rate() const {
    const double span = last_arrival_ - first_arrival_;
    return span > 0 ? (arrivals_ - 1) / span : 0;
  }
  double gap_count() const { return gaps_.count(); }

 private:
  // Requests count by when they arrive.
  bool measured(double arrival) const {
    return arrival >= setup_.window_begin && arrival < setup_.window_end;
  }

  Setup setup_;
  double ttft_limit_ = 0, tpot_limit_ = 0, e2e_limit_ = 0;
  bool measuring_ = true;
  LogHistogram gaps_{8};
  double gap_sum_ = 0;
  Summary sums_;
  double inside_ = 0, inside_since_ = 0;
  std::int64_t kv_peak_ = 0;
  double first_arrival_ = -1, last_arrival_ = 0, arrivals_ = 0;
  // Least squares of queue time over arrival time, about the first arrival.
  double fit_t_ = 0, fit_q_ = 0, fit_tt_ = 0, fit_tq_ = 0;
};

}  // namespace engine
