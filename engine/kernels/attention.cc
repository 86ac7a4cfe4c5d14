#include "engine/kernels/attention.h"

#include <algorithm>

#include "engine/base/rounding.h"
#include "engine/kernels/traffic.h"

namespace engine {
namespace {

// Attention arithmetic runs in 16 bits unless both sides are fp8.
Dtype attention_dtype(Dtype kv, Dtype activations) {
  const bool narrow = kv == Dtype::fp8 && activations == Dtype::fp8;
  if (narrow) return Dtype::fp8;
  return activations == Dtype::fp16 ? Dtype::fp16 : Dtype::bf16;
}

FlopsPerSecond attention_peak(const Device& device, Dtype kv, Dtype activations) {
  const FlopsPerSecond peak = matrix_peak(device, attention_dtype(kv, activations));
  // Devices without the narrow format expand it to 16 bits, as kernels for them do.
  if (peak.value > 0) return peak;
  return std::max(matrix_peak(device, Dtype::bf16), matrix_peak(device, Dtype::fp16));
}

}  // namespace

KernelTime attention_prefill_time(const AttentionPrefill& op, const Device& device) {
  constexpr double tile = 128;  // query rows of one thread block
  const double heads = double(op.heads);
  const double width = double(op.key_dim + op.value_dim);
  const double rows = op.tokens / double(op.sequences);
  const double blocks = heads * double(op.sequences) * whole_up(rows / tile);
  const double multiprocessors = double(device.multiprocessors);
  // Each block does a full tile of rows over the mean number of keys a row sees; blocks run in
  // whole waves.
  const double keys_per_row = op.pairs / op.tokens;
  const double waves = whole_up(blocks / multiprocessors);
  const double occupied = waves * multiprocessors * tile * keys_per_row * 2 * width;

  const double kv = op.kv_tokens * double(op.kv_heads) * width * bytes_of(op.kv);
  const double queries = op.tokens * heads * width * 2;
  const TrafficTime traffic = traffic_time(device, kv, queries);
  return {.compute = Flops{occupied} / attention_peak(device, op.kv, op.activations),
          .memory = traffic.memory,
          .l2 = traffic.l2,
          .launch = device.launch_latency,
          .flops = Flops{2 * width * heads * op.pairs},
          .bytes = Bytes{kv + queries}};
}

KernelTime attention_decode_time(const AttentionDecode& op, const Device& device) {
  // Matrix units take at least 16 query rows; the heads that share a KV head fill some of them.
  constexpr double least_rows = 16;
  const double group = double(op.heads) / double(op.kv_heads);
  const double width = double(op.key_dim + op.value_dim);
  const double rows = whole_up(group / least_rows) * least_rows;
  const double occupied = 2 * width * double(op.kv_heads) * rows * op.kv_tokens;

  const double stored = op.values_in_keys ? double(op.key_dim) : width;
  const double kv = op.kv_tokens * double(op.kv_heads) * stored * bytes_of(op.kv);
  const double queries = double(op.sequences) * double(op.heads) * width * 2;
  const TrafficTime traffic = traffic_time(device, kv, queries);
  return {.compute = Flops{occupied} / attention_peak(device, op.kv, op.activations),
          .memory = traffic.memory,
          .l2 = traffic.l2,
          .launch = device.launch_latency,
          .flops = Flops{2 * width * double(op.heads) * op.kv_tokens},
          .bytes = Bytes{kv + queries}};
}

}  // namespace engine
