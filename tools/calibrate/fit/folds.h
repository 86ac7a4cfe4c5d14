// Samples held out in turn: each belongs to one of five folds.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

namespace tools {

inline constexpr std::size_t kFolds = 5;

// The fold of each sample where samples of one shape stay together, so that a held out shape is one
// that the fit has not seen.
inline std::vector<std::size_t> folds_by_shape(const std::vector<std::vector<double>>& shapes) {
  std::map<std::vector<double>, std::size_t> fold_of;
  for (const auto& shape : shapes) fold_of.emplace(shape, 0);
  std::size_t next = 0;
  for (auto& [shape, fold] : fold_of) fold = next++ % kFolds;
  std::vector<std::size_t> folds;
  for (const auto& shape : shapes) folds.push_back(fold_of.at(shape));
  return folds;
}

}  // namespace tools
