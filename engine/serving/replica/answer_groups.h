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
  // `answers` are generated from a prompt that has been read.
  std::int32_t open(std::int64_t answers) {
    if (unused_.empty()) {
      unused_.push_back(std::int32_t(groups_.size()));
      groups_.emplace_back();
    }
    const std::int32_t group = unused_.back();
    unused_.pop_back();
    groups_[std::size_t(group)] = {.left = answers};
    return group;
  }
  // Some are still being generated; all are done; or all are over, and some were given up.
  enum class Left : std::uint8_t { some, none, none_complete };
  // One of the answers is done. The last one stands for the request, and is told what the others were like.
  Left done(Sequence& sequence) {
    Group& group = groups_[std::size_t(sequence.answers)];
    if (sequence.branches > 1) group.first = journey_of(sequence);
    group.preemptions += sequence.preemptions;
    if (--group.left > 0) {
      group.made += sequence.output;
      return Left::some;
    }
    sequence.others_made = group.made;
    take_journey(sequence, group.first);
    sequence.preemptions = group.preemptions;
    unused_.push_back(sequence.answers);
    return group.given_up ? Left::none_complete : Left::none;
  }
  // One of the answers was given up: its request will be, with the last of them.
  Left give_up(Sequence& sequence) {
    groups_[std::size_t(sequence.answers)].given_up = true;
    return done(sequence);
  }

 private:
  // How the prompt was read, and how it came to where the answers are written: known of the one that it was read for.
  struct PromptJourney {
    double scheduled = 0, first_token = 0, read = -1, received = -1;
    std::int64_t cached = 0, carried = 0;
    std::int32_t from_replica = -1;
  };
  static PromptJourney journey_of(const Sequence& first) {
    return {.scheduled = first.scheduled,
            .first_token = first.first_token,
            .read = first.read,
            .received = first.received,
            .cached = first.cached,
            .carried = first.carried,
            .from_replica = first.from_replica};
  }
  static void take_journey(Sequence& sequence, const PromptJourney& first) {
    sequence.scheduled = first.scheduled;
    sequence.first_token = first.first_token;
    sequence.read = first.read;
    sequence.received = first.received;
    sequence.cached = first.cached;
    sequence.carried = first.carried;
    sequence.from_replica = first.from_replica;
  }
  struct Group {
    std::int64_t left = 0;
    std::int64_t made = 0;  // tokens of those that are done
    PromptJourney first;
    std::int32_t preemptions = 0;
    bool given_up = false;
  };
  std::vector<Group> groups_;
  std::vector<std::int32_t> unused_;
};

}  // namespace engine
