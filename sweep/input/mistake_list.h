// Mistakes as they are found: the first ones in full, the rest only counted. Thousands are not corrected at once, and a hostile file may
// have as many as it has letters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/result.h"

namespace sweep {

class MistakeList {
 public:
  static constexpr std::size_t kMostKept = 50;
  static constexpr std::size_t kMostLetters = 2000;  // of a message: what it quotes may be long

  void add(engine::Mistake found) {
    if (full()) {
      more_ += found.stands_for;
      return;
    }
    shorten(found.what);
    shorten(found.hint);
    // A library file named twice is wrong once.
    if (std::find(kept_.begin(), kept_.end(), found) == kept_.end()) {
      kept_.push_back(std::move(found));
    }
  }
  void add(const std::vector<engine::Mistake>& found) {
    for (const engine::Mistake& mistake : found) add(mistake);
  }

  // Further ones are only counted, so there is no use in finding good words for them.
  bool full() const { return kept_.size() >= kMostKept; }
  bool empty() const { return kept_.empty(); }
  std::size_t size() const { return kept_.size() + more_; }

  // The mistakes that were kept and, where there were more, how many.
  std::vector<engine::Mistake> finish() && {
    if (more_ > 0) kept_.push_back(rest());
    return std::move(kept_);
  }
  // The same with the kept ones in another order.
  template <class Sort>
  std::vector<engine::Mistake> finish_sorted(Sort sort) && {
    kept_ = sort(std::move(kept_));
    return std::move(*this).finish();
  }

 private:
  static void shorten(std::string& text) {
    if (text.size() <= kMostLetters) return;
    std::size_t end = kMostLetters;
    // Not inside a character of several bytes.
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    text.replace(end, std::string::npos, "... (shortened)");
  }

  engine::Mistake rest() const {
    return {{kept_.front().where.file, 0, 0},
            "and " + std::to_string(more_) + (more_ == 1 ? " more mistake" : " more mistakes"),
            "correct these first",
            more_};
  }

  std::vector<engine::Mistake> kept_;
  std::size_t more_ = 0;
};

}  // namespace sweep
