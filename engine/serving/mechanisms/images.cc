#include "engine/serving/mechanisms/images.h"

namespace engine {

bool Images::start(Fleet& fleet) {
  fleet_ = &fleet;
  encoders_.reset(fleet.problem->encoders);
  return encoders_.any();
}

void Images::await(std::size_t index, std::int32_t slot, double now) {
  if (encoders_.batches()) {
    encoders_.enqueue({.replica = index, .slot = slot, .arrival = now});
    return start_encoders();
  }
  fleet_->transfers.start_from_below(encoders_.take(now), index, slot);
}

void Images::start_encoders() {
  Transfers& transfers = fleet_->transfers;
  const auto sent = [&transfers](const Encoders::Request& request, double there) {
    transfers.start_from_below(there, request.replica, request.slot);
  };
  while (const double free = encoders_.start(fleet_->now, sent)) {
    transfers.start_from_below(free, kToEncoders, -1);
  }
}

}  // namespace engine
