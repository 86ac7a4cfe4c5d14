#include "engine/serving/figures/serving_stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace engine {

void PoolSums::add(const PoolSums& other) {
  busy += other.busy;
  steps += other.steps;
  sequence_steps += other.sequence_steps;
  kv_token_seconds += other.kv_token_seconds;
  empty_seconds += other.empty_seconds;
  preemptions += other.preemptions;
  lost_tokens += other.lost_tokens;
  looked_up += other.looked_up;
  found += other.found;
  waste += other.waste;
  held += other.held;
  wasted_tokens += other.wasted_tokens;
  carried_tokens += other.carried_tokens;
  carried_states += other.carried_states;
  carry_seconds += other.carry_seconds;
  reservations += other.reservations;
  reserve_wait += other.reserve_wait;
  for (std::size_t i = 0; i < kTiers; ++i) tier_tokens[i] += other.tier_tokens[i];
  proposed_tokens += other.proposed_tokens;
  verified_tokens += other.verified_tokens;
  verifications += other.verifications;
  for (std::size_t i = 0; i < by_class.size(); ++i) {
    by_class[i].steps += other.by_class[i].steps;
    by_class[i].tokens += other.by_class[i].tokens;
  }
  encoded += other.encoded;
  if (encoded_together.size() < other.encoded_together.size()) {
    encoded_together.resize(other.encoded_together.size());
  }
  for (std::size_t i = 0; i < other.encoded_together.size(); ++i) {
    encoded_together[i] += other.encoded_together[i];
  }
  loads += other.loads;
  load_seconds += other.load_seconds;
  adapter_steps += other.adapter_steps;
  adapters_asked += other.adapters_asked;
  adapters_there += other.adapters_there;
  adapter_wait += other.adapter_wait;
  kv_peak = std::max(kv_peak, other.kv_peak);
}

void MeasuredSums::leave_out_worked_off(double inside) {
  const double chance = 2 * std::sqrt(2 * inside + 1);
  if (finished - requests <= chance) return;
  finished = requests;
  good = good_requests;
  prompt_tokens = prompts;
  output_tokens = outputs;
}

void ServingStats::reset(const Setup& setup) {
  setup_ = setup;
  watch_.reset(setup.plan);
  ttft_limit_.fill(request_limit(setup.slo.ttft).value);
  tpot_limit_.fill(std::min(request_limit(setup.slo.tpot), request_limit(setup.slo.itl)).value);
  e2e_limit_.fill(request_limit(setup.slo.e2e).value);
  groups.reset(*setup.load, setup.tenants);
  const auto promise = [this](RequestClass service_class, const LoadClass& stated) {
    const auto i = std::size_t(service_class);
    if (stated.ttft.value > 0) ttft_limit_[i] = stated.ttft.value;
    if (stated.tpot.value > 0) tpot_limit_[i] = stated.tpot.value;
    if (stated.e2e.value > 0) e2e_limit_[i] = stated.e2e.value;
  };
  promise(RequestClass::high, setup.load->classes.high);
  promise(RequestClass::low, setup.load->classes.low);
  served_.clear();
  part_ = {};
  measured_ = {};
  edges_.clear();
  segments_ = 1;
  segment_ = 0;
  last_edge_ = -kNever;
  if (gaps_.empty()) gaps_.emplace_back();
  gaps_[0].lengths.clear();
  gaps_[0].sum = 0;
  new_edge_ = false;
  sums_ = Summary{};
  pools_.assign(setup.pools, {});
  inside_ = inside_since_ = 0;
  for (Samples* samples : {&ttft, &tpot, &e2e, &queue}) samples->clear();
}

void ServingStats::add_edge(double time) {
  new_edge_ = true;
  edges_.push_back(time);
  last_edge_ = time - kSameMoment;
  ++segments_;
  if (gaps_.size() < segments_) gaps_.emplace_back();
  gaps_[segments_ - 1].lengths.clear();
  gaps_[segments_ - 1].sum = 0;
}

void ServingStats::turned_away(const Request& request, RequestEnd why, std::int32_t replica,
                               double time) {
  const bool shed = why == RequestEnd::shed;
  (shed ? sums_.shed : sums_.refused) += 1;
  (shed ? sums_.tokens_given_up : sums_.tokens_refused) += double(request.prompt + request.output);
  leaves(request.arrival, {time, time}, request.closes);
  keep({.arrival = request.arrival,
        .finish = time,
        .output = shed ? kGivenUp : 0,
        .tenant = std::int32_t(request.tenant),
        .service_class = request.service_class});
  if (setup_.requests != nullptr) {
    constexpr Seconds never{std::numeric_limits<double>::quiet_NaN()};
    setup_.requests->push_back({.number = request.number,
                                .replica = replica,
                                .session = request.session,
                                .priority = request.priority,
                                .tenant = request.tenant,
                                .end = why,
                                .arrival = Seconds{request.arrival},
                                .scheduled = never,
                                .first_token = never,
                                .finish = never,
                                .prompt_tokens = request.prompt,
                                .service_class = request.service_class});
  }
}

