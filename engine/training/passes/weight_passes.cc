#include "engine/training/passes/weight_passes.h"

#include <algorithm>

#include "engine/model/backward_ops.h"
#include "engine/model/passes.h"
#include "engine/training/passes/state_bytes.h"

namespace engine {
namespace {

double expert_weights(const Moe& experts) {
  return double(experts.local_experts) * (experts.gated ? 3 : 2) * double(experts.hidden) *
         double(experts.intermediate);
}

// Products that add to what is there take longer than those that write 16 bits, by this part of a plain pass over what they read
// and write beyond that: what results in 32 bits take longer than in 16 (median of 21 shapes on an H200,
// specs/calibration/h200-sxm/train_kernels.csv: weights_fp32).
constexpr double kFusedSum = 0.72;

// Through one copy of a chunk.
double passes_of_a_step(const TrainSettings& train, const Parallelism& parallel) {
  const std::int64_t copies = parallel.dp * chunk_copies(train, parallel.pp);
  return double(train.global_batch / (train.micro_batch * copies));
}

// Stages on devices of another kind are not known here. A chunk that is only a part of the model is one of at least two stages.
std::int64_t stages_around(const Parallelism& parallel, const LayerChunk& chunk) {
  const bool whole = chunk.span.first && chunk.span.last;
  return whole ? 1 : std::max<std::int64_t>(2, parallel.pp);
}

// Bytes that products move for each gradient they add to what is there, as those of a plain pass. A single micro-batch has
// nothing to add to, replicas that share gradients out add up their own parts, and what leaves for the host is added up there.
double bytes_of_a_fused_sum(const ModelShard& shard, const LayerChunk& chunk,
                            const TrainSettings& train, double replicas) {
  if (replicas > 1 && scatters_each_pass(train, stages_around(shard.parallel, chunk))) return 0;
  if (passes_of_a_step(train, shard.parallel) <= 1) return 0;
  if (gradients_leave({shard, stages_around(shard.parallel, chunk)}, train)) return 0;
  return kFusedSum * (2 * bytes_of(train.gradients) - kActivationBytes);
}

double weights_made(const PlannedOp& planned) {
  if (const auto* experts = std::get_if<Moe>(&planned.op)) return expert_weights(*experts);
  const auto* product = std::get_if<Gemm>(&planned.op);
  return product == nullptr ? 0 : double(product->m) * double(product->n * product->batch);
}

bool is_narrow(Dtype format) { return bytes_of(format) < kActivationBytes; }

struct Matrix {
  double rows = 0, weights = 0;
  Dtype format = Dtype::bf16;
  double sharers = 1;  // of its optimizer states
};
Matrix narrow_matrix(const PlannedOp& planned, const StateSharing& sharers) {
  if (const auto* experts = std::get_if<Moe>(&planned.op)) {
    if (!is_narrow(experts->activations)) return {};
    const double weights = expert_weights(*experts);
    return {weights / double(experts->hidden), weights, experts->activations, sharers.experts};
  }
  const auto* product = std::get_if<Gemm>(&planned.op);
  if (product == nullptr || !is_narrow(product->activations)) return {};
  const double columns = double(product->n) * double(product->batch);
  return {double(product->n), columns * double(product->k), product->activations, sharers.dense};
}

// What becomes of the weights of narrow products.
class WeightCasts {
 public:
  WeightCasts(const ModelShard& shard, const TrainSettings& train)
      : group_(shard.quant.group),
        turn_(shard.narrow_turn),
        sharers_(train.zero > 0 ? sharers_of(shard.parallel, train) : StateSharing{}) {}

  // From 16 bits: read for the largest of all, where there is one scale, read and written.
  double narrow(const Matrix& matrix) const {
    return (has_one_scale(matrix.format, group_) ? kActivationBytes : 0) + kActivationBytes +
           bytes_of(matrix.format);
  }
  // As they are cast.
  double turned(const Matrix& matrix) const { return turning_bytes(matrix.format, turn_); }
  // Narrow ones, by themselves.
  double turned_apart(const Matrix& matrix) const {
    return turn_ == NarrowTurn::never ? 0 : turning_bytes(matrix.format, NarrowTurn::apart);
  }
  // The optimizer's share of them, from its own 32 bits.
  double own_share(const Matrix& matrix) const {
    constexpr double wide = 4;
    const double scale = has_one_scale(matrix.format, group_) ? wide : 0;
    return (scale + wide + bytes_of(matrix.format)) / matrix.sharers;
  }

