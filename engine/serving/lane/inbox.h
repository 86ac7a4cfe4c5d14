// Requests that have arrived and that the engine's loop has not taken in yet: it looks for new ones every so many decode steps
// (SGLang), or lets prompts wait for others while sequences decode (TensorRT-LLM).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "engine/base/small_list.h"
#include "engine/serving/settings/serving_settings.h"

namespace engine {

class Inbox {
 public:
  // Nothing is held where the rule says so by its defaults.
  void reset(const ServingSettings& settings, bool possible) {
    interval_ = possible ? settings.receive_interval : 1;
    wait_ = possible ? settings.batch_wait : 0;
    enough_ = settings.batch_wait_share * double(settings.step_budget());
    clear();
  }
  // With what was inside: the replica has failed, or begins anew.
  void clear() {
    held_.clear();
    steps_ = looked_ = tokens_ = 0;
  }
  bool holds() const { return interval_ > 1 || wait_ > 0; }
  bool empty() const { return held_.empty(); }
  std::int64_t size() const { return std::int64_t(held_.size()); }

  // A request whose prompt has so many tokens. The loop could first take it in after `boundary` more steps, with `decoding` sequences
  // that decode. Steps of a stretch under way are not counted yet.
  void add(std::int32_t slot, std::int64_t tokens, std::int64_t boundary, std::int64_t decoding) {
    const std::int64_t first = steps_ + boundary;
    const std::int64_t together = held_.empty() ? -1 : held_.back().due;
    std::int64_t due = first;
    if (wait_ > 0) {
      const bool joins = together >= first;
      due = joins ? together : first + wait_;
      tokens_ = tokens + (joins ? tokens_ : 0);
      if (double(tokens_ + decoding) >= enough_) due = first;
    }
    // The loop looks after every `interval_` steps since it last read a prompt or rested.
    const std::int64_t past = (due - looked_) % interval_;
    if (past != 0) due += interval_ - past;
    for (Held& other : held_) {
      if (other.due >= first) other.due = std::min(other.due, due);
    }
    held_.push_back({slot, due});
  }
  // Steps from the last boundary that was counted until the first of them is taken in; at least one once that boundary is over.
  std::int64_t steps_left() const {
    return held_.empty() ? std::numeric_limits<std::int64_t>::max() : held_.front().due - steps_;
  }

  // The loop has taken so many steps. After prompts it looks at once.
  enum class Steps : std::uint8_t { decodes, prompts };
  void count(std::int64_t steps, Steps kind) {
    steps_ += steps;
    if (kind == Steps::prompts) looked_ = steps_;
  }
  // At a boundary: hands those that are due to take(slot), or all where no sequence decodes.
  enum class Others : std::uint8_t { decode, rest };
  template <class Take>
  void open(Others others, Take take) {
    const bool all = others == Others::rest || (interval_ > 1 && looked_ == steps_);
    if (others == Others::rest) looked_ = steps_;
    std::size_t taken = 0;
    while (taken < held_.size() && (all || held_[taken].due <= steps_)) take(held_[taken++].slot);
    held_.erase(held_.begin(), held_.begin() + std::ptrdiff_t(taken));
  }
  // How many would be before a request of this order; all of them where the queue has none.
  template <class Before>
  std::int64_t count_before(Before before) const {
    return std::count_if(held_.begin(), held_.end(),
                         [&](const Held& one) { return before(one.slot); });
  }

 private:
  struct Held {
    std::int32_t slot = -1;
    std::int64_t due = 0;  // in steps
  };
  std::int64_t interval_ = 1, wait_ = 0;
  double enough_ = 0;  // tokens of a step that need not wait for more
  SmallList<Held, 2> held_;
  std::int64_t steps_ = 0, looked_ = 0;
  std::int64_t tokens_ = 0;  // prompts that wait together
};

}  // namespace engine
