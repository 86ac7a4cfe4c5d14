#include "engine/training/passes/sequence_gathers.h"

#include <algorithm>
#include <cmath>

#include "engine/model/backward_ops.h"
#include "engine/model/passes.h"

namespace engine {
namespace {

// A product and the collectives that run beside it; 0: none does.
std::uint8_t group_of(OpName name) {
  switch (name) {
    case OpName::qkv:
    case OpName::q_up:
    case OpName::kv_up:
    case OpName::mlp_reduce:  // of the layer before
      return 3;
    case OpName::gate_up:
    case OpName::up:
    case OpName::attention_reduce:
      return 5;
    default:
      return 0;
  }
}

bool reads_gathered(OpName product) {
  return product == OpName::qkv || product == OpName::q_up || product == OpName::kv_up ||
         product == OpName::gate_up || product == OpName::up;
}
// Up-projections of latents come after what is gathered for all of them.
bool starts_as_gathered(OpName product) {
  return reads_gathered(product) && product != OpName::q_up && product != OpName::kv_up;
}
bool writes_scattered(OpName product) {
  return product == OpName::attention_out || product == OpName::down;
}

// Rows that do not come in equal pieces are multiplied together.
template <class IsCut>
void cut(std::int64_t pieces, OpList& ops, IsCut&& is_cut) {
  OpList parts;
  for (PlannedOp op : ops) {
    auto* product = std::get_if<Gemm>(&op.op);
    if (product != nullptr && is_cut(op.name) && product->m % pieces == 0) {
      product->m /= pieces;
      op.calls *= double(pieces);
    }
    parts.add(op);
  }
  ops = parts;
}

// A stage that waits for no other puts nothing off.
bool puts_off_weights(const LayerChunk& chunk, const TrainSettings& train) {
  const bool alone = chunk.span.first && chunk.span.last;
  return train.schedule == Schedule::zero_bubble && !alone;
}

class SplitBackward {
 public:
  SplitBackward(const ModelShard& shard, const LayerChunk& chunk, const TrainSettings& train)
      : sharers_(shard.parallel.tp),
        taken_(std::uint16_t(train.collective_multiprocessors)),
        value_(value_bytes(shard)),
        narrow_(std::min(kActivationBytes, bytes_of(shard.dense.activations)) / kActivationBytes),
        frozen_(train.has_adapters()),
        put_off_(puts_off_weights(chunk, train)) {}

  void add_inputs(const OpList& inputs) {
    for (const PlannedOp& op : inputs) {
      if (std::holds_alternative<Collective>(op.op) && group_of(op.name) != 0) {
        add_collective(op);
      } else if (op.name == OpName::quantize_gradient) {
        casts_.add(op);
      } else {
        add_casts(op);
        add_product(op);
      }
    }
    add_casts({});
    for (const PlannedOp& op : scatters_) inputs_.add(op);
  }
  void add_weights(const OpList& weights) {
    for (PlannedOp op : weights) {
      const bool beside = std::holds_alternative<Gemm>(op.op) && reads_gathered(op.name);
      if (beside && !frozen_) op.beside = {.group = group_of(op.name), .stream = 0};
      weights_.add(op);
    }
  }
  const OpList& inputs() const { return inputs_; }
  const OpList& weights() const { return weights_; }

 private:
  Beside beside(OpName name) const {
    return {.group = group_of(name), .stream = 1, .multiprocessors = taken_};
  }

  // Gradients of outputs are gathered as products take them; those of inputs are summed up in 16 bits.
  void add_collective(PlannedOp op) {
    auto& travel = std::get<Collective>(op.op);
    if (travel.pattern == Pattern::all_gather) {
      travel.bytes *= narrow_;
      return inputs_.add(op);
    }
    travel.bytes /= narrow_;
    if (frozen_ || put_off_) return scatters_.add(op);
    op.beside = beside(op.name);
    weights_.add(op);
  }

  // The casts of a product's gradient come before it.
  void add_casts(const PlannedOp& product) {
    for (PlannedOp cast : casts_) {
      if (writes_scattered(product.name)) {
        take_share(cast);
        agree_on_scale(cast, sharers_, inputs_);
      }
      inputs_.add(cast);
    }
    casts_.clear();
  }
  void take_share(PlannedOp& cast) const {
    const double share = 1 / double(sharers_);
    if (auto* values = std::get_if<Quantize>(&cast.op)) values->rows *= share;
    if (auto* pass = std::get_if<Elementwise>(&cast.op)) {
      pass->rows *= share;
      pass->resident_bytes *= share;
    }
  }

