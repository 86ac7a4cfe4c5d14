// Families of attention, as in product_families.h.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/calibration/coordinates.h"
#include "engine/calibration/fitted_set.h"
#include "engine/calibration/parameter.h"

namespace engine {

// Attention of prompts (engine/kernels/attention_prefill_form.cc).
struct PrefillFit {
  double compute_share = 1, exponentials = 0, tile_start = 0, key_block_latency = 0;
  double tail = 0, longest_tile = 1, overlap_power = 2, memory_share = 1, floor_clocks = 0;
  double head_start = 0, cache_share = 1, cache_speed = 1, wave_overlap = 1;
  double tile_rows = 128, packed_heads = 1, engine_floor_clocks = 0;

  static constexpr std::array<Coordinate, 7> kCoordinates{{{"query_len", Scale::length},
                                                           {"prefix_len", Scale::length},
                                                           {"batch", Scale::size, 2, 3, 1},
                                                           {"q_heads", Scale::size, 1, 4, -1},
                                                           {"kv_heads", Scale::size, 0.3},
                                                           {"head_dim", Scale::size, 2},
                                                           {"window", Scale::amount}}};
  static constexpr Features kFeatures = Features::prefill;

  static constexpr auto parameters() {
    using F = PrefillFit;
    return std::to_array<Parameter<F>>({
        {"compute_share",
         &F::compute_share,
         "",
         "share of the matrix and exponential rates reached",
         {0.8, 0.1, 1},
         "eta"},
        {"exponentials",
         &F::exponentials,
         "",
         "exponentials of one key and row, as the device's units give them (device.exponentials)",
         {1, 1e-3, 20},
         "mu"},
        {"tile_start", &F::tile_start, "kclock", "start of a tile", {0.5, 1e-3, 20}, "latu"},
        {"key_block_latency",
         &F::key_block_latency,
         "kclock",
         "latency of 128 keys",
         {0.02, 1e-4, 5},
         "kb"},
        {"tail",
         &F::tail,
         "",
         "what the last tiles add, in times of the longest one",
         {0.7, 1e-3, 5},
         "ct"},
        {"longest_tile",
         &F::longest_tile,
         "",
         "time of the longest tile alone, over its computed time",
         {1.2, 1, 5},
         "cx"},
        {"overlap_power",
         &F::overlap_power,
         "",
         "how arithmetic and traffic combine: 1 their sum, a large one their maximum",
         {1.5, 1, 6},
         "pn"},
        {"memory_share",
         &F::memory_share,
         "",
         "share of the memory bandwidth reached",
         {0.8, 0.3, 1},
         "etam"},
        {"floor_clocks", &F::floor_clocks, "kclock", "least time of a call", {15, 1, 40}, "cf"},
        {"head_start",
         &F::head_start,
         "us",
         "one head of one sequence on one multiprocessor",
         {0.05, 1e-4, 5},
         "cb"},
        {"cache_share",
         &F::cache_share,
         "",
         "share of the cache that the kernel can use",
         {0.5, 0.2, 1},
         "l2c"},
        {"cache_speed",
         &F::cache_speed,
         "",
         "bandwidth of the cache over that of memory, as reached",
         {1.5, 1, 10},
         "rl2"},
        {"wave_overlap",
         &F::wave_overlap,
         "",
         "how far waves overlap: 0 whole waves, 1 none",
         {0.7, 1e-3, 1},
         "ws"},
        {"tile_rows", &F::tile_rows, "rows", "query rows of a tile", {}, "tq"},
        {"packed_heads",
         &F::packed_heads,
         "",
         "above 0.5: heads that share keys share a tile",
         {},
         "pk"},
        {"engine_floor_clocks",
         &F::engine_floor_clocks,
         "kclock",
         "part of the floor that an engine adds around the kernel: storing keys, planning",
         {5, 1e-3, 35},
         "ef"},
    });
  }
};

// Attention of one token of each sequence, keys split over multiprocessors
// (engine/kernels/attention_decode_form.cc).
struct DecodeFit {
  double memory_share = 1, cache_share = 1, cache_speed = 1, floor_clocks = 0;
  double extra_unit = 0, extra_head = 0, least_rows = 1, key_block_latency = 0, stream_rate = 1;
  double overlap_power = 2, least_split_keys = 128, split_joining = 0, width_power = 0;
  double engine_floor_clocks = 0;

