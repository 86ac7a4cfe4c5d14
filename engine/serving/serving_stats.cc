#include "engine/serving/serving_stats.h"

#include <algorithm>
#include <limits>

namespace engine {

void ServingStats::reset(const Setup& setup) {
  setup_ = setup;
  ttft_limit_ = request_limit(setup.slo.ttft).value;
  tpot_limit_ = std::min(request_limit(setup.slo.tpot), request_limit(setup.slo.itl)).value;
  e2e_limit_ = request_limit(setup.slo.e2e).value;
  measuring_ = true;
  gaps_.clear();
  gap_sum_ = 0;
  sums_ = Summary{};
  inside_ = inside_since_ = 0;
  kv_peak_ = 0;
  first_arrival_ = -1;
  last_arrival_ = arrivals_ = 0;
  fit_t_ = fit_q_ = fit_tt_ = fit_tq_ = 0;
  for (Samples* samples : {&ttft, &tpot, &e2e, &queue}) samples->clear();
}

void ServingStats::refused(const Request& request, std::int32_t replica) {
  sums_.refused += 1;
  inside_ -= 1;
  sums_.tokens_refused += double(request.prompt + request.output);
  sums_.last_finish = std::max(sums_.last_finish, request.arrival);
  if (setup_.requests != nullptr) {
    constexpr Seconds never{std::numeric_limits<double>::quiet_NaN()};
    setup_.requests->push_back({.number = request.number,
                                .replica = replica,
                                .session = request.session,
                                .priority = request.priority,
                                .tenant = request.tenant,
                                .end = RequestEnd::refused,
                                .measured = measured(request.arrival),
                                .arrival = Seconds{request.arrival},
                                .scheduled = never,
                                .first_token = never,
                                .finish = never,
                                .prompt_tokens = request.prompt});
  }
}

void ServingStats::preempted(std::int64_t lost_tokens) {
  sums_.preemptions += 1;
  sums_.lost_tokens += double(lost_tokens);
}

void ServingStats::finished(const Sequence& sequence, double time, std::int32_t replica) {
  sums_.in_system_seconds += inside_ * (time - inside_since_);
  inside_since_ = time;
  inside_ -= 1;
  sums_.finished += 1;
  sums_.tokens_in += double(sequence.prompt);
  sums_.tokens_out += double(sequence.output);
  sums_.last_finish = std::max(sums_.last_finish, time);
  if (setup_.requests != nullptr) {
    setup_.requests->push_back({.number = sequence.number,
                                .replica = replica,
                                .session = sequence.session,
                                .priority = sequence.priority,
                                .tenant = sequence.tenant,
                                .measured = measured(sequence.arrival),
                                .arrival = Seconds{sequence.arrival},
                                .scheduled = Seconds{sequence.scheduled},
                                .first_token = Seconds{sequence.first_token},
                                .finish = Seconds{time},
                                .prompt_tokens = sequence.prompt,
                                .output_tokens = sequence.output,
                                .cached_tokens = sequence.cached,
                                .preemptions = sequence.preemptions});
  }
  if (!measured(sequence.arrival)) return;

  const double first = sequence.first_token - sequence.arrival + setup_.request_latency;
  const double whole = time - sequence.arrival + setup_.request_latency;
  const double waited = sequence.scheduled - sequence.arrival;
  ttft.add(first);
  e2e.add(whole);
  queue.add(waited);
  double per_token = 0;
  if (sequence.output > 1) {
    per_token = (time - sequence.first_token) / double(sequence.output - 1);
    tpot.add(per_token);
  }
  if (first <= ttft_limit_ && per_token <= tpot_limit_ && whole <= e2e_limit_) sums_.good += 1;
  if (sums_.measured == 0) sums_.begin = sequence.arrival;
  sums_.begin = std::min(sums_.begin, sequence.arrival);
  sums_.end = std::max(sums_.end, time);
  sums_.measured += 1;
  sums_.prompt_tokens += double(sequence.prompt);
  sums_.output_tokens += double(sequence.output);
  const double t = sequence.arrival - first_arrival_;
  fit_t_ += t;
  fit_q_ += waited;
  fit_tt_ += t * t;
  fit_tq_ += t * waited;
}

void ServingStats::add_gaps(const Stretch& stretch, std::int64_t first, std::int64_t count,
                            double seconds) {
  if (!measuring_) return;
  gap_sum_ += seconds * stretch.sequences;
  // Step times rise (or fall) evenly along a stretch: find where they leave a bucket, not each one.
  const double end = double(count);
  for (double i = double(first); i < end;) {
    const double value = stretch.step(i);
    double next = end;
    if (!gaps_.same_bucket(stretch.step(end - 1), value)) {
      double low = i, high = end - 1;  // the bucket holds at low, not at high
      while (high - low > 1) {
        const double middle = low + double(std::int64_t((high - low) / 2));
        (gaps_.same_bucket(stretch.step(middle), value) ? low : high) = middle;
      }
      next = high;
    }
    gaps_.add(value, (next - i) * stretch.sequences);
    i = next;
  }
}

ServingStats::Summary ServingStats::summary() const {
  Summary summary = sums_;
  summary.kv_peak = double(kv_peak_);
  const double n = sums_.measured;
  const double spread = n * fit_tt_ - fit_t_ * fit_t_;
  if (spread > 0) summary.queue_growth = (n * fit_tq_ - fit_t_ * fit_q_) / spread;
  return summary;
}

}  // namespace engine
