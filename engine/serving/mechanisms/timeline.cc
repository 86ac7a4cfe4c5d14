#include "engine/serving/mechanisms/timeline.h"

namespace engine {

bool Timeline::start(const OutputSettings& settings, std::vector<TimelineRow>* rows) {
  rows_ = settings.timeline.value > 0 ? rows : nullptr;
  distance_ = settings.timeline.value;
  most_ = settings.timeline_moments / 2 * 2;
  moments_ = 0;
  tokens_before_.clear();
  find_next();
  return rows_ != nullptr;
}

void Timeline::find_next() {
  // A product, not a sum: the thousandth moment is a thousand distances from the start.
  next_ = rows_ != nullptr ? double(moments_ + 1) * distance_ : kNever;
}

void Timeline::write(const std::vector<Replica>& replicas, std::size_t held) {
  if (moments_ == most_) {
    halve();
    return find_next();
  }
  tokens_before_.resize(replicas.size());
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    TimelineRow row = replicas[i].row_at(next_, tokens_before_[i]);
    row.output = row.output / distance_;
    if (i == 0) row.waiting += std::int64_t(held);
    rows_->push_back(row);
  }
  ++moments_;
  find_next();
}

// Keeps every second moment; its rows say what happened since the one before the one that goes.
void Timeline::halve() {
  std::vector<TimelineRow>& rows = *rows_;
  const std::size_t replicas = tokens_before_.size();
  moments_ /= 2;
  distance_ *= 2;
  for (std::size_t moment = 0; moment < std::size_t(moments_); ++moment) {
    for (std::size_t i = 0; i < replicas; ++i) {
      const TokensPerSecond before = rows[2 * moment * replicas + i].output;
      TimelineRow kept = rows[(2 * moment + 1) * replicas + i];
      kept.output = (before + kept.output) / 2;
      rows[moment * replicas + i] = kept;
    }
  }
  rows.resize(std::size_t(moments_) * replicas);
}

}  // namespace engine
