#include "engine/base/rounding.h"
#include "engine/kernels/attention_form.h"

namespace engine {
namespace {

// Half of a floor passes at the device's clock, half at that of memory and of whatever launches kernels, which generations hardly
// change: engines' calls of one key take 10.5 us on an A100 of 1.41 GHz and 9.9 us on an H100 of 1.83 GHz.
constexpr double kSteadyClock = 1.83;
double floor_cycle(const DeviceRates& device) { return (1 / device.clock + 1 / kSteadyClock) / 2; }

}  // namespace

FormTime decode_form(const AttentionDecode& op, const DeviceRates& device, double peak,
                     const FittedSet<DecodeFit>& set) {
  const DecodeFit& fit = set.fit;
  const double batch = double(op.sequences);
  const double queries = double(op.queries);
  const double keys = op.kv_tokens / batch;
  const double kv_heads = double(op.kv_heads);
  const double flops_per_key = 2 * double(op.key_dim + op.value_dim);  // and query head
  const double stored = double(op.values_in_keys ? op.key_dim : op.key_dim + op.value_dim);
  const double head_bytes = stored * bytes_of(op.kv);
  const double kv_bytes = op.kv_tokens * kv_heads * head_bytes;
  // Queries, outputs and the new tokens' keys and values.
  const double width = double(op.key_dim + op.value_dim);
  const double other_bytes =
      batch * queries *
      (double(op.heads) * width * 2 + kv_heads * stored * (op.values_in_keys ? 2 : 4));
  // A served model reads every layer's keys between two calls: only a repeated call finds its own.
  const double held = op.warm ? held_share_6(kv_bytes, fit.cache_share * device.cache) : 0;
  const double rate = device.bandwidth * fit.memory_share;
  const double memory = kv_bytes * (1 - held) / rate;
  const double cache = (kv_bytes * held + other_bytes) / cache_rate(rate, fit.cache_speed, device);

  // Query heads that share keys, of all new tokens, fill tiles of 64 rows; a short batch splits its keys over idle
  // multiprocessors, in parts of at least `mn`.
  const double cycle = 1 / device.clock;
  // What starts within a call takes as many launches on every device: generations that launch faster start everything faster.
  const double pace = launch_pace(set, device);
  const double start = cycle * pace;
  const double row_tiles = whole_up(queries * double(op.heads) / kv_heads / 64);
  const double units = batch * kv_heads * row_tiles;
  const double splits =
      std::clamp(device.processors / units, 1.0, std::max(1.0, keys / fit.least_split_keys));
  const double load = units * splits / device.processors;
  const double width_ratio = stored / (op.values_in_keys ? 128 : 256);
  const double width_factor = width_ratio == 1 ? 1 : std::pow(width_ratio, fit.width_power);
  // How fast one multiprocessor streams is a fact of its design: more of them do not make each slower.
  const double streaming =
      head_bytes * 128 / (fit.stream_rate * device.bandwidth / device.rated_processors);
  const double block = streaming + fit.key_block_latency * cycle;
  const double arithmetic =
      kv_heads * std::max(64 * row_tiles, fit.least_rows) * flops_per_key * op.kv_tokens / peak;
  const double blocks = std::max(load, 1.0) * (keys / splits / 128);
  const double compute =
      arithmetic + blocks * block + fit.extra_unit * start * width_factor * std::max(load - 1, 0.0);

  const double crowding = fit.extra_head * start * width_factor *
                          std::max(batch * kv_heads / device.processors - 1, 0.0);
  const double parts = keys / fit.least_split_keys;
  const double joining =
      parts > 1 ? fit.split_joining * start * std::min(std::log2(parts), 4.0) / 4 : 0;
  const double own_floor =
      op.stores_kv ? fit.floor_clocks : std::max(0.0, fit.floor_clocks - fit.engine_floor_clocks);
  const double floor = own_floor * floor_cycle(device) * pace + crowding + joining;
  const double useful = flops_per_key * double(op.heads) * op.pairs();
  const double cold = op.warm ? 0 : kv_bytes / device.bandwidth;
  return {.compute = compute,
          .memory = memory,
          .l2 = cache,
          .launch = floor,
          .time = floor + overlapped(compute, memory + cache, fit.overlap_power),
          .least = std::max(cold, useful / peak),
          .splits = splits,
          .arithmetic_share = arithmetic / compute,
          .memory_share = blocks * streaming / compute};
}

}  // namespace engine
