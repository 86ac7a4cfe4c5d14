#include "engine/kernels/grid/grid_call.h"

#include <algorithm>

#include "engine/base/rounding.h"
#include "engine/kernels/moe.h"
#include "engine/kernels/power.h"
#include "engine/kernels/traffic.h"
#include "engine/model/backward_ops.h"

namespace engine {
namespace {

// C[m, n] = A[m, k] W[k, n], `groups` times over, each with weights of its own.
struct GridProduct {
  double m, n, k, groups;
  double input_bytes, weight_bytes, output_bytes;  // of one value
  double input_held;  // bytes of a group's input in the buffer; filters that overlap share values
};

constexpr double kSumBytes = 4;  // of a sum that is not finished

// Fills of a grid, and cycles of each: two ways in, one way out, and what passes (Samajdar et al., "A Systematic Methodology for
// Characterizing Scalability of DNN Accelerators using SCALE-Sim", 2020, equation 4).
double cycles_of(const GridProduct& product, const Device& device) {
  const SystolicArray& array = device.array;
  const bool weights_stay = array.dataflow == Dataflow::weight_stationary;
  const double along_rows = weights_stay ? product.k : product.m;
  const double passing = weights_stay ? product.m : product.k;
  const double rows = double(array.rows), columns = double(array.columns);
  const double fills = product.groups * whole_up(along_rows / rows) * whole_up(product.n / columns);
  const double turns = whole_up(fills / device.processors());
  return turns * (2 * rows + columns + passing - 2);
}

// Inputs pass once for each strip of columns. Weights are loaded once where they stay, else once for each strip of rows. Sums that
// stay are written once; others after each fill along the inner dimension, and read for the next.
Bytes buffer_traffic(const GridProduct& product, const SystolicArray& array) {
  const bool weights_stay = array.dataflow == Dataflow::weight_stationary;
  const double rows = double(array.rows);
  const double inputs = product.m * product.k * whole_up(product.n / double(array.columns));
  const double weights = product.k * product.n * (weights_stay ? 1 : whole_up(product.m / rows));
  const double parts = weights_stay ? whole_up(product.k / rows) : 1;
  const double outputs = product.m * product.n;
  return Bytes{product.groups * (inputs * product.input_bytes + weights * product.weight_bytes +
                                 outputs * (product.output_bytes + 2 * (parts - 1) * kSumBytes))};
}

double beyond(double bytes, double room) { return std::max(0.0, bytes - room); }

// Lengths cut into strips: all but the last are whole.
struct Strips {
  Strips(double length, double whole)
      : count(whole_up(length / whole)),
        widest(std::min(length, whole)),
        last(length - (count - 1) * whole) {}
  // What of all strips a buffer has no room for, of which it holds one at a time.
  double beyond_room(double bytes_per_length, double room) const {
    return (count - 1) * beyond(widest * bytes_per_length, room) +
           beyond(last * bytes_per_length, room);
  }
  double count, widest, last;
};

// What comes from memory again, since the buffer does not hold it until it is used again. Where weights stay, strips of columns come one
// after the other: a strip's sums have the first place in the buffer, then the inputs of all strips. Where sums stay, strips of
// rows come one after the other: a strip's inputs have the first place, then the weights of all strips.
double fetched_again(const GridProduct& product, const Device& device) {
  const SystolicArray& array = device.array;
  const double room = device.l2_capacity.value;
  const Strips columns(product.n, double(array.columns));
  if (array.dataflow == Dataflow::weight_stationary) {
    const double parts = whole_up(product.k / double(array.rows));
    const double sums = product.m * kSumBytes;  // of a column
    const double left = parts > 1 ? beyond(room, columns.widest * sums) : room;
    return 2 * (parts - 1) * columns.beyond_room(sums, room) +
           (columns.count - 1) * beyond(product.input_held, left);
  }
  const Strips rows(product.m, double(array.rows));
  const double row = product.input_held / product.m;
  const double weights = product.k * product.n * product.weight_bytes;
  const double left = columns.count > 1 ? beyond(room, rows.widest * row) : room;
  return (columns.count - 1) * rows.beyond_room(row, room) +
         (rows.count - 1) * beyond(weights, left);
}

GridCall on_chip(const GridProduct& product, const Device& device) {
  const double multiplies = product.groups * product.m * product.n * product.k;
  return {.cycles = cycles_of(product, device),
          .multiplies = multiplies,
          .useful = Flops{2 * multiplies},
          .buffer = buffer_traffic(product, device.array)};
}

// Activations that the buffer holds stay there from kernel to kernel.
GridCall whole_call(const GridProduct& product, double activations, const Device& device) {
  GridCall call = on_chip(product, device);
  call.cold = Bytes{product.groups * product.k * product.n * product.weight_bytes};
  call.memory = call.cold + Bytes{beyond(activations, device.l2_capacity.value) +
                                  product.groups * fetched_again(product, device)};
  return call;
}

struct Caller {
  using Call = std::optional<GridCall>;
  const Device& device;

  Call operator()(const Gemm& op) const { return product_of(double(op.m), double(op.batch), op); }
  Call operator()(const GroupedGemm& op) const {
    return product_of(op.rows / op.touched, op.touched, op);
  }

