// Speculation that varies from step to step: how many tokens are proposed, whether a draft reads prompts at all, and how many of its
// proposals hold. A lane whose steps all propose alike asks nothing of it.
#pragma once

#include <cstdint>

#include "engine/serving/lane/lane_sequences.h"

namespace engine {

class Proposals {
 public:
  void reset(ReplicaState& replica, LaneSequences& sequences) {
    replica_ = &replica;
    sequences_ = &sequences;
    saves_ = 0;
  }

  // Where the number of proposed tokens follows the load: the best one for the sequences that decode; and, where `length` are
  // proposed, perhaps a smaller one for a step that also reads prompts.
  int pick();
  int pick_beside_prompts(int length);
  // Where the draft reads late: before it proposes, it reads the tokens of the decoding sequences that it has not seen yet. Whether
  // there are some; and the seconds that this takes.
  bool has_to_read(int length) const { return length > 0 && sequences_->unread_by_draft; }
  double read(int length);
  // Draws for the first `decodes` sequences how many tokens each makes in this step. Returns what they make and take less.
  DecodeSet::Fewer draw(std::int64_t decodes);
  // Counts the tokens that `steps` steps made, where acceptance or the number of proposals varies.
  void count_verified(std::int64_t steps, double sequences, double made);

 private:
  Decodes decoding() const;
  // Judges by the present load whether it pays that the draft reads prompts at all.
  void begin_investment();

  ReplicaState* replica_ = nullptr;
  LaneSequences* sequences_ = nullptr;
  std::int64_t saves_ = 0;  // picoseconds that proposals save in each step, or would save
};

}  // namespace engine
