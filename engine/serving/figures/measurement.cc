#include "engine/serving/figures/measurement.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace engine {
namespace {

constexpr std::int64_t kFirstLength = 1000;  // requests
// Requests that a closed loop makes at most while it waits for its fleet: all of them are kept until they are summed up.
constexpr std::int64_t kMostInALoop = kFirstLength << (kMostLengths + kMoreLengths - 1);
constexpr std::int64_t kSnapshots = 40;
// Snapshots of a run of which a stated part is measured, so that even a small part has some.
constexpr std::int64_t kSnapshotsForAPart = 1000;

// Later turns of sessions are missing until the first sessions are through: pauses are drawn, and twice their mean has most of them.
double until_later_turns(const Load& load) {
  return 2 * double(load.turns - 1) * load.think_time.value;
}

// Of gaps between sessions the variance over the square of their mean; each session brings all of its calls.
double burstiness_of(const Load& load) {
  const double calls = double(load.calls_of_session());
  if (load.arrivals == ArrivalKind::deterministic) return 0;
  return load.arrivals == ArrivalKind::gamma ? calls * load.cv * load.cv : calls;
}

double curve_end(const Load& load) {
  std::string reason;
  if (load.arrivals != ArrivalKind::curve) return 0;
  const auto curve = parse_rate_curve(load.curve, reason);
  return curve && curve->ends() ? curve->end : 0;
}

}  // namespace

RunPlan run_plan(const Load& load, const LoadLevel& level, const Trace* trace,
                 const FleetTimes& fleet) {
  const bool loop = load.arrivals == ArrivalKind::closed;
  const double settling = std::max(fleet.settling, until_later_turns(load));
  RunPlan plan{.warmup = load.warmup.value,
               .earliest = loop ? std::max(settling, load.ramp.value) : settling,
               .window = load.window.value,
               .fleet = fleet.settling,
               .curve_end = curve_end(load),
               .burstiness = burstiness_of(load),
               .unit_size = load.calls_of_session()};
  const bool changes = load.arrivals == ArrivalKind::trace || load.arrivals == ArrivalKind::curve;
  const std::int64_t requests = total_requests(load, trace);
  if (changes || load.measure == MeasureKind::whole) {
    plan.kind = RunKind::whole;
  } else if (loop) {
    plan.kind = RunKind::closed;
    plan.round = std::max<std::int64_t>(1, level.clients);
  }
  const std::int64_t calls = plan.unit_size;
  plan.units = (requests + calls - 1) / calls;
  if (plan.kind != RunKind::whole && load.requests == 0) {
    plan.units = (kFirstLength + calls - 1) / calls;
    if (plan.window <= 0) plan.lasts = fleet.timetable;
    const auto units_in = [&level](double seconds) {
      return std::int64_t(std::min(level.rate * seconds, 1e7));
    };
    // As many as come until then, and four deviations more: a run that is over too soon would have to be twice as long.
    const double last = double(units_in(plan.lasts));
    const double more = 4 * std::sqrt(last * plan.burstiness / double(calls));
    if (!loop) plan.units += units_in(settling);
    plan.cut = !loop && last > double(plan.units);
    if (plan.cut) plan.units = std::int64_t(last + more) + 1;
    plan.lengths = kMostLengths;
    plan.endless = true;
  }
  if (plan.kind == RunKind::closed && plan.endless) {
    // Four rounds at least: two in which it fills up, and two that are measured.
    const std::int64_t fewest = 4 * plan.round;
    for (; plan.units < fewest && plan.lengths > 1; --plan.lengths) plan.units *= 2;
    plan.units = std::max(plan.units, fewest);
    const auto units_of = [&plan](int lengths) { return plan.units << (lengths - 1); };
    const double awaited = std::max(plan.earliest, plan.lasts);
    while (awaited > 0 && plan.more_lengths < kMoreLengths &&
           units_of(plan.lengths + plan.more_lengths + 1) * calls <= kMostInALoop) {
      ++plan.more_lengths;
    }
  }
  return plan;
}

