#include "engine/model/backward_ops.h"

#include <algorithm>
#include <utility>

#include "engine/model/expert_places.h"
#include "engine/model/passes.h"

namespace engine {
namespace {

// A collective that brings shares together is undone by one that deals gradients out, and the reverse.
constexpr Pattern reversed(Pattern pattern) {
  switch (pattern) {
    case Pattern::all_gather:
      return Pattern::reduce_scatter;
    case Pattern::reduce_scatter:
      return Pattern::all_gather;
    case Pattern::all_reduce:
    case Pattern::all_to_all:
    case Pattern::send_recv:
      break;
  }
  return pattern;
}

// Passes before a product that make its input narrow; gradients pass through them as they are.
bool is_cast(OpName name) {
  return name == OpName::quantize_input || name == OpName::quantize_attention ||
         name == OpName::quantize_mlp || name == OpName::quantize_experts;
}

// Appends the backward operations of one forward operation, which differ from it in shape only.
struct Backward {
  const PlannedOp& forward;
  NarrowTurn turn;
  OpList& inputs;
  OpList& weights;

  void add(const Op& op, Family family, OpList& ops) const {
    PlannedOp planned = forward;
    planned.family = family;
    planned.op = op;
    ops.add(planned);
  }
  void add(const Op& op, Family family) const { add(op, family, inputs); }
  void add(const Op& op) const { add(op, forward.family); }
  void add_weights(const Op& op) const { add(op, forward.family, weights); }
  // One for each kind of gradient, as long as the operation itself.
  void add_both(const Op& op) const {
    add(op);
    add_weights(op);
  }

  // Y = X W: the gradient of X is that of Y times W transposed; the gradient of W is X transposed times that of Y.
  // Operands of the latter are both activations. Libraries sum gradients of narrow products in 32 bits (Transformer Engine's
  // split accumulator, PyTorch's use_fast_accum=False).
  void operator()(const Gemm& op) const {
    add_casts({double(op.m * op.batch), double(op.n), double(op.k), op.activations, op.group});
    Gemm input = op;
    std::swap(input.n, input.k);
    input.precise = true;
    add(input);
    Gemm summed = op;
    summed.precise = true;
    std::swap(summed.m, summed.k);
    summed.weights = op.activations;
    add_weights(summed);
  }
  // The gradient of Y is an input of narrow products, too. That of W needs X and the gradient of Y transposed where narrow
  // matrix units take their operands in one layout only (Hopper), or with scales along the other side (block formats).
  struct NarrowProduct {
    double rows, n, k;
    Dtype format;
    std::int64_t group;
    double parts = 1;  // of its rows, each with kernels of its own
  };
  void add_casts(const NarrowProduct& op) const {
    if (bytes_of(op.format) >= kActivationBytes) return;
    PlannedOp cast = forward;
    cast.name = OpName::quantize_gradient;
    cast.family = Family::quantize;
    cast.calls *= op.parts;
    const double rows = op.rows / op.parts;
    cast.op = Quantize{.rows = rows, .width = op.n, .format = op.format, .group = op.group};
    add_cast(cast, inputs);
    const double turning = turning_bytes(op.format, turn);
    if (turning <= 0) return;
    cast.name = OpName::cast_transpose;
    cast.family = Family::residual;
    cast.op = Elementwise{.rows = rows,
                          .resident_bytes = 0,
                          .cold_bytes = turning * rows * (op.n + op.k),
                          .flops = 0};
    weights.add(cast);
  }
  void operator()(const GroupedGemm& op) const {
    GroupedGemm input = op;
    std::swap(input.n, input.k);
    add(input);
    add_weights(op);  // the same arithmetic over as many bytes, in other roles
  }
  void operator()(const Moe& op) const {
    const double copies = copies_on_the_fullest(op);
    const double hidden = double(op.hidden), inner = double(op.intermediate);
    const double up = (op.gated ? 2 : 1) * inner, parts = parts_of(op);
    add_casts({copies, hidden, inner, op.activations, op.group, parts});
    add_casts({copies, up, hidden, op.activations, op.group, parts});
    Moe products = op;
    products.precise = true;
    add_both(products);
  }

  // Passes beside the products: one reads the output with its gradient, one turns the gradient of
  // queries from 32 to 16 bits, and where heads share keys and values, their gradients are summed up over those heads. They
  // take as long as so many plain passes over the queries' values (cuDNN on an H200).
  void operator()(const AttentionPrefill& op) const {
    AttentionPrefill products = op;
    products.pairs *= kAttentionBackward;
    products.stores_kv = false;
    products.backward = true;
    products.slower = op.backward_slower;
    add(products);
    constexpr double of_queries = 8, of_shared_heads = 2.4;
    const double width = double(op.key_dim + op.value_dim) / 2;
    const double shared = op.heads > op.kv_heads ? double(op.heads + op.kv_heads) : 0;
    add(Elementwise{.rows = op.tokens,
                    .resident_bytes = op.tokens * width * kActivationBytes *
                                      (of_queries * double(op.heads) + of_shared_heads * shared),
                    .cold_bytes = 0,
                    .flops = 0},
        Family::residual);
  }