  // Adds passes over weights, with `bytes` for each weight, `times` per pass of the product.
  template <class BytesOf>
  void add(const OpList& products, BytesOf&& bytes, double times, OpList& ops) const {
    OpList casts;
    for (const PlannedOp& op : products) {
      const Matrix matrix = narrow_matrix(op, sharers_);
      const double each = matrix.weights > 0 ? bytes(matrix) : 0;
      if (each <= 0) continue;
      casts.add(OpName::cast_transpose, Family::residual, op.calls * times,
                Elementwise{.rows = matrix.rows,
                            .resident_bytes = 0,
                            .cold_bytes = each * matrix.weights,
                            .flops = 0});
    }
    for (const PlannedOp& op : casts) ops.add(op);
  }

 private:
  std::int64_t group_;
  NarrowTurn turn_;
  StateSharing sharers_;
};

// Weights in four bits are expanded in every pass, and nothing of that stays.
bool keeps_turned(const TrainSettings& train) {
  return train.transpose_cache && train.method != Method::qlora;
}

bool is_kept(const NarrowBytes& narrow) { return narrow.dense > 0 || narrow.experts > 0; }

bool gathers_weights(const Parallelism& parallel, const TrainSettings& train) {
  return train.zero == 3 && sharers_of(parallel, train).dense > 1;
}

// Where replicas share weights out, nothing of what was gathered outlasts its use. Else frozen weights and narrow parameters stay, and
// copies that outlast a micro-batch.
bool copies_stay(const ModelShard& shard, const TrainSettings& train) {
  if (gathers_weights(shard.parallel, train)) return false;
  return train.has_adapters() || is_kept(kept_narrow(shard, train)) ||
         narrow_copies(shard.parallel, train) == NarrowCopies::a_step;
}

// Narrow weights are turned round where they are needed so: no copy of them stays that is.
bool turns_in_every_pass(const ModelShard& shard, const TrainSettings& train) {
  const bool stay = copies_stay(shard, train);
  return stay ? !keeps_turned(train) : train.has_adapters();
}

}  // namespace

NarrowCopies narrow_copies(const Parallelism& parallel, const TrainSettings& train) {
  if (gathers_weights(parallel, train))
    return train.reshard ? NarrowCopies::a_pass : NarrowCopies::a_micro_batch;
  return passes_of_a_step(train, parallel) > 1 ? NarrowCopies::a_step : NarrowCopies::a_micro_batch;
}

void meet_in_one_format(Method method, PlannedOp& product) {
  const auto meet = [method](auto& op) {
    op.weights = multiplied({.weights = op.weights, .activations = op.activations}, method).weights;
  };
  if (auto* gemm = std::get_if<Gemm>(&product.op)) meet(*gemm);
  if (auto* experts = std::get_if<Moe>(&product.op)) meet(*experts);
}

double copy_bytes(const ChunkStates& states, const ModelShard& shard, const TrainSettings& train) {
  if (!copies_stay(shard, train)) return 0;
  const auto bytes = [&](const ChunkWeights& weights) {
    const auto narrow = [](Dtype format) { return is_narrow(format) ? bytes_of(format) : 0; };
    return narrow(shard.dense.activations) * (weights.dense - weights.ends()) +
           narrow(shard.quant.activations) * weights.experts;
  };
  const bool beside = train.method != Method::qlora && !is_kept(kept_narrow(shard, train));
  const bool turned = keeps_turned(train) && shard.narrow_turn != NarrowTurn::never;
  const ChunkWeights& passed_back = train.has_adapters() ? states.all : states.trained;
  return (beside ? bytes(states.all) : 0) + (turned ? bytes(passed_back) : 0);
}

namespace {

// Parameters that are kept narrow: the optimizer casts its share once a step, and what is turned round is made of what was gathered.
void cast_parameters(const ModelShard& shard, const TrainSettings& train, const WeightCasts& casts,
                     const OpList& backward, PassOps& ops) {
  const double once = 1 / passes_of_a_step(train, shard.parallel);
  const auto own = [&](const Matrix& matrix) { return casts.own_share(matrix); };
  const auto turned = [&](const Matrix& matrix) { return casts.turned_apart(matrix); };
  casts.add(ops.forward, own, once, ops.forward);
  if (turns_in_every_pass(shard, train)) return;
  switch (narrow_copies(shard.parallel, train)) {
    case NarrowCopies::a_step:
      return casts.add(backward, turned, once, ops.forward);
    case NarrowCopies::a_micro_batch:
      return casts.add(backward, turned, 1, ops.forward);
    case NarrowCopies::a_pass:
      return casts.add(backward, turned, 1, ops.inputs);
  }
}

}  // namespace

void cast_weights(const ModelShard& shard, const TrainSettings& train, const OpList& backward,
                  PassOps& ops) {
  const WeightCasts casts(shard, train);
  const auto narrow = [&](const Matrix& matrix) { return casts.narrow(matrix); };
  const auto turned = [&](const Matrix& matrix) { return casts.turned(matrix); };
  const auto both = [&](const Matrix& matrix) { return narrow(matrix) + turned(matrix); };
  if (turns_in_every_pass(shard, train)) {
    const auto apart = [&](const Matrix& matrix) { return casts.turned_apart(matrix); };
    casts.add(backward, apart, 1, ops.inputs);
  }
  if (train.has_adapters()) {
    // Frozen weights in 16 bits are cast once and for all, unless nothing that is gathered stays.
    const bool wide = train.method == Method::lora && !is_kept(kept_narrow(shard, train));
    if (!wide || copies_stay(shard, train)) return;
    casts.add(ops.forward, narrow, 1, ops.forward);
    if (narrow_copies(shard.parallel, train) != NarrowCopies::a_pass) return;
    return casts.add(backward, narrow, 1, ops.inputs);
  }
  if (is_kept(sent_narrow(shard, train))) {
    return cast_parameters(shard, train, casts, backward, ops);
  }
  // Layers that no gradient passes through are multiplied one way only.
  const auto cast = [&](double times, bool turns) {
    if (turns && train.method != Method::last_layers) {
      return casts.add(ops.forward, both, times, ops.forward);
    }
    casts.add(ops.forward, narrow, times, ops.forward);
    if (turns) casts.add(backward, turned, times, ops.forward);
  };
  switch (narrow_copies(shard.parallel, train)) {
    case NarrowCopies::a_step:
      return cast(1 / passes_of_a_step(train, shard.parallel), train.transpose_cache);
    case NarrowCopies::a_micro_batch:
      return cast(1, true);
    case NarrowCopies::a_pass:
      cast(1, false);
      return casts.add(backward, both, 1, ops.inputs);
  }
}

void add_sums(const ModelShard& shard, const LayerChunk& chunk, const TrainSettings& train,
              OpList& weights) {
  OpList sums;
  const auto add = [&](OpName name, double made, double calls, double bytes) {
    if (made * bytes <= 0) return;
    sums.add(name, Family::residual, calls,
             Elementwise{.rows = 1, .resident_bytes = 0, .cold_bytes = made * bytes, .flops = 0});
  };
  const bool fused = train.fused_gradients;
  const double sum = kActivationBytes + 2 * bytes_of(train.gradients);
  const StateSharing sharers = sharers_of(shard.parallel, train);
  const auto of_product = [&](const PlannedOp& planned) {
    const double replicas =
        std::holds_alternative<Moe>(planned.op) ? sharers.experts : sharers.dense;
    return fused ? bytes_of_a_fused_sum(shard, chunk, train, replicas) : sum;
  };
  // Those of embedding and logits, which some chunks have and others do not, go by their own names (CallRows).
  for (const PlannedOp& planned : weights) {
    const bool at_the_end = planned.name == OpName::logits;
    add(at_the_end ? OpName::logits : OpName::gradient_sum, weights_made(planned), planned.calls,
        of_product(planned));
  }
  // Most rows of a table of embeddings have no gradient: it is zeros first.
  const bool embeds = chunk.trained.first && chunk.has_gradients() && !train.has_adapters();
  const double embeddings = double(shard.vocabulary) * double(shard.model->hidden);
  if (!fused && embeds) add(OpName::embedding, embeddings, 1, kActivationBytes + sum);
  for (const PlannedOp& planned : sums) weights.add(planned);
}

}  // namespace engine
