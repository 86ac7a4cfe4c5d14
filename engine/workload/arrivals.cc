#include "engine/workload/arrivals.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/base/random.h"

namespace engine {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool read_number(std::string_view text, double& value) {
  text = trimmed(text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(value);
}

}  // namespace

std::optional<std::vector<RateStep>> parse_timetable(std::string_view text, std::string_view field,
                                                     std::string_view unit, std::string& reason) {
  std::vector<RateStep> steps;
  for (std::string_view rest = text; !trimmed(rest).empty();) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = trimmed(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    const std::size_t colon = item.find(':');
    RateStep step;
    if (colon == std::string_view::npos || !read_number(item.substr(0, colon), step.time) ||
        !read_number(item.substr(colon + 1), step.rate) || step.rate < 0) {
      reason = fmt::format("{}: '{}' is not a pair 'second:{}'", field, item, unit);
      return std::nullopt;
    }
    if (steps.empty() ? step.time != 0 : step.time <= steps.back().time) {
      reason = fmt::format("{}: times must rise from 0; '{}' does not", field, item);
      return std::nullopt;
    }
    steps.push_back(step);
  }
  return steps;
}

double RateCurve::whole() const {
  if (ends()) return end;
  if (steps.size() < 2) return 0;
  return last_step() + (last_step() - steps[steps.size() - 2].time);
}

double RateCurve::expected() const {
  double requests = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double until = i + 1 < steps.size() ? steps[i + 1].time : whole();
    requests += std::max(0.0, until - steps[i].time) * steps[i].rate;
  }
  return requests;
}

std::optional<RateCurve> parse_rate_curve(std::string_view text, std::string& reason) {
  RateCurve curve;
  const std::size_t comma = text.rfind(',');
  const std::string_view last = trimmed(comma == text.npos ? text : text.substr(comma + 1));
  const std::size_t colon = last.find(':');
  if (colon != last.npos && trimmed(last.substr(colon + 1)) == "end") {
    if (!read_number(last.substr(0, colon), curve.end)) {
      reason = fmt::format("load.curve: '{}' is not a pair 'second:end'", last);
      return std::nullopt;
    }
    text = comma == text.npos ? std::string_view{} : text.substr(0, comma);
  }
  auto steps = parse_timetable(text, "load.curve", "req/s", reason);
  if (!steps) return std::nullopt;
  if (steps->empty()) {
    reason = "load.curve is empty; as in '0:2, 28800:10, 86400:end' (second:req/s)";
    return std::nullopt;
  }
  curve.steps = std::move(*steps);
  if (curve.end <= curve.last_step()) {
    reason = fmt::format("load.curve: times must rise from 0; '{}' does not", last);
    return std::nullopt;
  }
  if (!curve.ends() && curve.steps.back().rate <= 0) {
    reason = "load.curve: the last rate must be above 0, unless the curve ends, as in '86400:end'";
    return std::nullopt;
  }
  if (curve.ends() && curve.expected() <= 0) {
    reason = "load.curve brings no request before it ends: a rate must be above 0";
    return std::nullopt;
  }
  return curve;
}

double gamma_gap(double shape, std::uint64_t seed, std::uint64_t n) {
  // Below one, a gamma of shape + 1 times u^(1/shape).
  const double raised = shape < 1 ? shape + 1 : shape;
  const double d = raised - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  double value = d;
  for (std::uint32_t lane = 0; lane < 64; lane += 2) {  // two in a hundred attempts fail
    const double x = normal(seed, Stream::arrivals, n, lane);
    const double v = 1 + c * x;
    if (v <= 0) continue;
    const double cube = v * v * v;
    const double u = uniform(seed, Stream::arrivals, n, lane + 1);
    if (std::log(u) < x * x / 2 + d - d * cube + d * std::log(cube)) {
      value = d * cube;
      break;
    }
  }
  if (shape < 1) value *= std::pow(uniform(seed, Stream::arrivals, n, 64), 1 / shape);
  return value / shape;
}

ArrivalClock::ArrivalClock(const Load& load, double rate, std::uint64_t seed)
    : kind_(load.arrivals), mean_gap_(1 / rate), shape_(1 / (load.cv * load.cv)), seed_(seed) {
  if (kind_ == ArrivalKind::curve) {
    std::string reason;
    if (auto curve = parse_rate_curve(load.curve, reason)) curve_ = std::move(*curve);
  }
}

double ArrivalClock::gap() {
  const std::uint64_t n = count_++;
  switch (kind_) {
    case ArrivalKind::gamma:
      return gamma_gap(shape_, seed_, n);
    case ArrivalKind::deterministic:
    case ArrivalKind::poisson:
    case ArrivalKind::curve:
    case ArrivalKind::trace:
    case ArrivalKind::closed:
      break;
  }
  return exponential(seed_, Stream::arrivals, n);
}

double ArrivalClock::next() {
  // The first request of an evenly spaced load comes at once; a random one after its gap.
  if (kind_ == ArrivalKind::deterministic) return double(count_++) * mean_gap_;
  double units = gap();
  if (kind_ != ArrivalKind::curve) return (units_ += units) * mean_gap_;
  // Expected arrivals pass at the curve's rate: walk it until the gap is used up.
  while (true) {
    const double rate = curve_.steps[step_].rate;
    const bool last = step_ + 1 == curve_.steps.size();
    const double until = last ? curve_.end : curve_.steps[step_ + 1].time;
    const double room = until < kNever ? (until - time_) * rate : kNever;
    if (units < room) return time_ += units / rate;
    if (last) return kNever;
    units -= room;
    time_ = curve_.steps[++step_].time;
  }
}

}  // namespace engine
