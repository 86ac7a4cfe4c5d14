#include "sweep/space/row_sink.h"

#include <algorithm>
#include <numeric>

namespace sweep {

std::uint64_t Tally::rows() const {
  return std::accumulate(by_status.begin(), by_status.end(), std::uint64_t{0});
}

std::uint64_t Tally::positions() const {
  return std::accumulate(rejected.begin(), rejected.end(), rows() + not_applicable);
}

void Tally::count(const engine::Outcome& outcome) {
  ++by_status[static_cast<std::size_t>(outcome.status)];
  if (outcome.status != engine::Status::ok) {
    ++by_class[static_cast<std::size_t>(outcome.reason_class)];
  }
}

void Tally::add(const Tally& other) {
  for (std::size_t i = 0; i < by_status.size(); ++i) by_status[i] += other.by_status[i];
  for (std::size_t i = 0; i < by_class.size(); ++i) by_class[i] += other.by_class[i];
  rejected.resize(std::max(rejected.size(), other.rejected.size()));
  for (std::size_t i = 0; i < other.rejected.size(); ++i) rejected[i] += other.rejected[i];
  not_applicable += other.not_applicable;
  reused += other.reused;
}

}  // namespace sweep