  void add_product(PlannedOp op) {
    const auto* product = std::get_if<Gemm>(&op.op);
    if (product == nullptr || !reads_gathered(op.name) || frozen_) return inputs_.add(op);
    op.beside = {.group = group_of(op.name), .stream = 0};
    inputs_.add(op);
    PlannedOp gather = op;
    gather.name = group_of(op.name) == 3 ? OpName::mlp_reduce : OpName::attention_reduce;
    gather.family = Family::all_gather;
    gather.beside = beside(op.name);
    gather.op = Collective{.pattern = Pattern::all_gather,
                           .bytes = double(product->m * product->n) * value_ * narrow_,
                           .ranks = sharers_,
                           .library = Library::general};
    inputs_.add(gather);
  }

  std::int64_t sharers_;
  std::uint16_t taken_;
  double value_;   // bytes of a summed one
  double narrow_;  // bytes of a gathered value over those of a summed one
  bool frozen_;    // products' weights have no gradients
  bool put_off_;   // gradients of weights come later
  OpList inputs_, weights_, casts_, scatters_;
};

}  // namespace

void take_part(double parts, PlannedOp& op) {
  if (auto* product = std::get_if<Gemm>(&op.op)) {
    product->m = std::max<std::int64_t>(1, std::llround(double(product->m) / parts));
  } else if (auto* pass = std::get_if<Elementwise>(&op.op)) {
    pass->rows /= parts;
    pass->resident_bytes /= parts;
    pass->cold_bytes /= parts;
    pass->flops /= parts;
  }
}

double gathered_for_mixers(const ModelShard& shard) {
  const ModelSpec& model = *shard.model;
  if (!model.is_mla()) return 1;
  const double stream = double(model.hidden);
  const double queries = model.mla.q_rank > 0 ? double(model.mla.q_rank) : stream;
  const double gathered = queries + double(model.mla.kv_rank + model.mla.rope_dim);
  const double share = double(shard.layers.attending()) / double(shard.layers.all());
  return 1 + share * (gathered / stream - 1);
}

void agree_on_scale(const PlannedOp& cast, std::int64_t sharers, OpList& ops) {
  const auto* values = std::get_if<Quantize>(&cast.op);
  if (values == nullptr || !has_one_scale(values->format, values->group)) return;
  PlannedOp largest = cast;
  largest.family = Family::all_reduce;
  largest.op = Collective{
      .pattern = Pattern::all_reduce, .bytes = 4, .ranks = sharers, .library = Library::general};
  ops.add(largest);
}

void multiply_in_pieces(std::int64_t pieces, OpList& forward) {
  cut(pieces, forward,
      [](OpName name) { return starts_as_gathered(name) || writes_scattered(name); });
}
void multiply_gathered_in_pieces(std::int64_t pieces, OpList& inputs) {
  cut(pieces, inputs, writes_scattered);
}

void sum_beside_weights(const LayerChunk& chunk, const TrainSettings& train, OpList& inputs,
                        OpList& weights) {
  // Plain PyTorch waits; frozen weights have no gradients to go beside, and those that are put off come later.
  if (!train.fused || train.has_adapters() || puts_off_weights(chunk, train)) return;
  const auto taken = std::uint16_t(train.collective_multiprocessors);
  OpList others, sums;
  for (PlannedOp op : inputs) {
    if (!std::holds_alternative<Collective>(op.op) || group_of(op.name) == 0) {
      others.add(op);
      continue;
    }
    op.beside = {.group = group_of(op.name), .stream = 1, .multiprocessors = taken};
    sums.add(op);
  }
  for (PlannedOp op : weights) {
    const bool beside = std::holds_alternative<Gemm>(op.op) && reads_gathered(op.name);
    if (beside) op.beside = {.group = group_of(op.name), .stream = 0};
    sums.add(op);
  }
  inputs = others;
  weights = sums;
}

void gather_again(const ModelShard& shard, const LayerChunk& chunk, const TrainSettings& train,
                  OpList& inputs, OpList& weights) {
  SplitBackward split(shard, chunk, train);
  split.add_inputs(inputs);
  split.add_weights(weights);
  inputs = split.inputs();
  weights = split.weights();
}

}  // namespace engine
