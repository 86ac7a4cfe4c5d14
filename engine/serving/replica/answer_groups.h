// Requests of which several answers are generated: what is known of them until the last is done.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/serving/sequences/sequence.h"

namespace engine {

class AnswerGroups {
 public:
  void reset() {
    groups_.clear();
    unused_.clear();
  }
  // The prompt of `first` has been read, and `answers` are generated from it.
  std::int32_t open(const Sequence& first, std::int64_t answers) {
    if (unused_.empty()) {
      unused_.push_back(std::int32_t(groups_.size()));
      groups_.emplace_back();
    }
    const std::int32_t group = unused_.back();
    unused_.pop_back();
    groups_[std::size_t(group)] = {.left = answers,
                                   .made = 0,
                                   .scheduled = first.scheduled,
                                   .first_token = first.first_token,
                                   .cached = first.cached,
                                   .preemptions = 0};
    return group;
  }
  // One of the answers is done. The last one stands for the request: true, and it is told what the others were like.
  bool done(Sequence& sequence) {
    Group& group = groups_[std::size_t(sequence.answers)];
    group.preemptions += sequence.preemptions;
    if (--group.left > 0) {
      group.made += sequence.output;
      return false;
    }
    sequence.others_made = group.made;
    sequence.scheduled = group.scheduled;
    sequence.first_token = group.first_token;
    sequence.cached = group.cached;
    sequence.preemptions = group.preemptions;
    unused_.push_back(sequence.answers);
    return true;
  }

 private:
  struct Group {
    std::int64_t left = 0;
    std::int64_t made = 0;  // tokens of those that are done
    double scheduled = 0, first_token = 0;
    std::int64_t cached = 0;
    std::int32_t preemptions = 0;
  };
  std::vector<Group> groups_;
  std::vector<std::int32_t> unused_;
};

}  // namespace engine
