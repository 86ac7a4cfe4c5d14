// Whose turn it is among the replicas. Everything within a nanosecond of the earliest event happens at
// one moment. At one moment work ends before anybody plans, because an answer may bring a request to
// another replica at once; beyond that, replicas take turns in the order of their numbers. A heap by
// time alone would not know these rules.
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/serving/least_of.h"
#include "engine/serving/measurement.h"

namespace engine {

class EventQueue {
 public:
  void reset(std::size_t replicas) {
    alone_ = replicas == 1;
    only_ = kNever;
    ends_.reset(replicas, kNever, kNever);
    plans_.reset(replicas, kNever, kNever);
  }
  // When a replica has something to do, and whether that is the end of work or only the time to plan.
  void set(std::size_t replica, double time, bool work_ends) {
    only_ = time;
    if (alone_) return;
    ends_.set(replica, work_ends ? time : kNever);
    plans_.set(replica, work_ends ? kNever : time);
  }
  // The replica whose turn it is; any, where nobody has anything to do.
  std::size_t next() const {
    if (alone_) return 0;
    const double moment = std::min(ends_.least(), plans_.least()) + kSameMoment;
    return ends_.least() <= moment ? ends_.first_at_most(moment) : plans_.first_at_most(moment);
  }
  double time_of(std::size_t replica) const {
    return alone_ ? only_ : std::min(ends_.at(replica), plans_.at(replica));
  }
  // The earliest event of all other replicas.
  double earliest_but(std::size_t replica) const {
    return alone_ ? kNever : std::min(ends_.least_but(replica), plans_.least_but(replica));
  }

 private:
  LeastOf<double> ends_, plans_;
  bool alone_ = false;  // one replica needs no index
  double only_ = kNever;
};

}  // namespace engine
