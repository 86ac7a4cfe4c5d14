// Which part of a served run is measured, and how long a run is. Figures describe a system that has
// filled up and goes on: neither the time in which it fills nor the one in which it drains belongs to
// them, unless `load.measure` asks for the whole run.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/moment.h"
#include "engine/workload/request_source.h"

namespace engine {

enum class RunKind : std::uint8_t {
  open,    // requests come at a rate, whatever becomes of them
  closed,  // clients wait for their answers: they finish in rounds
  whole,   // a recorded load or one that changes: all of it is measured
};

// What is counted are units: requests, or sessions where the load has turns.
struct RunPlan {
  RunKind kind = RunKind::open;
  double warmup = 0;       // seconds, as stated; 0: until the system has filled up
  double earliest = 0;     // seconds before which it cannot have: not all of it is switched on
  double window = 0;       // seconds, as stated; 0: to the last arrival
  double fleet = 0;        // seconds that a fleet takes to follow its load; 0: it does not
  double lasts = 0;        // seconds that a run of no stated length lasts: its fleet's timetable
  double curve_end = 0;    // seconds at which the load's curve ends; 0: it has no end
  double burstiness = 1;   // variance of how many requests come in a long time, over their mean
  std::int64_t round = 1;  // closed: units that finish together
  std::int64_t units = 1;  // of the first length
  std::int64_t unit_size = 1;  // requests of a unit
  int lengths = 1;             // each is twice the one before
  int more_lengths = 0;  // until measuring begins in the first half of one, and `lasts` is over
  bool endless = false;  // arrivals go on until what is measured has finished
  bool cut = false;      // what comes later than `lasts` is left out of the first length, too

  // Rather than the system's own pace, the load says what is measured.
  bool states_part() const { return warmup > 0 || window > 0; }
  // The same, of this one length.
  RunPlan of_length(std::int64_t stated) const {
    RunPlan plan = *this;
    plan.cut = cut || (lasts > 0 && stated > units);
    plan.units = stated;
    plan.lengths = 1;
    plan.more_lengths = 0;
    return plan;
  }
};
constexpr int kMostLengths = 7;  // 1,000 to 64,000 requests
// For a closed loop that waits for its fleet to settle: how many requests come until then depends on how fast they are answered.
constexpr int kMoreLengths = 4;
// Seconds until a fleet has followed its load, and until the last number of its timetable has held as long as the one before it.
struct FleetTimes {
  double settling = 0, timetable = 0;
};
RunPlan run_plan(const Load& load, const LoadLevel& level, const Trace* trace,
                 const FleetTimes& fleet = {});

struct MeasuredPart {
  double from = 0;
  double until = 0;
  bool settled =
      false;  // the system had filled up, or a warm-up was stated that is long enough for that
  bool all = false;  // nothing is left out, the drain included
  // Clients had the answer with which it begins so much later than it was made.
  double told_later = 0;

  bool empty() const { return !(from < until); }
  double span() const { return until - from; }
  // Answers and tokens count by when they come, requests' latencies by when they arrive.
  bool holds_answer(double time) const {
    return time > from + told_later + kSameMoment && time <= until + told_later + kSameMoment;
  }
  bool holds_arrival(double time) const {
    return all ? time <= until : time >= from - kSameMoment && time < until - kSameMoment;
  }
};

// The state of a run at one of about forty moments, evenly spaced in units; of a thousand where a stated part of it is measured.
struct Snapshot {
  double time = 0;
  double arrived = 0;   // requests so far
  double finished = 0;  // requests that ended by then, as clients see it; refused ones included
  // The same of sessions, whose requests come one after another.
  double opened = 0, closed = 0;
};

// Follows a run and knows its measured part. The warm-up ends at the first completion at which twice as
// many units have finished as are inside, and a twentieth of all; not before all clients and, by its own clock, the
// fleet have come. Where that never happens, or so late that a stated number of requests ends before one of them has
// come and gone, the second
// half is measured if enough is finished there; otherwise, because a stated number of requests ends before the
// system is full, everything came at once or takes very long, all of the run. In a closed loop parts begin and end with whole rounds, because clients
// that started together finish together.
class RunWatch {
 public:
  void reset(const RunPlan& plan);