  static constexpr std::array<Coordinate, 6> kCoordinates{{{"context_len", Scale::length},
                                                           {"batch", Scale::size, 3, 3, 1},
                                                           {"q_heads", Scale::size, 1, 3, -1},
                                                           {"kv_heads", Scale::size, 0.3},
                                                           {"head_dim", Scale::size, 2},
                                                           {"window", Scale::amount}}};
  static constexpr Features kFeatures = Features::decode;

  static constexpr auto parameters() {
    using F = DecodeFit;
    return std::to_array<Parameter<F>>({
        {"memory_share",
         &F::memory_share,
         "",
         "share of the memory bandwidth reached",
         {0.9, 0.4, 1},
         "etam"},
        {"cache_share",
         &F::cache_share,
         "",
         "share of the cache that the kernel can use",
         {0.8, 0.4, 1.2},
         "l2c"},
        {"cache_speed",
         &F::cache_speed,
         "",
         "bandwidth of the cache over that of memory, as reached",
         {2, 1, 8},
         "rl2"},
        {"floor_clocks", &F::floor_clocks, "kclock", "least time of a call", {19, 1, 50}, "cf"},
        {"extra_unit",
         &F::extra_unit,
         "kclock",
         "a unit of work beyond one on each multiprocessor",
         {3, 0.01, 15},
         "cu"},
        {"extra_head",
         &F::extra_head,
         "kclock",
         "a KV head of a sequence beyond one on each multiprocessor",
         {1, 1e-3, 15},
         "ca"},
        {"least_rows", &F::least_rows, "rows", "fewest query rows of a tile", {16, 1, 128}, "gpad"},
        {"key_block_latency",
         &F::key_block_latency,
         "kclock",
         "latency of 128 keys",
         {0.3, 1e-3, 5},
         "tb"},
        {"stream_rate",
         &F::stream_rate,
         "",
         "rate one multiprocessor streams at, over its share of the bandwidth",
         {2, 0.3, 20},
         "sr"},
        {"overlap_power",
         &F::overlap_power,
         "",
         "how arithmetic and traffic combine: 1 their sum, a large one their maximum",
         {3, 1, 8},
         "pn"},
        {"least_split_keys",
         &F::least_split_keys,
         "keys",
         "fewest keys of a split",
         {256, 64, 2048},
         "mn"},
        {"split_joining", &F::split_joining, "kclock", "joining the splits", {1, 1e-3, 12}, "cc"},
        {"width_power",
         &F::width_power,
         "",
         "power of the head's width by which the extra units and heads grow",
         {0.3, 1e-3, 1},
         "dw"},
        {"engine_floor_clocks",
         &F::engine_floor_clocks,
         "kclock",
         "part of the floor that an engine adds around the kernel: storing keys, planning",
         {8, 1e-3, 45},
         "ef"},
    });
  }
};

struct AttentionFamilies {
  FittedSets<PrefillFit> attn_prefill, attn_prefill_fp8, mla_prefill;
  FittedSets<PrefillFit> attn_prefill_fp8_kv, mla_prefill_fp8_kv;  // 16-bit queries
  FittedSets<DecodeFit> attn_decode, attn_decode_fp8, mla_decode, mla_decode_fp8;

  template <class Self, class Visit>
  static void sections(Self& self, Visit&& visit) {
    visit(SectionName{"attn_prefill", "bf16"}, self.attn_prefill);
    visit(SectionName{"attn_prefill", "fp8"}, self.attn_prefill_fp8);
    visit(SectionName{"attn_prefill", "fp8_kv"}, self.attn_prefill_fp8_kv);
    visit(SectionName{"mla_prefill", "bf16"}, self.mla_prefill);
    visit(SectionName{"mla_prefill", "fp8_kv"}, self.mla_prefill_fp8_kv);
    visit(SectionName{"attn_decode", "bf16"}, self.attn_decode);
    visit(SectionName{"attn_decode", "fp8"}, self.attn_decode_fp8);
    visit(SectionName{"mla_decode", "bf16"}, self.mla_decode);
    visit(SectionName{"mla_decode", "fp8"}, self.mla_decode_fp8);
  }
};

}  // namespace engine
