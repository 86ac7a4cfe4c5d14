// Requests that get several answers to one prompt: these begin when it has been read, and are told together when the last is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/serving/mechanisms/fleet.h"
#include "engine/serving/replica/answer_groups.h"

namespace engine {

class SeveralAnswers {
 public:
  // True where requests ask for more than one answer.
  bool start(Fleet& fleet);

  // A replica has read prompts, or their KV has come: their other answers begin, each with an output of its own length.
  void begin_others(std::size_t replica);
  AnswerGroups& groups() { return groups_; }

 private:
  Fleet* fleet_ = nullptr;
  AnswerGroups groups_;
  std::vector<std::int64_t> outputs_;  // of the answers that begin
};

}  // namespace engine