  void operator()(const Elementwise& op) const {
    if (forward.name == OpName::sampling || is_cast(forward.name)) return;
    if (forward.name == OpName::dequantize)
      return add(op);  // once more, as weights are not kept wide
    Elementwise pass = op;
    pass.resident_bytes *= op.backward;
    pass.cold_bytes *= op.backward;
    pass.flops *= 2;
    add(pass);
  }

  // Twice the products of a scan. It has no weights.
  void operator()(const Scan& op) const {
    PlannedOp products = forward;
    Scan twice = op;
    twice.slower = pace_of(op.rule).gradients / 2;
    products.op = twice;
    products.calls *= 2;
    inputs.add(products);
  }

  // Once more forward, since its output is not kept, and twice for the gradients of its inputs and filters (megatron_kernels.csv.gz:
  // 2.8 and 3.1 times as long).
  void operator()(const Convolution& op) const {
    PlannedOp passes = forward;
    passes.op = op;
    passes.calls *= 3;
    inputs.add(passes);
  }

  void operator()(const Lora& op) const { add_both(op); }
  void operator()(const ImageConvolution& op) const { add_both(op); }
  // Ops that only count their work.
  template <class Counted>
  requires requires(const Counted& op) { op.counts(); }
  void operator()(const Counted& op) const { add_both(op); }
  void operator()(const Quantize&) const {}
  void operator()(const Copy& op) const { add(op); }

  void operator()(const Collective& op) const {
    if (is_cast(forward.name)) return;
    Collective back = op;
    if (forward.name == OpName::context_exchange) {
      // Keys and values come once more, and their gradients go back: round a ring they travel together.
      if (op.pattern == Pattern::send_recv) back.bytes *= 2;
      if (op.pattern == Pattern::all_gather) add(op);
    }
    back.pattern = reversed(op.pattern);
    add(back, family_of(back.pattern));
  }
  void operator()(const ExpertExchange& op) const {
    using Way = ExpertExchange::Way;
    ExpertExchange back = op;
    back.way = op.way == Way::dispatch ? Way::combine : Way::dispatch;
    back.value_bytes = std::max(kActivationBytes, op.value_bytes);
    add(back);
  }

  void operator()(const AttentionDecode&) const {}

  Family family_of(Pattern pattern) const {
    if (pattern == Pattern::all_gather) return Family::all_gather;
    if (pattern == Pattern::reduce_scatter) return Family::reduce_scatter;
    return forward.family;
  }
};

}  // namespace

// Kernels that look for the largest value of a tensor read at two thirds of the rate of plain passes (compiled steps on an H200).
constexpr double kLargestPace = 1.5;

// The largest value is set to zero before, and made a scale of after it was found.
constexpr double kScaleKernels = 2;

double turning_bytes(Dtype format, NarrowTurn turn) {
  // Kernels that turn a matrix of 8-bit values round move their bytes at two thirds of the rate of those that leave it as it is:
  // 2.7 to 2.9 TB/s against 4.1 (compiled steps on an H200).
  constexpr double pace = 1.5;
  switch (turn) {
    case NarrowTurn::apart:
      return pace * 2 * bytes_of(format);
    case NarrowTurn::in_the_cast:
      return bytes_of(format);
    case NarrowTurn::never:
      break;
  }
  return 0;
}

void add_cast(const PlannedOp& cast, OpList& ops) {
  const auto& op = std::get<Quantize>(cast.op);
  if (has_one_scale(op.format, op.group)) {
    PlannedOp largest = cast;
    largest.family = Family::residual;
    largest.calls *= kScaleKernels;
    largest.op = Elementwise{.rows = 1, .resident_bytes = 0, .cold_bytes = 0, .flops = 0};
    ops.add(largest);
    largest.calls = cast.calls;
    largest.op = Elementwise{.rows = op.rows,
                             .resident_bytes = kLargestPace * op.rows * op.width * kActivationBytes,
                             .cold_bytes = 0,
                             .flops = 0};
    ops.add(largest);
  }
  ops.add(cast);
}

void backward_ops(const OpList& forward, NarrowTurn turn, OpList& inputs, OpList& weights) {
  for (const PlannedOp* op = forward.end(); op != forward.begin();) {
    --op;
    std::visit(Backward{*op, turn, inputs, weights}, op->op);
  }
}

}  // namespace engine
