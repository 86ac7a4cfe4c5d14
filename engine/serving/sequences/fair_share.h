// Whose turn it is where tenants share an engine: start-time fair queueing over tokens (Goyal, Vin and
// Cheng 1996). A tenant that was idle gets no credit for it, and one that sends much waits behind those that send little.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace engine {

class FairShare {
 public:
  void reset() {
    due_.clear();
    now_ = 0;
  }
  // Place in the queue of a request that arrives. Its prompt is charged to the tenant at once ...
  double place(std::int64_t tenant, std::int64_t prompt) {
    if (std::size_t(tenant) >= due_.size()) due_.resize(std::size_t(tenant) + 1, 0);
    double& due = due_[std::size_t(tenant)];
    const double start = std::max(now_, due);
    due = start + double(prompt);
    return start;
  }
  // The place that it would get.
  double place_now(std::int64_t tenant) const {
    return std::size_t(tenant) < due_.size() ? std::max(now_, due_[std::size_t(tenant)]) : now_;
  }
  // ... its answer when it is done, since its length is not known before.
  void answered(std::int64_t tenant, std::int64_t output) {
    due_[std::size_t(tenant)] += double(output);
  }
  // A request with this place in the queue is being served.
  void serve(double place) { now_ = std::max(now_, place); }

 private:
  std::vector<double> due_;  // by tenant: place of a request that follows all it has sent
  double now_ = 0;           // greatest place served so far
};

}  // namespace engine
