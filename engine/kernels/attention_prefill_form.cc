#include <array>
#include <limits>

#include "engine/base/rounding.h"
#include "engine/kernels/attention_form.h"
#include "engine/model/batch_shape.h"

namespace engine {

double keys_to_share(const AttentionPrefill& op) {
  if (!op.shares_keys || op.window > 0) return 0;
  return std::max(0.0, (op.kv_tokens - op.tokens) / double(op.sequences));
}

double saved_by_splitting(double cached, double parts) {
  constexpr double least_part = 256;  // keys: fewer do not pay for what a part begins with
  return cached - std::max(cached / parts, std::min(cached, least_part));
}

namespace {

constexpr double kKeyTile = 128;

// Bytes of one token that is attended to. Latent ones are expanded to 16 bits before.
double cached_bytes(const AttentionPrefill& op) {
  const double width = double(op.key_dim + op.value_dim);
  return width * double(op.kv_heads) * (op.latent > 0 ? 2 : bytes_of(op.kv));
}

// Bytes one new token moves: its query and output, its keys and values.
double token_bytes(const AttentionPrefill& op) {
  const double width = double(op.key_dim + op.value_dim);
  return width * 2 * double(op.heads) + cached_bytes(op);
}

// Bytes that storing one new token's keys and values moves: as they were computed and as they are cached.
double storing_bytes(const AttentionPrefill& op) {
  const double width = double(op.key_dim + op.value_dim);
  const double values = op.latent > 0 ? double(op.latent) : width * double(op.kv_heads);
  return values * (2 + bytes_of(op.kv));
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

// Parts that kernels share the cached keys of a tile out to.
constexpr std::array kParts{2.0,  3.0,  4.0,  6.0,  8.0,  12.0, 16.0,
                            24.0, 32.0, 48.0, 64.0, 96.0, 128.0};

// Tiles of query rows, and what they go through.
struct Tiles {
  double load = 1;       // tiles of a multiprocessor
  double mean_keys = 1;  // of a tile
  double most_keys = 1;
  double per_key = 0;
  double start = 0;
  // Keys that may be shared out, the kernel that then adds up what comes of the parts, and what each part brings to it.
  double cached = 0;
  double joining = 0;
  double joining_part = 0;
};

double time_in_parts(const Tiles& tiles, const PrefillFit& fit, double parts, double saved_keys) {
  const double unit = tiles.per_key * (tiles.mean_keys - saved_keys) + tiles.start;
  const double longest = tiles.per_key * (tiles.most_keys - saved_keys) + tiles.start;
  const double load = tiles.load * parts;
  const double waves =
      load > 1 ? (1 - fit.wave_overlap) * whole_up(load - 1e-9) + fit.wave_overlap * load : load;
  return std::max(fit.longest_tile * longest,
                  waves * unit + fit.tail * std::min(load, 1.0) * longest);
}

// Where there are fewer tiles than multiprocessors, as of a short prompt over many cached tokens, the others take parts of the cached
// keys. The best of a fixed list, each of which grows with queries and keys, keeps the time growing with them.
double time_of_tiles(const Tiles& tiles, const PrefillFit& fit) {
  double best = time_in_parts(tiles, fit, 1, 0);
  for (const double parts : kParts) {
    const double saved = saved_by_splitting(tiles.cached, parts);
    if (tiles.load * parts > 1 || saved <= 0) break;
    const double time = time_in_parts(tiles, fit, parts, saved);
    best = std::min(best, time + tiles.joining + parts * tiles.joining_part);
  }
  return best;
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

  // One key of a tile: two products and the exponentials, at the rates of one multiprocessor.
  const double cycle = 1 / device.clock;
  const double per_key = (4 * dim * rows / (peak / device.processors) +
                          fit.exponentials * rows / (1e3 * device.exponentials * device.clock)) /
                             fit.compute_share +
                         fit.key_block_latency * cycle / kKeyTile;
  const double bytes = sequences * (query * token_bytes(op) + (context - query) * cached_bytes(op));
  const double held = held_share_4(bytes, fit.cache_share * device.cache);
  const double rate = device.bandwidth * fit.memory_share;
  const double own_floor =
      op.stores_kv ? fit.floor_clocks : std::max(0.0, fit.floor_clocks - fit.engine_floor_clocks);
  // A kernel of its own, before attention: nothing hides it.
  const double storing = op.stores_kv ? sequences * query * storing_bytes(op) / rate : 0;
  const double floor = shifted_floor(own_floor * cycle, set, device) + storing +
                       fit.head_start * sequences * double(op.heads) / device.processors;
  const double memory = bytes * (1 - held) / rate;
  const double cache = bytes * held / cache_rate(rate, fit.cache_speed, device);

  // Parts are written and read in 32 bits.
  const double sums = 2 * 4 * op.tokens * double(op.heads * op.value_dim);
  const double compute =
      time_of_tiles({.load = units / device.processors,
                     .mean_keys = keys_of_a_tile(op, query, context, fit.tile_rows),
                     .most_keys = most_keys,
                     .per_key = per_key,
                     .start = fit.tile_start * cycle,
                     .cached = keys_to_share(op),
                     .joining = device.launch,
                     .joining_part = sums / cache_rate(rate, fit.cache_speed, device)},
                    fit);
  const double useful = 4 * dim * double(op.heads) * op.pairs;
  return {.compute = compute,
          .memory = memory,
          .l2 = cache,
          .launch = floor,
          .time = floor + overlapped(compute, memory + cache, fit.overlap_power),
          .least = useful / peak};
}

}  // namespace engine
