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

// Special ends of a shipment: it comes from a tier below its own replica; it tells that an encoder of images is free.
constexpr std::size_t kFromBelow = std::size_t(-1), kToEncoders = std::size_t(-1);
// No shipment has arrived: the last byte of one has left its adapters, and crosses the link.
constexpr std::size_t kStillCrossing = std::size_t(-2);

// One sequence's KV.
struct Shipment {
  std::size_t from = 0, to = 0;   // replicas
  std::int32_t slot = -1;         // of the sequence, where it goes
  double sent = 0, received = 0;  // seconds at either end, if it had all adapters there to itself
  double fabric = 0;  // seconds in the fabric between them; 0: the fabric never limits it
  double latency = 0;
  double last_share = 1;     // share of the KV that cannot leave before the prompt has been read
  double reading_since = 0;  // when reading the prompt began
};

// Shipments share each adapter evenly, and a shipment moves at the lesser of its shares at its two ends. So no adapter carries more
// than it can, and the start or end of a shipment concerns only those at its two ends. What a shipment leaves unused at one end is
// not given to the others there. So these times are never below those of max-min fair rates, and equal to them where all shipments
// are limited at the same end (`transfers_test.cc`). An oversubscribed fabric is one more thing that shipments share; those that
// their adapters hold back leave the rest of it to the others. While a shipment's last byte crosses the link (its latency), the adapters
// and the fabric carry others.
class Transfers {
 public:
  void reset(std::size_t replicas);
  // When the next shipment arrives, or has left its adapters, which others then have; infinity where none is under way.
  double next() const { return due_.empty() ? kNone : due_.front().end; }
  // Returns how many shipments were looked at.
  std::size_t start(double time, const Shipment& shipment);
  // Starts a load from a tier below a replica. It shares nothing here, so its end is known.
  void start_from_below(double end, std::size_t to, std::int32_t slot);
  // Takes the next shipment, which arrives now, or ends the time for which it holds its adapters (`to` is then kStillCrossing).
  struct Arrived {
    Shipment shipment;
    double started = 0;
  };
  Arrived take();
  // How many are under way to or from a replica, and over the fabric between all of them.
  std::size_t under_way(std::size_t replica) const { return adapters_[replica].flows.size(); }
  std::size_t in_fabric() const { return in_fabric_.size(); }
  // A shipment that is under way will not come.
  void cancel(double now, std::size_t to, std::int32_t slot);

 private:
  static constexpr double kNone = std::numeric_limits<double>::infinity();

  struct Flow {
    Shipment shipment;
    double started = 0;
    double left = 1;  // share that has not arrived yet at the time `since`
    double since = 0;
    double rate = 0;         // share that arrives per second
    bool crosses = false;    // all of it has left its adapters
    std::int64_t order = 0;  // of two that arrive at one time, the one that began first is first
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
    // The last span in which it was idle, less what layers that were sent ahead have used of it.
    double idle_from = 0, idle_until = 0;
  };

  // Starts and ends within a moment count as simultaneous. Shipments that share a way speed up when another one has left it, so a head
  // start as small as a rounding error would grow with every round of a closed loop, threefold where three share.
  static double same_moment(double now, double& last) {
    if (std::abs(now - last) > kSameMoment) last = now;
    return last;
  }
  // The same for times that come from outside, which are rounded to whole moments. The last digits of when a step ends depend on how
  // many steps were summed up at once, and must not decide anything here.
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
  void leave_ways(double now, std::int32_t flow);
  void cross(double now, std::int32_t flow);
  void end(double time, std::int32_t flow);
  bool holds(const Due& due) const { return due.version == flows_[std::size_t(due.flow)].version; }
  void settle(std::size_t settled);
  void drop_outdated();
  std::int32_t first_of_this_moment();

  std::vector<Flow> flows_;
  std::vector<std::int32_t> unused_;
  std::vector<Adapter> adapters_;  // by replica: the adapters of all its devices together
  std::vector<Due> due_;           // a heap; entries of older versions mean nothing
  std::vector<std::size_t> at_this_moment_;
  std::int64_t started_ = 0;
  double moment_ = 0;                    // of the last start or end
  double reading_since_ = 0;             // `reading_since` of the last shipment that was sent ahead
  std::vector<std::int32_t> in_fabric_;  // flows that the fabric may limit
  std::vector<double> uses_;             // how much of the fabric each of these would use
};

}  // namespace engine
