#include "engine/training/passes/train_ops.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/model/backward_ops.h"
#include "engine/model/context_ops.h"
#include "engine/model/expert_places.h"
#include "engine/model/passes.h"
#include "engine/training/passes/activation_inputs.h"
#include "engine/training/passes/adapters.h"
#include "engine/training/passes/expert_passes.h"
#include "engine/training/passes/kept_activations.h"
#include "engine/training/passes/packed_documents.h"
#include "engine/training/passes/recomputed_ops.h"
#include "engine/training/passes/sequence_gathers.h"
#include "engine/training/passes/unfused_passes.h"
#include "engine/training/passes/weight_passes.h"

namespace engine {
namespace {

// Bytes a logit moves in a fused loss: it is read for the maximum and the sum of exponentials, then read and turned into its
// gradient in place; backward, the gradient is scaled (Transformer Engine, Liger).
constexpr double kLossBytes = 6, kLossBackward = 4;
// Written as PyTorch's operations: widened to 32 bits (6 bytes, at half the rate of other passes), read three times and written;
// backward, zeros are written, gradient and output are read twice, the result is written, and narrowed to 16 bits.
constexpr double kPlainLossBytes = 12 + 16, kPlainLossBackward = 4 + 20 + 6;

// The tokens of a micro-batch that one device has, and its share of the query-key pairs. Packed documents see themselves only.
BatchShape batch_of(const TrainSettings& train, const ModelShard& shard, bool last) {
  BatchShape batch;
  const std::int64_t window = shard.model->window;
  const std::int64_t length = train.document_length;
  if (is_packed(train)) {
    const double documents = double(train.micro_batch) * double(train.sequence) / double(length);
    add_prefill(batch, 1, length, 0, window);
    const auto unequal = [&](double seen) {
      return length_around_a_token(train, seen) / length_of_equal(double(length), seen);
    };
    // As many as there would be if all were as long as the one around a token: short ones have few of the pairs.
    batch.prefill_sequences = std::max<std::int64_t>(
        1, std::llround(documents * double(length) / length_around_a_token(train, 0)));
    batch.prefill_tokens = train.micro_batch * train.sequence;
    batch.prefill_pairs *= documents * unequal(0);
    batch.prefill_kv_tokens *= documents;
    batch.prefill_window_pairs *= documents * unequal(double(window));
    batch.prefill_window_kv_tokens *= documents;
  } else {
    add_prefill(batch, train.micro_batch, train.sequence, 0, window);
  }
  if (shard.parallel.cp > 1) batch = share_of(batch, {.devices = shard.parallel.cp});
  batch.sampled = last ? batch.prefill_tokens : 0;
  return batch;
}

// Turns the operations of a served step into those of one that trains: the loss in place of sampling; norms split by
// sequence, with a scatter and a gather in place of each sum.
class Trained {
 public:
  Trained(const ModelShard& shard, const TrainSettings& train)
      : shard_(shard),
        train_(train),
        tokens_(tokens_of_a_pass(train, shard.parallel)),
        split_(train.sequence_parallel ? double(shard.parallel.tp) : 1),
        value_(value_bytes(shard)) {}

