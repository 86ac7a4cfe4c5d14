// Requests whose images encoders see to before anything else. `fleet/encoders.h` says when these have done so.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/serving/fleet/encoders.h"
#include "engine/serving/mechanisms/fleet.h"

namespace engine {

class Images {
 public:
  // True where there are encoders.
  bool start(Fleet& fleet);

  // Makes a sequence wait for its images. Its replica is known from the start.
  void await(std::size_t replica, std::int32_t slot, double now);
  // Its replica has failed.
  void withdraw(std::size_t replica, std::int32_t slot) { encoders_.withdraw(replica, slot); }
  // Encoders that are free take those whose images wait.
  void start_encoders();
  // Seconds that a request which came at `now` would wait for its images.
  double wait(double now) const { return encoders_.would_be_there(now) - now; }

  const Encoders& encoders() const { return encoders_; }

 private:
  Fleet* fleet_ = nullptr;
  Encoders encoders_;
};

}  // namespace engine