void RunWatch::reset(const RunPlan& plan) {
  plan_ = plan;
  const std::int64_t round = plan.round;
  for (int k = 0; k < lengths(); ++k) {
    Length& length = lengths_[std::size_t(k)] = {};
    const std::int64_t units = plan.units << k;
    // The first hours of a timetable are no warm-up.
    const std::int64_t counted =
        plan.lasts > 0 ? std::min(units, kFirstLength / plan.unit_size) : units;
    length.least = (counted + 19) / 20;
    // Clients of a load that ends begin to leave when all but a round have been answered.
    const std::int64_t rounds = units / round - (round > 1 && !plan.endless ? 1 : 0);
    length.end_count = plan.kind == RunKind::closed ? rounds * round : units;
    length.half_count = length.end_count / 2 / round * round;
    if (plan.kind != RunKind::closed) length.half_count = std::max<std::int64_t>(1, units / 2);
  }
  length_ = next_begin_ = 0;
  opened_ = closed_ = arrived_ = finished_ = 0;
  first_arrival_ = kNever;
  last_arrival_ = 0;
  summing_ = false;
  clock_edges_.clear();
  if (plan.warmup > 0) {
    add_clock_edge(plan.warmup);
    if (plan.window > 0) add_clock_edge(plan.warmup + plan.window);
  }
  if (plan.lasts > 0) add_clock_edge(plan.lasts);
  snapshots_.clear();
  untold_.clear();
  const std::int64_t snapshots = plan.states_part() ? kSnapshotsForAPart : kSnapshots;
  stride_ = std::max<std::int64_t>(1, plan.units / snapshots / round) * round;
  find_next_look(0);
}

void RunWatch::add_clock_edge(double time) {
  const auto place =
      std::lower_bound(clock_edges_.begin(), clock_edges_.end(), time, std::greater<>{});
  clock_edges_.insert(place, time);
}

bool RunWatch::arrived(double time, bool opens) {
  first_arrival_ = std::min(first_arrival_, time);
  last_arrival_ = time;
  ++arrived_;
  add_pending(time, 1);  // at the very moment at which a length ends
  if (!opens) return false;
  ++opened_;
  return plan_.kind != RunKind::closed && counted(opened_, time);
}

bool RunWatch::finished(double arrival, double time, double told, bool closes) {
  ++finished_;
  if (told > time) untold_.push_back(told);
  add_pending(arrival, -1);
  if (!closes) return false;
  ++closed_;
  const bool edge = plan_.kind == RunKind::closed && counted(closed_, time);
  return filled_up(time, told) || edge;
}

void RunWatch::forget_told(double time) {
  std::erase_if(untold_, [time](double told) { return told <= time; });
}

// While one that stays long is waited for, longer ones may end.
void RunWatch::add_to_lengths(double arrival, std::int64_t requests) {
  for (int k = length_; k < lengths() && lengths_[std::size_t(k)].end < kNever; ++k) {
    if (arrival <= lengths_[std::size_t(k)].end) lengths_[std::size_t(k)].pending += requests;
  }
}

bool RunWatch::look_at_count(std::int64_t count, double time) {
  if (count % stride_ == 0) {
    forget_told(time);
    snapshots_.push_back({.time = time,
                          .arrived = double(arrived_),
                          .finished = double(finished_) - double(untold_.size()),
                          .opened = double(opened_),
                          .closed = double(closed_)});
  }
  bool edge = false;
  for (int k = 0; k < lengths(); ++k) {
    Length& length = lengths_[std::size_t(k)];
    if (count == length.half_count) {
      length.half = time, edge = true;
      length.finished_by_half = finished_;
    }
    if (count == length.end_count) {
      length.end = time, edge = true;
      length.finished_by_end = finished_;
      length.pending = arrived_ - finished_;
      length.inside_at_end = std::max(length.pending, opened_ - closed_);
    }
  }
  find_next_look(count);
  return edge;
}

// A snapshot, or half or the end of a length.
void RunWatch::find_next_look(std::int64_t count) {
  next_look_ = (count / stride_ + 1) * stride_;
  for (int k = 0; k < lengths(); ++k) {
    const Length& length = lengths_[std::size_t(k)];
    for (const std::int64_t mark : {length.half_count, length.end_count}) {
      if (mark > count) next_look_ = std::min(next_look_, mark);
    }
  }
}

bool RunWatch::filled_up(double time, double told) {
  if (next_begin_ == lengths()) return false;  // all have
  if (plan_.kind == RunKind::whole || plan_.warmup > 0) return false;
  if (time < plan_.earliest) return false;
  const bool loop = plan_.kind == RunKind::closed;
  if (loop && closed_ % plan_.round != 0) return false;
  // At the end of a round no request is inside for a moment: clients count as if they were.
  if (closed_ < 2 * (loop ? plan_.round : opened_ - closed_)) return false;
  bool edge = false;
  while (next_begin_ < lengths() && closed_ >= lengths_[std::size_t(next_begin_)].least) {
    Length& begun = lengths_[std::size_t(next_begin_++)];
    begun.begin = time;
    begun.told_later = told - time;
    begun.finished_by_begin = finished_;
    if (plan_.window > 0) add_clock_edge(time + plan_.window);
    edge = true;
  }
  return edge;
}

