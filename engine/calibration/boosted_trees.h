// What the measured calls of a family have in common beyond its form: a sum of small decision trees over
// features of the shape. Libraries choose kernels by rules; trees are good at finding such rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/calibration/coordinates.h"
#include "engine/calibration/features.h"

namespace engine {

// Every tree asks six questions, the same at every node of a level, so that the answers are the bits of
// a leaf's number and nothing has to be guessed by the processor.
constexpr std::size_t kTreeDepth = 6;
constexpr std::size_t kTreeLeaves = std::size_t(1) << kTreeDepth;
constexpr double kLeafUnit =
    1e-4;  // leaves are whole multiples of this: logarithms of a ratio of times

struct BoostedTrees {
  Features features = Features::none;
  double processors = 1;  // multiprocessors of the measured device
  // One entry a question, kTreeDepth a tree: is feature `asked` above `limit`?
  std::vector<std::uint8_t> asked;
  std::vector<double> limit;
  std::vector<std::int16_t> leaves;  // kTreeLeaves a tree

  bool empty() const { return asked.empty(); }
  std::size_t size() const { return asked.size() / kTreeDepth; }

  // Log of measured over fitted time. Contexts of a decode batch vary smoothly: there the trees speak
  // at four contexts an octave, and in between the answer is linear.
  double at(const Coordinates& shape) const;

  // Sum over the trees for given features.
  double at(const FeatureValues& values) const;

  bool operator==(const BoostedTrees&) const = default;
};

}  // namespace engine
