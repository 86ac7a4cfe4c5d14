// The adapters that a replica keeps on its devices: those that requests inside it need stay, of the others the one that
// was needed longest ago makes room.
#pragma once

#include <cstdint>
#include <limits>
#include <list>
#include <unordered_map>
#include <vector>

namespace engine {

class AdapterCache {
 public:
  struct Setup {
    std::int64_t slots = 1;   // 0: as many as there are adapters
    double load_seconds = 0;  // of one adapter; one load follows another
    double latency = 0;
  };
  void reset(const Setup& setup);
  // The replica has failed: no adapter is loaded, and no request waits for one.
  void lose_all() { reset(setup_); }

  static constexpr double kNoRoom = std::numeric_limits<double>::infinity();
  // A request inside needs the adapter from `now` on: when it is there. `kNoRoom`: every slot is needed by others, and
  // nothing has changed.
  double need(std::int64_t adapter, double now);
  // The request is done.
  void release(std::int64_t adapter);
  bool holds(std::int64_t adapter) const { return entries_.contains(adapter); }

  // Requests that wait for room, in the order in which they came.
  std::vector<std::int32_t> waiting;

 private:
  struct Entry {
    std::int64_t requests = 0;
    double ready = 0;
    std::list<std::int64_t>::iterator unused;  // its place, where no request needs it
  };
  Setup setup_;
  std::unordered_map<std::int64_t, Entry> entries_;
  std::list<std::int64_t> unused_;  // longest unused first
  double link_free_ = 0;
};

}  // namespace engine
