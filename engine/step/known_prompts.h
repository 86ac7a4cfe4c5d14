// Times of the attention of a step's prompts where these are several, or one that goes on: too many different ones to keep them
// all. Many come again: further answers to a prompt go on from its last whole block, and every design of a sweep meets the same
// requests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
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
  struct Timed {
    KernelSums sums;
    std::vector<KernelRow> rows;  // of any phase
  };
  struct Known {
    const KernelSums& sums;
    std::span<const KernelRow> rows;
  };

  // They follow from something else from now on. Memory stays.
  void forget() {
    places_.assign(places_.size(), Place{});
    kept_.clear();
    rows_.clear();
  }
  // What is known of prompts until the next are asked for; time(timed) fills in what is not.
  template <class Time>
  Known at(const Shape& shape, Time time) {
    if (places_.empty()) places_.resize(kPlaces);
    const std::uint64_t mixed = mix(shape);
    // Its own place or, where other shapes have that one, the first free one of those beside it.
    const std::size_t own = std::size_t(mixed >> (64 - kPlaceBits));
    std::size_t beside = 0;
    for (; beside < kPlacesOfOne && places_[own ^ beside].kept >= 0; ++beside) {
      const Kept& kept = kept_[std::size_t(places_[own ^ beside].kept)];
      if (kept.shape == shape) return {kept.sums, {rows_.data() + kept.first_row, kept.rows}};
    }
    Place& place = places_[beside < kPlacesOfOne ? own ^ beside : own];
    // The first shape of a place is kept at once, since the next point of a sweep meets it again. Another one takes the place only when it
    // comes a second time: most never do.
    const bool keeps = place.kept < 0 || place.missed == std::uint32_t(mixed);
    place.missed = std::uint32_t(mixed);
    timed_.rows.clear();
    time(timed_);
    if (keeps) keep(shape, place);
    return {timed_.sums, timed_.rows};
  }

 private:
  static constexpr int kPlaceBits = 12;  // two megabytes when all are taken
  static constexpr std::size_t kPlaces = std::size_t{1} << kPlaceBits;
  // With one place each, shapes that share it are timed in turn: 7% of those that replicas with shared experts ask for in a benchmark.
  static constexpr std::size_t kPlacesOfOne = 4;
  struct Place {
    std::int32_t kept = -1;    // in kept_; -1: none
    std::uint32_t missed = 0;  // of the shape that was last asked for here and not known
  };
  struct Kept {
    Shape shape;
    KernelSums sums;
    std::size_t first_row = 0, rows = 0;  // in rows_
  };

  static std::uint64_t mix(const Shape& shape) {
    return std::uint64_t(shape.tokens) * 0x9e3779b97f4a7c15ull +
           std::uint64_t(shape.kv_tokens) * 0xc2b2ae3d27d4eb4full +
           std::uint64_t(shape.sequences) * 0x165667b19e3779f9ull +
           std::uint64_t(shape.pairs) * 0x27d4eb2f165667c5ull;
  }
  // Keeps what was just timed, in place of what was there.
  void keep(const Shape& shape, Place& place) {
    if (place.kept < 0) {
      place.kept = std::int32_t(kept_.size());
      kept_.emplace_back();
    }
    Kept& kept = kept_[std::size_t(place.kept)];
    kept.shape = shape;
    kept.sums = timed_.sums;
    // A model has as many kernels whatever the shape; where it has not, it has new room.
    if (kept.rows != timed_.rows.size()) {
      kept.first_row = rows_.size();
      kept.rows = timed_.rows.size();
      rows_.resize(rows_.size() + kept.rows);
    }
    std::ranges::copy(timed_.rows, rows_.begin() + std::ptrdiff_t(kept.first_row));
  }

  std::vector<Place> places_;  // empty before anything was asked for
  std::vector<Kept> kept_;
  std::vector<KernelRow> rows_;
  Timed timed_;  // last
};

}  // namespace engine
