// The operations of one step of a model on one device of each pipeline stage.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "engine/base/check.h"
#include "engine/model/batch_shape.h"
#include "engine/model/model_shard.h"
#include "engine/model/op.h"

namespace engine {

// A list without allocation; the longest model needs about thirty entries, with gradients, casts and adapters more than a hundred.
class OpList {
 public:
  static constexpr std::size_t kMost = 160;

  void add(const PlannedOp& op) {
    if (op.calls <= 0) return;
    check(size_ < kMost, "an op list holds every op of a step");
    slots_[size_++].op = op;
  }
  void add(OpName name, Family family, double calls, const Op& op, Grows grows = Grows::tokens) {
    add({.name = name, .family = family, .calls = calls, .grows = grows, .op = op});
  }
  // All from there on run beside something longer.
  void hide_floors(std::size_t from) {
    for (std::size_t i = from; i < size_; ++i) slots_[i].op.hides_floor = true;
  }
  // All from there on, to be changed.
  std::span<PlannedOp> from(std::size_t first) { return {&slots_[0].op + first, size_ - first}; }
  void clear() { size_ = 0; }
  std::size_t size() const { return size_; }
  const PlannedOp* begin() const { return &slots_[0].op; }
  const PlannedOp* end() const { return begin() + size_; }

 private:
  // Left as they are until they are used: every step makes a list, and few are long.
  union Slot {
    Slot() {}
    PlannedOp op;
  };
  static_assert(sizeof(Slot) == sizeof(PlannedOp));
  std::array<Slot, kMost> slots_;
  std::size_t size_ = 0;
};

// The layers that a step runs through: those of one pipeline stage, or all. Stages may differ in layers.
struct StageSpan {
  LayerCounts layers;
  bool first = true;  // with the embedding
  bool last = true;   // with logits and sampling; else its output goes to the next stage

  bool operator==(const StageSpan&) const = default;
};

// What depends on the number of tokens only: projections, norms, collectives, logits. Without a span: of all stages, one
// after another.
void token_ops(const ModelShard& shard, const StageSpan& span, const BatchShape& batch,
               OpList& ops);
void token_ops(const ModelShard& shard, const BatchShape& batch, OpList& ops);

// What depends on how much is attended to.
void attention_ops(const ModelShard& shard, const StageSpan& span, const BatchShape& batch,
                   OpList& ops);
void attention_ops(const ModelShard& shard, const BatchShape& batch, OpList& ops);

}  // namespace engine
