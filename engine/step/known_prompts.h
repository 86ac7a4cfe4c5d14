// Times of the attention of a step's prompts where these are several, or one that goes on: too many different ones to keep them
// all. Many come again: further answers to a prompt go on from its last whole block, and every design of a sweep meets the same
// requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/model/batch_shape.h"
#include "engine/step/kernel_row.h"
#include "engine/step/kernel_sums.h"

namespace engine {

class KnownPrompts {
 public:
  // All that the time follows from.
  struct Shape {
    std::int64_t sequences = 0, tokens = 0;
    double pairs = 0, kv_tokens = 0, window_pairs = 0, window_kv_tokens = 0;

    static Shape of(const BatchShape& batch) {
      return {.sequences = batch.prefill_sequences,
              .tokens = batch.prefill_tokens,
              .pairs = batch.prefill_pairs,
              .kv_tokens = batch.prefill_kv_tokens,
              .window_pairs = batch.prefill_window_pairs,
              .window_kv_tokens = batch.prefill_window_kv_tokens};
    }
    // The prompts without anything beside them.
    BatchShape batch() const {
      return {.prefill_sequences = sequences,
              .prefill_tokens = tokens,
              .prefill_pairs = pairs,
              .prefill_kv_tokens = kv_tokens,
              .prefill_window_pairs = window_pairs,
              .prefill_window_kv_tokens = window_kv_tokens};
    }
    bool operator==(const Shape&) const = default;
  };
  struct Known {
    Shape shape;
    KernelSums sums;
    std::vector<KernelRow> rows;  // of any phase
  };

  // They follow from something else from now on. Memory stays.
  void forget() {
    if (count_ > 0) places_.assign(places_.size(), kNobody);
    count_ = 0;
  }
  // What is known of prompts; time(known) fills in what is not.
  template <class Time>
  const Known& at(const Shape& shape, Time time) {
    if (places_.empty()) places_.assign(kPlaces, kNobody);
    std::int32_t& place = places_[place_of(shape)];
    if (place != kNobody && known_[std::size_t(place)].shape == shape) {
      return known_[std::size_t(place)];
    }
    if (place == kNobody) {
      place = count_++;
      if (known_.size() < std::size_t(count_)) known_.emplace_back();
    }
    // Who stood here has not come again since, or comes by turns with this one.
    Known& known = known_[std::size_t(place)];
    known.shape = shape;
    known.rows.clear();
    time(known);
    return known;
  }

 private:
  static constexpr std::int32_t kNobody = -1;
  static constexpr int kPlaceBits = 12;  // some two megabytes when all are taken
  static constexpr std::size_t kPlaces = std::size_t{1} << kPlaceBits;

  static std::size_t place_of(const Shape& shape) {
    const std::uint64_t mixed = std::uint64_t(shape.tokens) * 0x9e3779b97f4a7c15ull +
                                std::uint64_t(shape.kv_tokens) * 0xc2b2ae3d27d4eb4full +
                                std::uint64_t(shape.sequences) * 0x165667b19e3779f9ull;
    return std::size_t(mixed >> (64 - kPlaceBits));
  }

  std::vector<std::int32_t> places_;  // in known_; empty before anything was asked for
  std::vector<Known> known_;          // the first `count_` of them
  std::int32_t count_ = 0;
};

}  // namespace engine
