// KV caches under way from one replica to another, and how they share the adapters at both ends.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/base/moment.h"
#include "engine/serving/replica/journey.h"
#include "engine/serving/sequences/whole_moments.h"

namespace engine {

// Comes from no replica; and to none: an encoder of images is free.
constexpr std::size_t kFromBelow = std::size_t(-1), kToEncoders = std::size_t(-1);

// One sequence's KV.
struct Shipment {
  std::size_t from = 0, to = 0;   // replicas
  std::int32_t slot = -1;         // of the sequence, where it goes
  double sent = 0, received = 0;  // seconds of all adapters of either end, if it had them to itself
  double fabric = 0;              // the same of the fabric between them; 0: it never limits
  double latency = 0;
  double last_share = 1;     // what cannot leave before the prompt has been read,
  double reading_since = 0;  // which began here
};

// Every adapter is shared evenly by what it carries, and a shipment moves at the lesser of its two shares: no
// adapter carries more than it can, and one shipment's start or end concerns only those at its two ends. What a
// shipment leaves unused at one end is not given to the others there, so these times are never below those
// of max-min fair rates, and equal to them where all shipments wait for one end (`transfers_test.cc`). A fabric that is
// oversubscribed is one more thing that they share: those that their adapters hold back leave the rest to the others.
class Transfers {
 public:
  void reset(std::size_t replicas);
  // When the next one is there; infinity where none is under way.
  double next() const { return due_.empty() ? kNone : due_.front().end; }
  // Returns how many shipments were looked at.
  std::size_t start(double time, const Shipment& shipment);
  // One that shares nothing, from a tier below its replica: when it is there is known.
  void start_from_below(double end, std::size_t to, std::int32_t slot);
  // The next one, which is there now.
  struct Arrived {
    Shipment shipment;
    double started = 0;
  };
  Arrived take();
  // How many are under way to or from a replica, and over the fabric between all of them.
  std::size_t under_way(std::size_t replica) const { return adapters_[replica].flows.size(); }
  std::size_t in_fabric() const { return in_fabric_.size(); }
  // One that is under way will not come.
  void cancel(double now, std::size_t to, std::int32_t slot);

 private:
  static constexpr double kNone = std::numeric_limits<double>::infinity();

  struct Flow {
    Shipment shipment;
    double started = 0;
    double left = 1;         // share that is not there yet,
    double since = 0;        // at this time,
    double rate = 0;         // and how much of it a second brings
    std::int64_t order = 0;  // of two that are there at one time, the one that began first
    std::uint32_t version = 0;
  };
  struct Due {
    double end = 0;
    std::int64_t order = 0;
    std::int32_t flow = 0;
    std::uint32_t version = 0;
    bool operator>(const Due& other) const {
      return end != other.end ? end > other.end : order > other.order;
    }
  };
  struct Adapter {
    std::vector<std::int32_t> flows;
    // The last time at which it had nothing to do, as far as layers sent ahead have not used it.
    double idle_from = 0, idle_until = 0;
  };

  // What begins and ends within a moment does so at one time. Shipments that share a way are sped up by those that have left it: a head
  // start as small as rounding would grow with every round of a closed loop, threefold where three share.
  static double same_moment(double now, double& last) {
    if (std::abs(now - last) > kSameMoment) last = now;
    return last;
  }
  // Likewise of times that others say: a whole moment. The last digits of when a step ends, which hang on how many steps were summed up
  // at once, do not come in here.
  static double whole_moment(double said, double& last) {
    if (std::abs(said - last) > kSameMoment) last = whole_moments(said);
    return last;
  }
  std::int32_t new_flow();
  double share_ahead(double now, const Shipment& shipment);
  double adapter_rate(const Shipment& shipment) const;
  void set_rate(double now, std::int32_t slot, double rate);
  void share_again(double now, const Adapter& adapter);
  void share_fabric(double now);
  void leave(double now, std::size_t replica, std::int32_t flow);
  void end(double time, std::int32_t flow);
  bool holds(const Due& due) const { return due.version == flows_[std::size_t(due.flow)].version; }
  void settle(std::size_t settled);
  void drop_outdated();
  std::int32_t first_of_this_moment();

  std::vector<Flow> flows_;
  std::vector<std::int32_t> unused_;
  std::vector<Adapter> adapters_;  // of all of a replica's devices, by replica
  std::vector<Due> due_;           // a heap; entries of older versions mean nothing
  std::vector<std::size_t> at_this_moment_;
  std::int64_t started_ = 0;
  double moment_ = 0;                    // of the last start or end,
  double reading_since_ = 0;             // and since when the last one sent ahead was read
  std::vector<std::int32_t> in_fabric_;  // flows that the fabric may limit,
  std::vector<double> uses_;             // and how much of it each would use
};

}  // namespace engine
