// The sequences of a lane as they come and go: admitted from the queue or landed from another pool, read,
// decoding, preempted, done. Blocks are taken and given back here.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/serving/adapter_count.h"
#include "engine/serving/decode_set.h"
#include "engine/serving/replica_state.h"
#include "engine/serving/token_gaps.h"

namespace engine {

class LaneSequences {
 public:
  void reset(ReplicaState& replica);

  DecodeSet set;
  TokenGaps gaps;
  AdapterCount adapters;  // of those that run
  // What a policy sees now.
  const ReplicaView& view();
  Sequence& at(std::int32_t slot) { return replica_->sequences[std::size_t(slot)]; }
  // The blocks of a sequence, for which seats need not be counted.
  const ReplicaView& blocks() const { return *view_; }

  void hold_prefixes(const StepPlan& plan);
  void admit(const Admission& admission, double now);
  // True where somebody did.
  bool join_landed(double now);
  void begin_decoding(std::int32_t slot, double now);
  void preempt(std::int32_t slot, bool to_the_end);
  void finish_due();
  // The reference: sums over the lane, counted again.
  void recount();

  template <class Visit>
  void each_decode(Visit visit) {
    for (std::int32_t slot = set.running().first; slot >= 0; slot = at(slot).after) {
      if (at(slot).decoding) visit(at(slot));
    }
  }

 private:
  void join(std::int32_t slot);
  void leave(std::int32_t slot);
  void finish(std::int32_t slot);
  void count_waste(const Sequence& sequence);

  ReplicaState* replica_ = nullptr;
  std::optional<ReplicaView> view_;  // of the present run
};

}  // namespace engine