void ServingStats::leaves(double arrival, const AnswerTimes& times, bool closes) {
  sums_.in_system_seconds += inside_ * (times.made - inside_since_);
  inside_since_ = times.made;
  inside_ -= 1;
  sums_.last_finish = std::max(sums_.last_finish, times.told);
  if (watch_.finished(arrival, times.made, times.told, closes)) add_edge(times.made);
}

void ServingStats::failed(const Sequence& sequence, double time, std::int32_t replica) {
  leaves(sequence.arrival, {time, time}, sequence.closes);
  sums_.failed += 1;
  sums_.tokens_given_up += double(sequence.prompt + sequence.asked);
  keep({.arrival = sequence.arrival,
        .finish = time,
        .output = kGivenUp,
        .tenant = std::int32_t(sequence.tenant),
        .service_class = sequence.service_class});
  if (setup_.requests != nullptr) {
    constexpr Seconds never{std::numeric_limits<double>::quiet_NaN()};
    setup_.requests->push_back({.number = sequence.number,
                                .replica = replica,
                                .session = sequence.session,
                                .priority = sequence.priority,
                                .tenant = sequence.tenant,
                                .end = RequestEnd::failed,
                                .arrival = Seconds{sequence.arrival},
                                .scheduled = never,
                                .first_token = never,
                                .finish = never,
                                .prompt_tokens = sequence.prompt,
                                .preemptions = sequence.preemptions,
                                .service_class = sequence.service_class,
                                .attempts = sequence.attempts});
  }
}

void ServingStats::finished(const Sequence& sequence, const AnswerTimes& times,
                            std::int32_t replica) {
  leaves(sequence.arrival, times, sequence.closes);
  sums_.finished += 1;
  sums_.tokens_in += double(sequence.prompt);
  sums_.tokens_out += double(sequence.output + sequence.others_made);
  keep({.arrival = sequence.arrival,
        .scheduled = sequence.scheduled,
        .first_token = sequence.first_token,
        .finish = times.told,
        .received = sequence.received,
        .read = sequence.read,
        .prompt = std::int32_t(sequence.prompt),
        .output = std::int32_t(sequence.output),
        .others = std::int32_t(sequence.others_made),
        .tenant = std::int32_t(sequence.tenant),
        .history = std::int32_t(sequence.history),
        .cached = std::int32_t(sequence.cached),
        .service_class = sequence.service_class});
  if (setup_.requests != nullptr) {
    constexpr double kNoTime = std::numeric_limits<double>::quiet_NaN();
    const bool came = sequence.received >= 0;
    setup_.requests->push_back(
        {.number = sequence.number,
         .replica = replica,
         .session = sequence.session,
         .priority = sequence.priority,
         .tenant = sequence.tenant,
         .arrival = Seconds{sequence.arrival},
         .scheduled = Seconds{sequence.scheduled},
         .first_token = Seconds{sequence.first_token},
         .finish = Seconds{times.told},
         .prompt_tokens = sequence.prompt,
         .output_tokens = sequence.output + sequence.others_made,
         .cached_tokens = sequence.cached,
         .preemptions = sequence.preemptions,
         .reader = came ? sequence.from_replica : replica,
         .read = Seconds{sequence.read >= 0 ? sequence.read : sequence.first_token},
         .received = Seconds{came ? sequence.received : kNoTime},
         .carried_tokens = sequence.carried,
         .service_class = sequence.service_class,
         .attempts = sequence.attempts});
  }
}

void ServingStats::add_to_groups(const ServedRequest& request, bool good) {
  const bool answered = request.output > 0;
  groups.add({.service_class = request.service_class,
              .tenant = request.tenant,
              .history = request.history,
              .cached = request.cached,
              .answered = answered,
              .good = good,
              .ttft = answered ? ttft_of(request) : 0,
              .tpot = tpot_of(request),
              .has_tpot = request.output > 1});
}

