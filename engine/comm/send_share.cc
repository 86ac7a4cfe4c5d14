#include "engine/comm/send_share.h"

#include <algorithm>

#include "engine/comm/collective_time.h"

namespace engine {

double share_of_sends(SendWay way, const Fabric& fabric, const Device& device,
                      const Calibration* calibration) {
  const Collective send{.pattern = Pattern::send_recv,
                        .bytes = 64e6,
                        .ranks = 2,
                        .per_node = way == SendWay::inside_node ? 2 : 1};
  const auto time = [&](const Calibration* by) {
    return collective_time(send, fabric, device, by).total();
  };
  return std::min(1.0, time(nullptr) / time(calibration));
}

}  // namespace engine