  void add(PlannedOp op, OpList& ops) const {
    meet_in_one_format(train_.method, op);
    switch (op.name) {
      case OpName::stage_transfer:
        return;
      case OpName::logits_gather:
        // The maximum, the sum and the target's logit of each token, in 32 bits.
        op.family = Family::all_reduce;
        op.calls = 3;
        op.op = Collective{.pattern = Pattern::all_reduce,
                           .bytes = 4 * tokens_,
                           .ranks = shard_.parallel.tp,
                           .library = Library::general};
        return ops.add(op);
      case OpName::sampling:
        op.name = OpName::loss;
        op.family = Family::residual;
        op.op = loss();
        return ops.add(op);
      case OpName::attention:
      case OpName::attention_window:
        set_pace(std::get<AttentionPrefill>(op.op));
        if (shard_.parallel.cp == 1) return ops.add(op);
        return add_shared_attention(op, sharing(), ops);
      case OpName::scan: {
        auto& scan = std::get<Scan>(op.op);
        scan.slower = pace_of(scan.rule).trained;
        scan.format = Dtype::fp32;  // nothing keeps it from step to step
        return shard_.parallel.cp == 1 ? add_layer_op(op, ops) : add_scan_of_shares(op, ops);
      }
      case OpName::rope:
        // Served keys are written to a cache as they are turned; where nothing is turned, nothing is done here.
        return shard_.model->turned() > 0 ? add_layer_op(op, ops) : void();
      case OpName::quantize_input:
        // Devices cast their own tokens, by the largest value of all of them where there is one scale, and gather narrow ones.
        std::get<Quantize>(op.op).rows /= split_;
        if (split_ > 1) agree_on_scale(op, shard_.parallel.tp, ops);
        return add_cast(op, ops);
      case OpName::quantize_attention:
      case OpName::quantize_mlp:
        return add_cast(op, ops);
      case OpName::q_down:
      case OpName::kv_down:
        take_part(split_, op);
        return add_layer_op(op, ops);
      case OpName::router:
        take_part(split_, op);
        return add_router(op, ops);
      case OpName::experts:
        return add_experts(op, ops);
      case OpName::expert_dispatch:
      case OpName::expert_combine:
        return add_exchange(op, ops);
      case OpName::shared_gate:
        take_part(split_, op);
        [[fallthrough]];
      case OpName::shared_gate_up:
      case OpName::shared_activation:
      case OpName::shared_down:
        if (train_.expert_overlap) op.beside = {.group = shared_group_of(op.name), .stream = 0};
        if (train_.has_adapters() && op.name != OpName::shared_activation) {
          return add_with_adapters(op, train_, split_, ops);
        }
        return ops.add(op);
      default:
        return add_layer_op(op, ops);
    }
  }

 private:
  ContextSharing sharing() const {
    return {
        .exchange = train_.context, .devices = shard_.parallel.cp, .stride = shard_.parallel.tp};
  }
  void add_scan_of_shares(const PlannedOp& op, OpList& ops) const {
    OpList shared;
    add_shared_scan(op, sharing(), shared);
    for (const PlannedOp& one : shared) {
      one.name == OpName::scan ? add_layer_op(one, ops) : ops.add(one);
    }
  }
  void add_layer_op(PlannedOp op, OpList& ops) const {
    if (train_.has_adapters() && !std::holds_alternative<Collective>(op.op) &&
        !std::holds_alternative<Elementwise>(op.op)) {
      op.beside = {.group = group_of(op.name), .stream = 0};
      return add_with_adapters(op, train_, split_, ops);
    }
    return split_ > 1 ? add_split(op, ops) : ops.add(op);
  }

  void set_pace(AttentionPrefill& attention) const {
    attention.slower = shard_.attention_slower;
    attention.backward_slower = shard_.attention_backward_slower;
  }

  // Routers work in 32 bits: tokens are widened, and the product reads them so. Then the largest are found and scored, once to
  // choose and once for the loss that balances experts, and copies are listed by expert, once for each way: kernels that
  // go copy by copy, as long as passes over so many bytes of each (Megatron on an H200, megatron_kernels.csv.gz).
  void add_router(const PlannedOp& op, OpList& ops) const {
    if (train_.has_adapters()) {
      add_with_adapters(op, train_, split_, ops);
    } else {
      ops.add(op);
    }
    const auto& product = std::get<Gemm>(op.op);
    const double tokens = tokens_ / split_;
    const auto pass = [&](double calls, double bytes, double backward) {
      ops.add(OpName::router, Family::residual, calls * op.calls,
              Elementwise{.rows = tokens,
                          .resident_bytes = 0,
                          .cold_bytes = tokens * bytes,
                          .flops = 0,
                          .backward = backward});
    };
    constexpr double wide = 4, narrow = 2, chosen = 5600, listed = 2700;
    constexpr double widened_back = 1.5, scored_back = 0.1, listed_back = 0;
    const double copies = double(shard_.model->moe.top_k);
    pass(1, double(product.k) * (narrow + wide + wide), widened_back);
    pass(2, copies * chosen, scored_back);
    pass(2, copies * listed, listed_back);
  }