// A request's tokens but the first are spread evenly between its first and its last.
void ServingStats::sum_up(MeasuredPart part, std::size_t count) {
  const auto share_before = [](const ServedRequest& request, double time) {
    if (time >= request.finish - kSameMoment) return 1.0;
    if (time <= request.first_token) return 0.0;
    return (time - request.first_token) / (request.finish - request.first_token);
  };
  const bool grouped = groups.any();
  MeasuredSums sums = measured_;  // here, and not behind a pointer, while they grow
  for (const ServedRequest& request : std::span(served_).first(count)) {
    const bool measured = part.holds_arrival(request.arrival);
    if (measured) sums.arrived += 1;
    if (request.output <= 0) {
      if (!measured) continue;
      sums.given_up += 1;
      if (grouped) add_to_groups(request, false);
      continue;
    }
    const Latencies latencies{ttft_of(request), tpot_of(request), e2e_of(request)};
    const bool good = is_good(latencies, request.service_class);
    if (measured) {
      if (grouped) add_to_groups(request, good);
      ttft.add(latencies.ttft);
      if (setup_.whole_times) {
        e2e.add(latencies.e2e);
        queue.add(request.scheduled - request.arrival);
      }
      if (request.output > 1) tpot.add(latencies.tpot);
      sums.requests += 1;
      sums.queued += request.scheduled - request.arrival;
      sums.in_service += request.finish - request.scheduled;
      if (good) sums.good_requests += 1;
      sums.prompts += double(request.prompt);
      if (request.received >= 0) {
        sums.carried += 1;
        sums.transfer_seconds += request.received - request.read;
      }
      sums.outputs += double(request.output + request.others);
    }
    if (part.holds_answer(request.finish)) {
      sums.finished += 1;
      if (grouped) {
        const double made = double(request.output) + double(request.others);
        groups.served(request.tenant, double(request.prompt) + made);
      }
      if (good) sums.good += 1;
    }
    if (part.holds_answer(request.first_token)) {
      sums.prompt_tokens += double(request.prompt);
      sums.output_tokens += 1;
    }
    const double inside = share_before(request, part.until) - share_before(request, part.from);
    sums.output_tokens += inside * double(request.output - 1 + request.others);
  }
  measured_ = sums;
  served_.erase(served_.begin(), served_.begin() + std::ptrdiff_t(count));
}

void ServingStats::measure(double end) {
  sums_.in_system_seconds += inside_ * (end - inside_since_);
  inside_since_ = end;
  part_ = watch_.part(sums_.last_finish);
  sum_up(part_, served_.size());
  if (setup_.plan.kind == RunKind::open && measured_.requests > 0) {
    measured_.leave_out_worked_off(sums_.in_system_seconds / end);
  }
  look_at_gaps(part_);
  if (setup_.requests == nullptr) return;
  for (RequestRow& row : *setup_.requests) row.measured = part_.holds_arrival(row.arrival.value);
}

// Segments lie between the edges; a part is made of whole ones.
void ServingStats::look_at_gaps(const MeasuredPart& part) {
  part_gaps_.lengths.clear();
  part_gaps_.sum = 0;
  for (std::size_t i = 0; i < segments_; ++i) {
    const double begin = i > 0 ? edges_[i - 1] : watch_.first_arrival();
    const double end = i + 1 < segments_ ? edges_[i] : sums_.last_finish;
    const bool inside = begin >= part.from - kSameMoment && end <= part.until + kSameMoment;
    if (!part.all && !inside) continue;
    part_gaps_.lengths.add(gaps_[i].lengths);
    part_gaps_.sum += gaps_[i].sum;
  }
}

namespace {

// Step times rise (or fall) evenly along a stretch: find where they leave a bucket, not each one. Steps [first, end) count, each
// `weight` times.
template <class Lengths, class Step>
[[gnu::always_inline]] inline void add_steps(Lengths& lengths, double first, double end,
                                             double weight, Step step) {
  const double last = step(end - 1);
  const std::int64_t last_bucket = lengths.bucket(last);
  double i = first, value = step(first);
  std::int64_t bucket = lengths.bucket(value);
  if (bucket == last_bucket) return lengths.add_to(bucket, (end - i) * weight);
  const typename Lengths::Between counts = lengths.between(bucket, last_bucket);
  const std::int64_t to_edge = last > value ? 1 : 0;
  do {
    const double edge = lengths.edge(bucket + to_edge);
    const double share = std::max(0.0, (edge - value) / (last - value));
    double next = std::min(i + 1 + double(std::int64_t(share * (end - 1 - i))), end - 1);
    // But for rounding it is found. A pace that is not plain makes steps of unequal height.
    while (next > i + 1 && lengths.bucket(step(next - 1)) != bucket) next -= 1;
    std::int64_t next_bucket;
    while ((next_bucket = lengths.bucket(value = step(next))) == bucket) next += 1;
    counts.add_to(bucket, (next - i) * weight);
    i = next;
    bucket = next_bucket;
  } while (bucket != last_bucket);
  counts.add_to(bucket, (end - i) * weight);
}

}  // namespace

void ServingStats::add_gaps(const Stretch& stretch, std::int64_t first, std::int64_t count,
                            double seconds) {
  if (!setup_.gaps) return;
  Gaps& gaps = gaps_[segment_];
  const double weight = stretch.sequences;
  gaps.sum += seconds * weight;
  if (stretch.plain) {
    const double start = stretch.first_step, rise = stretch.rise;
    add_steps(gaps.lengths, double(first), double(count), weight,
              [=](double i) { return start + rise * i; });
  } else {
    add_steps(gaps.lengths, double(first), double(count), weight,
              [&stretch](double i) { return stretch.step(i); });
  }
}

ServingStats::Summary ServingStats::summary() const {
  Summary summary = sums_;
  for (const PoolSums& pool : pools_) summary.add(pool);
  return summary;
}

}  // namespace engine