  // The matrices that open an expert are one product, the one that closes it another. Cycles and traffic are those of the
  // fullest device, which the others wait for; multiplications are those of the mean one.
  Call operator()(const Moe& op) const {
    const Routed work = routed_by_skew(op);
    const GroupedGemm opening{.rows = work.copies,
                              .touched = work.touched,
                              .n = op.intermediate * (op.gated ? 2 : 1),
                              .k = op.hidden,
                              .weights = op.weights,
                              .activations = op.activations,
                              .group = op.group};
    GroupedGemm closing = opening;
    closing.n = op.hidden;
    closing.k = op.intermediate;
    GridCall call = *(*this)(opening);
    call.add(*(*this)(closing));
    const double mean = copies_on_a_device(op) / work.copies;
    call.multiplies *= mean;
    call.useful *= mean;
    return call;
  }

  Call operator()(const ImageConvolution& op) const {
    const double value = bytes_of(op.activations), groups = double(op.groups);
    return whole_call({.m = op.rows,
                       .n = double(op.n),
                       .k = double(op.k),
                       .groups = groups,
                       .input_bytes = value,
                       .weight_bytes = stored_bytes(1, op.weights, op.group),
                       .output_bytes = value,
                       .input_held = op.values_in / groups * value},
                      (op.values_in + op.values_out) * value, device);
  }

  Call operator()(const AttentionPrefill& op) const {
    const double sequences = double(op.sequences);
    Heads heads{.queries = op.tokens / sequences * double(op.heads) / double(op.kv_heads),
                .keys = op.kv_tokens / sequences,
                .groups = sequences * double(op.kv_heads),
                .pairs = op.pairs * double(op.heads),
                .cached_values = double(op.key_dim + op.value_dim)};
    if (op.backward) heads.products = kAttentionBackward;
    return attention(heads, op);
  }
  Call operator()(const AttentionDecode& op) const {
    const double sequences = double(op.sequences);
    return attention(
        {.queries = double(op.queries) * double(op.heads) / double(op.kv_heads),
         .keys = op.kv_tokens / sequences,
         .groups = sequences * double(op.kv_heads),
         .pairs = op.pairs() * double(op.heads),
         .cached_values = double(op.values_in_keys ? op.key_dim : op.key_dim + op.value_dim)},
        op);
  }

  template <class Other>
  Call operator()(const Other&) const {
    return std::nullopt;
  }

 private:
  template <class Product>
  GridCall product_of(double m, double groups, const Product& op) const {
    const double n = double(op.n), k = double(op.k), input = bytes_of(op.activations);
    constexpr double output = 2;
    return whole_call({.m = m,
                       .n = n,
                       .k = k,
                       .groups = groups,
                       .input_bytes = input,
                       .weight_bytes = stored_bytes(1, op.weights, op.group),
                       .output_bytes = output,
                       .input_held = m * k * input},
                      groups * m * (k * input + n * output), device);
  }

  // Queries of all heads that share keys pass together.
  struct Heads {
    double queries, keys, groups;
    double pairs;          // of a query of a head and a key that the mask leaves, in all products
    double cached_values;  // of a key and its value
    double products = 1;   // times scores, and values weighted by them
  };
  // A mask saves a grid nothing. Scores are made and used in pieces that the buffer holds.
  template <class Attention>
  GridCall attention(const Heads& heads, const Attention& op) const {
    constexpr double value = 2;
    const double key_dim = double(op.key_dim), value_dim = double(op.value_dim);
    const double kv = bytes_of(op.kv);
    const GridProduct scores{.m = heads.queries,
                             .n = heads.keys,
                             .k = key_dim,
                             .groups = heads.groups,
                             .input_bytes = value,
                             .weight_bytes = kv,
                             .output_bytes = value};
    GridProduct weighted = scores;
    weighted.n = value_dim;
    weighted.k = heads.keys;
    const GridCall first = on_chip(scores, device), second = on_chip(weighted, device);
    const Bytes cached{heads.groups * heads.keys * heads.cached_values * kv};
    const double activations = heads.groups * heads.queries * (key_dim + value_dim) * value;
    return {.cycles = heads.products * (first.cycles + second.cycles),
            .multiplies = heads.products * (first.multiplies + second.multiplies),
            .useful = Flops{2 * heads.pairs * (key_dim + value_dim)},
            .buffer = heads.products * (first.buffer + second.buffer),
            .memory = cached + Bytes{beyond(activations, device.l2_capacity.value)},
            .cold = cached};
  }
};

}  // namespace

void GridCall::add(const GridCall& other, double times) {
  cycles += other.cycles * times;
  multiplies += other.multiplies * times;
  useful += other.useful * times;
  at_peak += other.at_peak * times;
  buffer += other.buffer * times;
  memory += other.memory * times;
  cold += other.cold * times;
}

std::optional<GridCall> grid_call(const Op& op, const Device& device) {
  auto call = std::visit(Caller{device}, op);
  const FlopsPerSecond peak = matrix_peak_of(op, device);
  if (call && peak.value > 0) call->at_peak = call->useful / peak;
  return call;
}

KernelTime grid_time(const GridCall& call, const Device& device) {
  KernelTime time{.compute = std::max(call.at_peak, Seconds{call.cycles / device.clock.value}),
                  .memory = call.memory / device.memory_bandwidth,
                  .l2 = call.buffer / cache_rate(device),
                  .launch = device.launch_latency,
                  .flops = call.useful,
                  .bytes = call.memory};
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
