// What one pass over activations moves and computes. It is counted here for steps of a model (model_ops.cc) and for
// rows of kernel tables (tools/calibrate/tables) alike.
#pragma once

#include "engine/model/op.h"

namespace engine {

// Activations between kernels are kept in 16 bits; only matrix inputs may be narrower.
inline constexpr double kActivationBytes = 2;

// Backward passes of training, as multiples of the forward pass's bytes at the forward pass's rate. They say what is read and written, and
// at which pace (compiled layers of 1 and 8 billion weights on an H200, kernel by kernel:
// specs/calibration/h200-sxm/train_step_kernels.csv.gz).
// Norm: four transfers for its input's gradient and two for its weight's, which are sums over rows, slower than plain passes.
inline constexpr double kNormBackward = 2.15;
// Norm of heads, whose weights are few, so that sums over many rows are hard to divide (Transformer Engine on an H200, 8 to 11 times the
// forward pass of 36 to 68 heads, specs/calibration/h200-sxm/megatron_kernels.csv.gz).
inline constexpr double kHeadNormBackward = 9;
// Norm after a scan: sums over rows for each of its groups (Triton on an H200, 2.4 to 4.6 times the forward pass,
// scans.csv and megatron_kernels.csv.gz).
inline constexpr double kScanNormBackward = 4;
// Gated activation: five transfers at half the rate, since two gradients are written as one tensor.
inline constexpr double kGatedBackward = 3.2;
// Rotation: gradients of queries, keys and values are joined into one tensor of another order, at a third of the rate.
inline constexpr double kRopeBackward = 3.2;
// Of an embedding: tokens are sorted, and their gradients are summed in parts, in 32 bits.
inline constexpr double kEmbeddingBackward = 16;

// `reads` and `writes` in 16-bit values.
constexpr Elementwise pass_over(double rows, double reads, double writes, double flops) {
  return {.rows = rows,
          .resident_bytes = (reads + writes) * kActivationBytes,
          .cold_bytes = 0,
          .flops = flops};
}

// Residual add and norm in one pass: reads input and residual, writes both; four operations each.
constexpr Elementwise norm_pass(double rows, double width) {
  const double values = rows * width;
  Elementwise pass = pass_over(rows, 2 * values, 2 * values, 4 * values);
  pass.backward = kNormBackward;
  return pass;
}

// Between the projections of an MLP; a gated one reads two values for each that it writes.
constexpr Elementwise activation_pass(double rows, double width, bool gated) {
  const double values = rows * width;
  Elementwise pass = pass_over(rows, gated ? 2 * values : values, values, 5 * values);
  if (gated) pass.backward = kGatedBackward;
  return pass;
}

// Queries and keys of all rows, in values: queries are rotated in place, keys and values go to the cache, whose
// numbers have `kv_bytes`.
constexpr Elementwise rope_pass(double rows, double query, double key, double kv_bytes) {
  Elementwise pass = pass_over(rows, query + 2 * key, query, 3 * (query + key));
  pass.cold_bytes = 2 * key * kv_bytes;
  pass.backward = kRopeBackward;
  return pass;
}

// Rows of a table that lies in memory.
constexpr Elementwise embedding_pass(double rows, double width) {
  const double bytes = rows * width * kActivationBytes;
  return {.rows = rows,
          .resident_bytes = bytes,
          .cold_bytes = bytes,
          .flops = 0,
          .backward = kEmbeddingBackward};
}

// The largest of each row.
constexpr Elementwise sampling_pass(double rows, double vocabulary) {
  const double values = rows * vocabulary;
  return pass_over(rows, values, 0, values);
}

}  // namespace engine