  // Libraries cast tokens to narrow formats after they have arrived, unless they say otherwise.
  void add_exchange(PlannedOp op, OpList& ops) const {
    auto& travel = std::get<ExpertExchange>(op.op);
    if (!train_.narrow_dispatch) travel.value_bytes = value_;
    travel.skew = train_.routing_skew;
    if (train_.expert_overlap) {
      op.beside = {.group = shared_group_of(op.name),
                   .stream = 1,
                   .multiprocessors = std::uint16_t(train_.collective_multiprocessors)};
    }
    if (train_.dispatcher == Dispatcher::alltoall) {
      const double copies = travel.tokens * double(travel.top_k);
      op.op = Collective{.pattern = Pattern::all_to_all,
                         .bytes = copies * double(travel.hidden) * travel.value_bytes,
                         .ranks = travel.ranks,
                         .library = Library::general,
                         .fullest = fullest_of(travel, travel.ranks)};
    }
    ops.add(op);
  }

  // Training libraries multiply each expert's tokens in one grouped product: what an exchange brings is sorted by expert
  // before, and back into its order after it (Megatron's and DeepEP's dispatchers). Where every copy travels by itself, or
  // none does, copies are made first and summed up in the end.
  void add_experts(PlannedOp op, OpList& ops) const {
    auto& experts = std::get<Moe>(op.op);
    experts.skew = train_.routing_skew;
    experts.one_by_one = train_.expert_products == ExpertProducts::one_by_one;
    const bool travels = std::exchange(experts.exchanged, true);
    const double copies = copies_on_the_fullest(experts), hidden = double(experts.hidden);
    const bool narrow = bytes_of(experts.activations) < kActivationBytes;
    const auto pass = [&](double rows_moved) {
      ops.add(OpName::experts, Family::residual, 2 * op.calls,
              Elementwise{.rows = copies,
                          .resident_bytes = 0,
                          .cold_bytes = rows_moved * hidden * value_,
                          .flops = 0});
    };
    if (narrow) {
      for (const double width : {hidden, double(experts.intermediate)}) {
        PlannedOp cast = op;
        cast.name = OpName::quantize_experts;
        cast.family = Family::quantize;
        cast.calls *= parts_of(experts);
        cast.op = Quantize{.rows = copies / parts_of(experts),
                           .width = width,
                           .format = experts.activations,
                           .group = experts.group};
        add_cast(cast, ops);
      }
    }
    if (train_.has_adapters()) {
      add_with_adapters(op, train_, split_, ops);
    } else {
      ops.add(op);
    }
    if (!train_.fused_experts) add_expert_passes(op, ops);
    if (narrow && train_.padded_experts) pass(2 * copies);
    if (travels) pass(2 * copies);
    const double sent = tokens_ / double(shard_.parallel.tp);
    const bool copied = !travels || train_.dispatcher == Dispatcher::alltoall;
    if (copied) pass(sent * double(1 + experts.top_k));
  }

  Elementwise loss() const {
    const double logits = tokens_ * double(shard_.vocabulary);
    const double forward = train_.fused_loss ? kLossBytes : kPlainLossBytes;
    const double backward = train_.fused_loss ? kLossBackward : kPlainLossBackward;
    return {.rows = tokens_,
            .resident_bytes = 0,
            .cold_bytes = forward * logits,
            .flops = 3 * logits,
            .backward = backward / forward};
  }

  void add_split(PlannedOp op, OpList& ops) const {
    if (auto* sum = std::get_if<Collective>(&op.op);
        sum != nullptr && sum->pattern == Pattern::all_reduce) {
      const bool attention = op.name == OpName::attention_reduce;
      sum->library = Library::general;
      sum->pattern = Pattern::reduce_scatter;
      op.family = Family::reduce_scatter;
      add_beside(op, attention ? OpName::attention_out : OpName::down, ops);
      sum->pattern = Pattern::all_gather;
      sum->bytes *=
          std::min(kActivationBytes, bytes_of(shard_.dense.activations)) / kActivationBytes;
      if (op.name == OpName::mlp_reduce) sum->bytes *= gathered_for_mixers(shard_);
      op.family = Family::all_gather;
      return add_beside(op, attention ? OpName::gate_up : OpName::qkv, ops);
    }
    op.beside = {.group = group_of(op.name), .stream = 0};
    if (op.name == OpName::input_norm || op.name == OpName::mlp_norm ||
        op.name == OpName::final_norm || op.name == OpName::embedding) {
      take_part(split_, op);
    }
    ops.add(op);
  }

