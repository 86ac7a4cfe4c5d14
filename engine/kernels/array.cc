#include "engine/kernels/array.h"

#include <algorithm>

#include "engine/base/rounding.h"

namespace engine {
namespace {

// C[m, n] = A[m, k] W[k, n], `groups` times over; bytes of one value of each.
struct GridProduct {
  double m, n, k, groups;
  double input_bytes, weight_bytes, output_bytes;
};

constexpr double kSumBytes = 4;  // of a sum that is not finished

// Fills of a grid and cycles of each: two ways in, one way out, and what passes (Samajdar et al., "A Systematic Methodology for
// Characterizing Scalability of DNN Accelerators using SCALE-Sim", 2020, equation 4).
void add_cycles(const GridProduct& product, const Device& device, ArrayCall& call) {
  const SystolicArray& array = device.array;
  const bool weights_stay = array.dataflow == Dataflow::weight_stationary;
  const double along_rows = weights_stay ? product.k : product.m;
  const double passing = weights_stay ? product.m : product.k;
  const double rows = double(array.rows), columns = double(array.columns);
  const double fills = product.groups * whole_up(along_rows / rows) * whole_up(product.n / columns);
  const double turns = whole_up(fills / double(device.multiprocessors));
  call.cycles += turns * (2 * rows + columns + passing - 2);
}

// Inputs pass once for each strip of columns. Weights are loaded once where they stay, else once for each strip of rows; sums that lie
// in the grid are written once, others after each fill along the inner dimension, and read for the next.
void add_buffer(const GridProduct& product, const SystolicArray& array, ArrayCall& call) {
  const bool weights_stay = array.dataflow == Dataflow::weight_stationary;
  const double rows = double(array.rows);
  const double inputs = product.m * product.k * whole_up(product.n / double(array.columns));
  const double weights = product.k * product.n * (weights_stay ? 1 : whole_up(product.m / rows));
  const double parts = weights_stay ? whole_up(product.k / rows) : 1;
  const double outputs = product.m * product.n;
  call.buffer +=
      Bytes{product.groups * (inputs * product.input_bytes + weights * product.weight_bytes +
                              outputs * (product.output_bytes + 2 * (parts - 1) * kSumBytes))};
}

ArrayCall call_of(const GridProduct& product, const Device& device) {
  ArrayCall call;
  call.multiplies = product.groups * product.m * product.n * product.k;
  add_cycles(product, device, call);
  add_buffer(product, device.array, call);
  return call;
}

// Activations that the buffer holds stay there from kernel to kernel.
ArrayCall with_memory(ArrayCall call, double cold, double activations, const Device& device) {
  call.cold = Bytes{cold};
  call.memory = Bytes{cold + std::max(0.0, activations - device.l2_capacity.value)};
  return call;
}

struct Caller {
  using Call = std::optional<ArrayCall>;
  const Device& device;

  Call operator()(const Gemm& op) const {
    const double m = double(op.m), n = double(op.n), k = double(op.k), batch = double(op.batch);
    const double input = bytes_of(op.activations);
    const GridProduct product{m, n, k, batch, input, bytes_of(op.weights), 2};
    return with_memory(call_of(product, device), batch * stored_bytes(n * k, op.weights, op.group),
                       batch * (m * k * input + m * n * 2), device);
  }

  Call operator()(const GroupedGemm& op) const {
    const double n = double(op.n), k = double(op.k), input = bytes_of(op.activations);
    const GridProduct product{op.rows / op.touched, n, k, op.touched, input,
                              bytes_of(op.weights), 2};
    return with_memory(call_of(product, device),
                       op.touched * stored_bytes(n * k, op.weights, op.group),
                       op.rows * (k * input + n * 2), device);
  }

  Call operator()(const ImageConvolution& op) const {
    const double n = double(op.n), k = double(op.k), groups = double(op.groups);
    const double value = bytes_of(op.activations);
    const GridProduct product{op.rows, n, k, groups, value, bytes_of(op.weights), value};
    return with_memory(call_of(product, device), groups * stored_bytes(n * k, op.weights, op.group),
                       (op.values_in + op.values_out) * value, device);
  }

  // Scores, and values weighted by them, of each head. A mask saves a grid nothing.
  Call operator()(const AttentionPrefill& op) const {
    const double sequences = double(op.sequences);
    return attention({.m = op.tokens / sequences,
                      .keys = op.kv_tokens / sequences,
                      .groups = sequences * double(op.heads),
                      .cold = op.kv_tokens * double(op.kv_heads * (op.key_dim + op.value_dim)),
                      .kv = bytes_of(op.kv)},
                     double(op.key_dim), double(op.value_dim));
  }
  Call operator()(const AttentionDecode& op) const {
    const double sequences = double(op.sequences);
    const double stored = double(op.values_in_keys ? op.key_dim : op.key_dim + op.value_dim);
    return attention({.m = double(op.queries * op.heads) / double(op.kv_heads),
                      .keys = op.kv_tokens / sequences,
                      .groups = sequences * double(op.kv_heads),
                      .cold = op.kv_tokens * double(op.kv_heads) * stored,
                      .kv = bytes_of(op.kv)},
                     double(op.key_dim), double(op.value_dim));
  }

  template <class Other>
  Call operator()(const Other&) const {
    return std::nullopt;
  }

 private:
  struct Heads {
    double m, keys, groups;
    double cold;  // values of keys and values
    double kv;    // bytes of one
  };
  ArrayCall attention(const Heads& heads, double key_dim, double value_dim) const {
    constexpr double value = 2;
    const double m = heads.m, keys = heads.keys;
    ArrayCall both = call_of({m, keys, key_dim, heads.groups, value, heads.kv, value}, device);
    const ArrayCall weighted =
        call_of({m, value_dim, keys, heads.groups, value, heads.kv, value}, device);
    both.cycles += weighted.cycles;
    both.multiplies += weighted.multiplies;
    both.buffer += weighted.buffer;
    const double activations = heads.groups * m * (key_dim + value_dim) * value;
    return with_memory(both, heads.cold * heads.kv, activations, device);
  }
};

}  // namespace

std::optional<ArrayCall> array_call(const Op& op, const Device& device) {
  return std::visit(Caller{device}, op);
}

KernelTime array_time(const ArrayCall& call, const Device& device) {
  KernelTime time{.compute = Seconds{call.cycles / device.clock.value},
                  .memory = call.memory / device.memory_bandwidth,
                  .launch = device.launch_latency,
                  .flops = Flops{2 * call.multiplies},
                  .bytes = call.memory};
  if (device.l2_bandwidth.value > 0) {
    time.l2 = call.buffer / (device.l2_bandwidth * device.on_chip_scale());
  }
  const Seconds work = std::max({time.compute, time.memory, time.l2});
  time.time = time.launch + work;
  time.least = std::max(time.compute, call.cold / device.memory_bandwidth);
  time.saved[Bound::compute] = work - std::max(time.memory, time.l2);
  time.saved[Bound::memory] = work - std::max(time.compute, time.l2);
  time.saved[Bound::l2] = work - std::max(time.compute, time.memory);
  time.saved[Bound::launch] = time.launch;
  return time;
}

}  // namespace engine