  // Both say whether a measured part may begin or end at this moment. Clients may have an answer later than it is made.
  bool arrived(double time, bool opens);
  bool finished(double arrival, double time, bool closes) {
    return finished(arrival, time, time, closes);
  }
  bool finished(double arrival, double made, double told, bool closes);
  // The next moment that is one by the clock alone.
  double next_edge() const { return clock_edges_.empty() ? kNever : clock_edges_.back(); }
  void pass_edge() { clock_edges_.pop_back(); }

  enum class State : std::uint8_t {
    running,
    complete,  // of this length, everything that is measured has finished
    overrun,   // not so, but as many again have arrived
  };
  State state() const {
    if (!plan_.endless) return State::running;
    const Length& length = lengths_[std::size_t(length_)];
    if (length.end < kNever && length.pending == 0) return State::complete;
    const bool twice = plan_.kind == RunKind::open && opened_ >= 2 * length.end_count;
    return twice ? State::overrun : State::running;
  }
  // Goes on to twice the length; there is one.
  void lengthen();
  bool can_lengthen() const {
    const Length& length = lengths_[std::size_t(length_)];
    const bool waits = length.begin > length.half || length.end < plan_.lasts;
    const int most = waits ? lengths() : plan_.lengths;
    return length_ + 1 < most;
  }
  // A stated window or a timetable needs more than this length, or a stated warm-up all of it.
  bool too_short() const;

  MeasuredPart part(double last_finish) const;
  // While it runs: what is past belongs to it, or never will. A run that has not filled up when this is
  // asked is one that never does.
  MeasuredPart part_so_far();
  std::int64_t arrivals() const { return arrived_; }
  double first_arrival() const { return first_arrival_; }
  double last_arrival() const { return last_arrival_; }
  // Snapshots of the present run length, and those of them that lie inside a part.
  std::span<const Snapshot> snapshots(const MeasuredPart& part) const;
  const RunPlan& plan() const { return plan_; }
  std::int64_t units() const { return plan_.units << length_; }

 private:
  struct Length {
    std::int64_t least = 0;       // units that finish before measuring begins
    std::int64_t half_count = 0;  // units after which half is over
    std::int64_t end_count = 0;   // and all
    double begin = kNever, half = kNever, end = kNever;
    double told_later = 0;     // the answer with which it begins
    std::int64_t pending = 0;  // requests that arrived until its end and have not finished
    std::int64_t finished_by_begin = 0, finished_by_half = 0, finished_by_end = 0;  // requests
    std::int64_t inside_at_end = 0;
  };
  // The `count`-th unit has come, or in a closed loop gone. Mostly nothing happens then.
  bool counted(std::int64_t count, double time) {
    return count >= next_look_ && look_at_count(count, time);
  }
  bool look_at_count(std::int64_t count, double time);
  int lengths() const { return plan_.lengths + plan_.more_lengths; }
  void find_next_look(std::int64_t count);
  void forget_told(double time);
  // To the lengths that have ended since it arrived. Only a run that goes on until they have finished asks for them.
  void add_pending(double arrival, std::int64_t requests) {
    if (plan_.endless) add_to_lengths(arrival, requests);
  }
  void add_to_lengths(double arrival, std::int64_t requests);
  bool filled_up(double time, double told);
  bool shows_its_pace(const Length& length) const;
  MeasuredPart part_until(double last_finish) const;
  void add_clock_edge(double time);

  RunPlan plan_;
  std::array<Length, kMostLengths + kMoreLengths> lengths_;
  int length_ = 0;              // the present one
  int next_begin_ = 0;          // the first whose measuring has not begun
  std::int64_t next_look_ = 0;  // the next count at which something happens
  std::int64_t opened_ = 0, closed_ = 0;
  std::int64_t arrived_ = 0, finished_ = 0;
  double first_arrival_ = kNever, last_arrival_ = 0;
  std::vector<double> clock_edges_;  // latest first
  std::vector<Snapshot> snapshots_;
  std::int64_t stride_ = 1;     // units between two of them
  std::vector<double> untold_;  // when answers that were made are told; some have been
  bool summing_ = false;        // parts of the run are summed up already
};

}  // namespace engine