  // Where products and the collectives between them go on in pieces: groups of one product and its collective; 0: none.
  std::uint8_t group_of(OpName product) const {
    if (!train_.tp_overlap || split_ == 1) return 0;
    switch (product) {
      case OpName::qkv:
        return 3;
      case OpName::attention_out:
        return 4;
      case OpName::gate_up:
      case OpName::up:
        return 5;
      case OpName::down:
        return 6;
      default:
        return 0;
    }
  }
  // Tokens go to routed experts beside the first product of the shared one, and come back beside its second.
  static std::uint8_t shared_group_of(OpName name) {
    const bool at_the_end = name == OpName::expert_combine || name == OpName::shared_down ||
                            name == OpName::shared_gate;
    return at_the_end ? 8 : 7;
  }
  // Of as many pieces as there are devices, one has nothing to go beside.
  void add_beside(PlannedOp collective, OpName product, OpList& ops) const {
    const std::uint8_t group = group_of(product);
    if (group == 0) return ops.add(collective);
    const double calls = collective.calls;
    collective.calls = calls / split_;
    ops.add(collective);
    collective.calls = calls - collective.calls;
    collective.beside = {.group = group,
                         .stream = 1,
                         .multiprocessors = std::uint16_t(train_.collective_multiprocessors)};
    ops.add(collective);
  }

  const ModelShard& shard_;
  const TrainSettings& train_;
  double tokens_;
  double split_;  // devices that norms are split over
  double value_;  // bytes
};

void forward_ops(const ModelShard& shard, const StageSpan& span, const TrainSettings& train,
                 OpList& ops) {
  const BatchShape batch = batch_of(train, shard, span.last);
  OpList served;
  token_ops(shard, span, batch, served);
  attention_ops(shard, span, batch, served);
  const Trained trained(shard, train);
  for (const PlannedOp& op : served) trained.add(op, ops);
  if (train.narrow_activation_inputs) cast_activation_inputs(shard, ops);
}

}  // namespace

void pass_ops(const ModelShard& shard, const LayerChunk& chunk, const TrainSettings& train,
              PassOps& ops, ExchangeOps exchange) {
  for (OpList* list : {&ops.forward, &ops.recomputed, &ops.inputs, &ops.weights, &ops.exchange,
                       &ops.exchange_back}) {
    list->clear();
  }
  forward_ops(shard, chunk.span, train, ops.forward);
  const bool partly = chunk.trained != chunk.span;
  OpList trained;
  if (partly && chunk.has_gradients()) forward_ops(shard, chunk.trained, train, trained);
  const OpList& kept = partly ? trained : ops.forward;
  recomputed_ops(kept, double(chunk.trained.layers.all()), train, ops.recomputed);
  backward_ops(kept, shard.narrow_turn, ops.inputs, ops.weights);
  const bool split = train.sequence_parallel && shard.parallel.tp > 1;
  if (split) {
    gather_again(shard, chunk, train, ops.inputs, ops.weights);
  } else if (shard.parallel.tp > 1) {
    sum_beside_weights(chunk, train, ops.inputs, ops.weights);
  }
  if (train.has_adapters()) keep_adapters(ops.weights);
  add_sums(shard, chunk, train, ops.weights);
  cast_weights(shard, train, kept, ops);
  if (split && train.tp_overlap) {
    multiply_in_pieces(shard.parallel.tp, ops.forward);
    multiply_in_pieces(shard.parallel.tp, ops.recomputed);
    multiply_gathered_in_pieces(shard.parallel.tp, ops.inputs);
  }
  if (exchange == ExchangeOps::apart) {
    take_exchange(ops.forward, ops.exchange);
    take_exchange(ops.inputs, ops.exchange_back);
  }
  unfuse_passes(*shard.model, train, ops);
}

}  // namespace engine
