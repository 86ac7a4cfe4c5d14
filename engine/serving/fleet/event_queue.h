// Whose turn it is among the replicas. Everything within a nanosecond of the earliest event happens at
// one moment. At one moment work ends before anybody plans, because an answer may bring a request to
// another replica at once; beyond that, replicas take turns in the order of their numbers. A heap by
// time alone would not know these rules.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/serving/figures/measurement.h"
#include "engine/serving/fleet/least_of.h"

namespace engine {

class EventQueue {
 public:
  // Of each `every` replicas only the first has events: the others take their turns with it.
  void reset(std::size_t replicas, std::size_t every = 1) {
    const std::size_t count = replicas / every;
    every_ = every;
    alone_ = count == 1;
    only_ = kNever;
    few_ = count <= Few::kWidth;
    few_events_.values.fill(kNever);
    if (few_) return;
    ends_.reset(count, kNever, kNever);
    plans_.reset(count, kNever, kNever);
    is_to_plan_.assign(count, 0);
  }
  // Whether there is only one replica, so that events need not be compared.
  bool alone() const { return alone_; }
  // When a replica has something to do, and whether that is the end of work or only the time to plan.
  void set(std::size_t replica, double time, bool work_ends) {
    only_ = time;
    if (!alone_) set_among(replica, time, work_ends);
  }
  struct Turn {
    std::size_t replica = 0;
    double time = kNever;
    double others = kNever;                    // the earliest event of all other replicas
    bool ends = true;                          // work; otherwise it is only the time to plan
    LeastOf<double>::Others of_its_kind = {};  // the others of whom that is true, too
  };
  // The replica whose turn it is, and when; any replica, at `kNever`, where none has anything to do.
  Turn next() const {
    if (alone_) return {.time = only_};
    if (few_) return next_of_few();
    const double end = ends_.least(), plan = plans_.least();
    const double moment = std::min(end, plan) + kSameMoment;
    const bool ends = end <= moment;
    const LeastOf<double>& events = ends ? ends_ : plans_;
    std::size_t replica = events.first();
    LeastOf<double>::Others others = events.others(replica);
    if (others.least <= moment) {  // several at one moment
      replica = events.first_at_most(moment);
      others = events.others(replica);
    }
    return {.replica = replica * every_,
            .time = events.at(replica),
            .others = std::min(others.least, ends ? plan : end),
            .ends = ends,
            .of_its_kind = others};
  }
  // The replica with the earliest event besides that one, which most likely has the next turn. Only where there are many.
  std::size_t after(const Turn& turn) const {
    if (few_) return after_of_few(place_of(turn.replica)) * every_;
    if (turn.others < turn.of_its_kind.least) return (turn.ends ? plans_ : ends_).first() * every_;
    const LeastOf<double>& events = turn.ends ? ends_ : plans_;
    return events.one_of(turn.of_its_kind, place_of(turn.replica)) * every_;
  }
  double time_of(std::size_t replica) const {
    if (alone_) return only_;
    const std::size_t place = place_of(replica);
    if (few_) return few_events_.values[place];
    return std::min(ends_.at(place), plans_.at(place));
  }

 private:
  using Few = LineOfValues<double>;
  std::size_t place_of(std::size_t replica) const {
    return every_ == 1 ? replica : replica / every_;
  }
  std::size_t after_of_few(std::size_t turn) const {
    std::size_t next = turn;
    double least = kNever;
    for (std::size_t i = 0; i < Few::kWidth; ++i) {
      if (i != turn && few_events_.values[i] < least) least = few_events_.values[next = i];
    }
    return next;
  }
  // Whether it is the end of work matters only where several have something to do at one moment.
  Turn next_of_few() const {
    std::size_t replica = few_events_.least_place();
    double others = few_events_.least_beside(replica);
    const double moment = few_events_.values[replica] + kSameMoment;
    if (others <= moment) {
      replica = first_of_few(moment);
      others = few_events_.least_beside(replica);
    }
    return {.replica = replica * every_, .time = few_events_.values[replica], .others = others};
  }
  // Of the replicas with something to do at that moment: the first that ends work, or else the first.
  std::size_t first_of_few(double moment) const {
    std::size_t first_to_plan = Few::kWidth;
    for (std::size_t i = 0; i < Few::kWidth; ++i) {
      if (few_events_.values[i] > moment) continue;
      if (few_end_work_[i]) return i;
      first_to_plan = std::min(first_to_plan, i);
    }
    return first_to_plan;
  }
  // A function of its own, since the code that notes one event is inlined in many places.
  [[gnu::noinline]] void set_among(std::size_t replica, double time, bool work_ends) {
    const std::size_t place = place_of(replica);
    if (few_) {
      few_events_.values[place] = time;
      few_end_work_[place] = work_ends;
      return;
    }
    ends_.set(place, work_ends ? time : kNever);
    if (work_ends && is_to_plan_[place] == 0) return;
    plans_.set(place, work_ends ? kNever : time);
    is_to_plan_[place] = work_ends ? 0 : 1;
  }

  std::size_t every_ = 1;
  bool alone_ = false;  // one replica needs no index,
  bool few_ = false;    // a few replicas are in no tree either: all of them are looked at
  double only_ = kNever;
  std::array<bool, Few::kWidth> few_end_work_{};
  Few few_events_{};
  LeastOf<double> ends_, plans_;
  // Replicas that are in the second: few, and their places are not looked up for the others.
  std::vector<std::uint8_t> is_to_plan_;
};

}  // namespace engine
