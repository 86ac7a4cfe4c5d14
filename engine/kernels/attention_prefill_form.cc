#include <limits>

#include "engine/base/rounding.h"
#include "engine/kernels/attention_form.h"
#include "engine/model/batch_shape.h"

namespace engine {
namespace {

constexpr double kKeyTile = 128;

// Bytes one new token moves: its query and output, its keys and values as computed and as cached.
double token_bytes(const AttentionPrefill& op) {
  const double width = double(op.key_dim + op.value_dim);
  if (op.latent > 0) {
    return double(op.heads) * width * 2 * 2 + double(op.latent) * (2 + bytes_of(op.kv));
  }
  return width * 2 * double(op.heads) + width * double(op.kv_heads) * (2 + 2 * bytes_of(op.kv));
}

// Bytes of one cached token. Latent ones are expanded to 16 bits before.
double cached_bytes(const AttentionPrefill& op) {
  const double width = double(op.key_dim + op.value_dim);
  return width * double(op.kv_heads) * (op.latent > 0 ? 2 : bytes_of(op.kv));
}

// Keys that a tile of query rows goes through, on average over the tiles.
double keys_of_a_tile(const AttentionPrefill& op, double query, double context, double tile_rows) {
  const double cached = context - query;
  const double even = causal_pairs(query, cached, double(op.window));
  // How much more work a batch of unequal chunks is than one of equal ones.
  const double uneven = std::max(1.0, op.pairs / (double(op.sequences) * even));
  // A tile meets the diagonal at its end; behind a window's length of keys it meets the window's edge, too.
  const double growing =
      op.window > 0 ? std::clamp(double(op.window) - cached, 0.0, query) / query : 1;
  const double edges =
      growing * (tile_rows + kKeyTile) / 2 + (1 - growing) * (tile_rows + kKeyTile / 2);
  return std::min(even / query - 0.5 + edges, context + kKeyTile / 2) * uneven;
}

}  // namespace

FormTime prefill_form(const AttentionPrefill& op, const DeviceRates& device, double peak,
                      const FittedSet<PrefillFit>& set) {
  const PrefillFit& fit = set.fit;
  const double sequences = double(op.sequences);
  const double query = op.tokens / sequences;
  const double context = op.kv_tokens / sequences;
  const double dim = double(op.key_dim + op.value_dim) / 2;
  const double window = op.window > 0 ? double(op.window) : std::numeric_limits<double>::infinity();
  // Heads that share keys may share a tile.
  const bool packed = fit.packed_heads > 0.5 && !op.decodes;
  const double sharing = packed ? double(op.heads) / double(op.kv_heads) : 1;
  const double rows_all = query * sharing;
  const double tiles = whole_up(rows_all / fit.tile_rows);
  const double units = sequences * double(packed ? op.kv_heads : op.heads) * tiles;
  const double rows = std::min(fit.tile_rows, 64 * whole_up(rows_all / 64));
  const double most_keys = std::min(context + kKeyTile / 2, window + fit.tile_rows + kKeyTile / 2);
  const double mean_keys = keys_of_a_tile(op, query, context, fit.tile_rows);

  // One key of a tile: two products and the exponentials, at the rates of one multiprocessor.
  const double cycle = 1 / device.clock;
  const double per_key = (4 * dim * rows / (peak / device.processors) +
                          fit.exponentials * rows / (16e3 * device.clock)) /
                             fit.compute_share +
                         fit.key_block_latency * cycle / kKeyTile;
  const double unit = per_key * mean_keys + fit.tile_start * cycle;
  const double longest = per_key * most_keys + fit.tile_start * cycle;
  const double load = units / device.processors;
  const double waves =
      load > 1 ? (1 - fit.wave_overlap) * whole_up(load - 1e-9) + fit.wave_overlap * load : load;
  const double compute =
      std::max(fit.longest_tile * longest, waves * unit + fit.tail * std::min(load, 1.0) * longest);

  const double bytes = sequences * (query * token_bytes(op) + (context - query) * cached_bytes(op));
  const double held = held_share_4(bytes, fit.cache_share * device.cache);
  const double rate = device.bandwidth * fit.memory_share;
  const double own_floor =
      op.stores_kv ? fit.floor_clocks : std::max(0.0, fit.floor_clocks - fit.engine_floor_clocks);
  const double floor = shifted_floor(own_floor * cycle, set, device) +
                       fit.head_start * sequences * double(op.heads) / device.processors;
  const double memory = bytes * (1 - held) / rate;
  const double cache = bytes * held / cache_rate(rate, fit.cache_speed, device);
  const double useful = 4 * dim * double(op.heads) * op.pairs;
  return {.compute = compute,
          .memory = memory,
          .l2 = cache,
          .launch = floor,
          .time = floor + overlapped(compute, memory + cache, fit.overlap_power),
          .least = useful / peak};
}

}  // namespace engine
