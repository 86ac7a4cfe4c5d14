#include "engine/training/train_ops.h"

#include "engine/model/backward_ops.h"

namespace engine {
namespace {

// Bytes a logit moves in the loss: it is turned into 32 bits, read for the maximum and for the sum of exponentials, and
// its probability is kept.
constexpr double kLossBytes = 14;

// Where a pass is several kernels (PyTorch 2.11, eager), it moves so many times the bytes of one fused kernel: medians of
// what eager steps take longer than compiled ones on an H200, hidden sizes of 2,048 to 8,192. Rotations are written as
// slices, products, sums and a concatenation.
struct Unfused {
  Family family;
  double forward, backward;
};
constexpr Unfused kUnfused[] = {
    {Family::norm, 1.5, 1.2}, {Family::rope, 18, 11}, {Family::act, 1.7, 1.9}};

void unfuse(double Unfused::*times, OpList& ops) {
  OpList unfused;
  for (PlannedOp op : ops) {
    auto* pass = std::get_if<Elementwise>(&op.op);
    for (const Unfused& entry : kUnfused) {
      if (pass == nullptr || op.family != entry.family) continue;
      pass->resident_bytes *= entry.*times;
      pass->cold_bytes *= entry.*times;
    }
    unfused.add(op);
  }
  ops = unfused;
}

BatchShape batch_of(const TrainSettings& train, const ModelSpec& model, bool last) {
  BatchShape batch;
  add_prefill(batch, train.micro_batch, train.sequence, 0, model.window);
  batch.sampled = last ? batch.prefill_tokens : 0;
  return batch;
}

// Turns the operations of a served step into those of one that trains: the loss in place of sampling; norms split by
// sequence, with a scatter and a gather in place of each sum.
class Trained {
 public:
  Trained(const ModelShard& shard, const TrainSettings& train)
      : shard_(shard),
        tokens_(double(train.micro_batch * train.sequence)),
        split_(train.sequence_parallel ? double(shard.parallel.tp) : 1) {}

  void add(PlannedOp op, OpList& ops) const {
    switch (op.name) {
      case OpName::stage_transfer:
        return;
      case OpName::logits_gather:
        // The maximum, the sum and the target's logit of each token, in 32 bits.
        op.family = Family::all_reduce;
        op.calls = 3;
        op.op = Collective{
            .pattern = Pattern::all_reduce, .bytes = 4 * tokens_, .ranks = shard_.parallel.tp};
        return ops.add(op);
      case OpName::sampling:
        op.name = OpName::loss;
        op.family = Family::residual;
        op.op = loss();
        return ops.add(op);
      default:
        return split_ > 1 ? add_split(op, ops) : ops.add(op);
    }
  }

 private:
  Elementwise loss() const {
    const double logits = tokens_ * double(shard_.vocabulary);
    return {.rows = tokens_,
            .resident_bytes = 0,
            .cold_bytes = kLossBytes * logits,
            .flops = 3 * logits};
  }

  void add_split(PlannedOp op, OpList& ops) const {
    if (auto* sum = std::get_if<Collective>(&op.op);
        sum != nullptr && sum->pattern == Pattern::all_reduce) {
      sum->library = Library::general;
      sum->pattern = Pattern::reduce_scatter;
      op.family = Family::reduce_scatter;
      ops.add(op);
      sum->pattern = Pattern::all_gather;
      op.family = Family::all_gather;
      return ops.add(op);
    }
    if (op.name == OpName::input_norm || op.name == OpName::mlp_norm ||
        op.name == OpName::final_norm || op.name == OpName::embedding) {
      auto& pass = std::get<Elementwise>(op.op);
      pass.rows /= split_;
      pass.resident_bytes /= split_;
      pass.cold_bytes /= split_;
      pass.flops /= split_;
    }
    ops.add(op);
  }

  const ModelShard& shard_;
  double tokens_;
  double split_;  // devices that norms are split over
};

bool at_an_end(OpName name) {
  return name == OpName::embedding || name == OpName::final_norm || name == OpName::logits ||
         name == OpName::logits_gather || name == OpName::loss;
}

bool is_recomputed(OpName name, Recompute what) {
  switch (what) {
    case Recompute::none:
      return false;
    case Recompute::attention:
      return name == OpName::attention || name == OpName::attention_window;
    case Recompute::full:
      return !at_an_end(name);
  }
  return false;
}

}  // namespace

void pass_ops(const ModelShard& shard, const StageSpan& span, const TrainSettings& train,
              PassOps& ops) {
  const BatchShape batch = batch_of(train, *shard.model, span.last);
  OpList served;
  token_ops(shard, span, batch, served);
  attention_ops(shard, span, batch, served);
  for (OpList* list : {&ops.forward, &ops.recomputed, &ops.inputs, &ops.weights}) list->clear();
  const Trained trained(shard, train);
  for (const PlannedOp& op : served) trained.add(op, ops.forward);
  for (const PlannedOp& op : ops.forward) {
    if (is_recomputed(op.name, train.recompute)) ops.recomputed.add(op);
  }
  backward_ops(ops.forward, ops.inputs, ops.weights);
  if (train.fused) return;
  unfuse(&Unfused::forward, ops.forward);
  unfuse(&Unfused::forward, ops.recomputed);
  unfuse(&Unfused::backward, ops.inputs);
}

Collective stage_transfer(const ModelShard& shard, const TrainSettings& train) {
  constexpr double value_bytes = 2;
  const Parallelism& parallel = shard.parallel;
  return {.pattern = Pattern::send_recv,
          .bytes = double(train.micro_batch * train.sequence) * double(shard.model->hidden) *
                   value_bytes / double(parallel.tp),
          .ranks = 2,
          // Devices that share layers lie next to one another, then replicas, then stages.
          .stride = parallel.tp * parallel.dp};
}

}  // namespace engine