void RunWatch::lengthen() {
  stride_ *= 2;
  ++length_;
  find_next_look(plan_.kind == RunKind::closed ? closed_ : opened_);
  // Every second snapshot is kept: the first one is that of the first stride.
  std::size_t kept = 0;
  for (std::size_t i = 1; i < snapshots_.size(); i += 2) snapshots_[kept++] = snapshots_[i];
  snapshots_.resize(kept);
}

bool RunWatch::too_short() const {
  const MeasuredPart part = part_until(kNever);
  if (plan_.warmup > 0 && part.empty()) return true;
  if (lengths_[std::size_t(length_)].end < plan_.lasts - kSameMoment) return true;
  return plan_.window > 0 && part.until < part.from + plan_.window - kSameMoment;
}

// A load that ends soon after the system has filled up: where fewer are answered until then than are inside at its end, that
// is less than the time that one of them stays (Little), and what comes in it is chance. A session is inside while its user
// thinks, too: where fewer are answered than sessions are open, some are not seen at all.
bool RunWatch::shows_its_pace(const Length& length) const {
  const bool stated = plan_.kind == RunKind::open && !plan_.endless && plan_.window <= 0;
  if (!stated || summing_ || length.end == kNever) return true;
  return length.finished_by_end - length.finished_by_begin >= length.inside_at_end;
}

// As far as it is known; a whole run ends at `last_finish`. A curve with an end says for how long there is a load, whenever requests come.
MeasuredPart RunWatch::part_until(double last_finish) const {
  MeasuredPart part;
  const Length& length = lengths_[std::size_t(length_)];
  const bool automatic = plan_.warmup <= 0;
  if (plan_.kind == RunKind::whole) {
    const double begin = plan_.curve_end > 0 ? 0 : first_arrival_;
    part.from = automatic ? begin : plan_.warmup;
    part.until = std::max(last_finish, plan_.curve_end);
    part.all = automatic && plan_.window <= 0;
  } else {
    // A warm-up is as long as it is stated; clients or later turns that come after it are missing all the same.
    part.settled = automatic ? length.begin < length.end && shows_its_pace(length)
                             : plan_.warmup >= plan_.earliest;
    part.from = !automatic ? plan_.warmup : part.settled ? length.begin : length.half;
    if (automatic && part.settled) part.told_later = length.told_later;
    part.until = length.end;
  }
  if (plan_.window > 0) part.until = std::min(part.until, part.from + plan_.window);
  // The first length is measured whole, so that a short timetable leaves enough of it.
  if (plan_.lasts > 0 && (length_ > 0 || plan_.cut)) part.until = std::min(part.until, plan_.lasts);
  return part;
}

MeasuredPart RunWatch::part(double last_finish) const {
  const MeasuredPart part = part_until(last_finish);
  const Length& length = lengths_[std::size_t(length_)];
  const std::int64_t seen = length.finished_by_end - length.finished_by_half;
  // A load that ends is over before a full system has shown its pace, unless it finishes about as much late as with its drain.
  const auto at_pace = [&] {
    const double all = double(finished_) / (last_finish - first_arrival_);
    const double late = double(seen) / (length.end - length.half);
    return late > 0.9 * all && late < 1.2 * all;
  };
  const bool enough = part.settled || plan_.warmup > 0 || plan_.kind != RunKind::open || summing_ ||
                      (plan_.endless ? 20 * seen >= units() * plan_.unit_size : at_pace());
  if (!part.empty() && part.until < kNever && enough) return part;
  if (plan_.kind == RunKind::whole || plan_.warmup > 0) return {};
  return {.from = first_arrival_, .until = last_finish, .all = true};
}

MeasuredPart RunWatch::part_so_far() {
  const bool begun = lengths_[std::size_t(length_)].begin < kNever;
  if (plan_.warmup <= 0 && !begun) next_begin_ = lengths();  // too late to begin
  summing_ = true;
  return part_until(kNever);
}

std::span<const Snapshot> RunWatch::snapshots(const MeasuredPart& part) const {
  const auto inside = [&part](const Snapshot& snapshot) {
    return snapshot.time >= part.from - kSameMoment && snapshot.time <= part.until + kSameMoment;
  };
  const auto first = std::find_if(snapshots_.begin(), snapshots_.end(), inside);
  const auto last = std::find_if_not(first, snapshots_.end(), inside);
  return {first, last};
}

}  // namespace engine
