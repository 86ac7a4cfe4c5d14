// Families of matrix products and experts: the parameters of each fitted form with the coordinates that say where it
// was fitted, and the sets of the families that have that form. The forms themselves are in engine/kernels; where the
// values come from is in engine/README.md. Rates are relative to the device's datasheet.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/calibration/coordinates.h"
#include "engine/calibration/fitted_set.h"
#include "engine/calibration/parameter.h"

namespace engine {

// Tiled matrix products (engine/kernels/gemm_form.cc).
struct GemmFit {
  double memory_share = 1, cache_rate = 1, step_latency = 0, cache_share = 1, split_joining = 0;
  double write_passes = 1, compute_share = 1, kernel_start = 0, tile_start = 0, tile_writing = 0;
  double wave_overlap = 1, small_tile_loss = 0, sustained_slowdown = 0, floor = 0;
  double pipeline_fill = 0, pipeline_half = 1;
  double quantize_floor = 0, quantize_memory_share = 1, quantize_row = 0;

  static constexpr std::array<Coordinate, 5> kCoordinates{{{"m", Scale::size, 3},
                                                           {"n", Scale::size, 1.5},
                                                           {"k"},
                                                           {"groups"},
                                                           {"ragged", Scale::amount}}};
  static constexpr Features kFeatures = Features::product;

  static constexpr auto parameters() {
    using F = GemmFit;
    return std::to_array<Parameter<F>>({
        {"memory_share",
         &F::memory_share,
         "",
         "share of the memory bandwidth reached",
         {0.8, 0.5, 1},
         "eta_m"},
        {"cache_rate",
         &F::cache_rate,
         "64 B/clock",
         "rate from the cache to one multiprocessor",
         {1.5, 0.1, 5},
         "c_l2bw"},
        {"step_latency",
         &F::step_latency,
         "kclock",
         "latency of one step over the inner dimension",
         {0.05, 1e-4, 5},
         "lit"},
        {"cache_share",
         &F::cache_share,
         "",
         "share of the cache that a product can use",
         {0.5, 0.3, 1},
         "l2cap"},
        {"split_joining",
         &F::split_joining,
         "kclock",
         "joining the parts of a split inner dimension",
         {5, 0.01, 60},
         "split"},
        {"write_passes",
         &F::write_passes,
         "",
         "written bytes over the size of the output",
         {1.05, 1, 1.5},
         "mwr"},
        {"compute_share",
         &F::compute_share,
         "",
         "share of the matrix peak reached",
         {0.9, 0.3, 1},
         "eta_c"},
        {"kernel_start", &F::kernel_start, "kclock", "start of a kernel", {0.1, 1e-5, 20}, "lat"},
        {"tile_start", &F::tile_start, "kclock", "start of a tile", {0.05, 1e-5, 20}, "latw"},
        {"tile_writing",
         &F::tile_writing,
         "",
         "writing a tile, in passes over it",
         {4, 0.01, 60},
         "epi"},
        {"wave_overlap",
         &F::wave_overlap,
         "",
         "how far waves overlap: 0 whole waves, 1 none",
         {0.7, 1e-3, 1},
         "ws"},
        {"small_tile_loss",
         &F::small_tile_loss,
         "",
         "arithmetic lost on the edges of a tile, in rows and columns",
         {5, 0.01, 60},
         "x0"},
        {"sustained_slowdown",
         &F::sustained_slowdown,
         "",
         "slowdown of long kernels by sustained power",
         {0.05, 1e-6, 0.3},
         "thr"},
        {"floor", &F::floor, "us", "least time of a call", {2.5, 0.5, 300}, "floor"},
        {"pipeline_fill",
         &F::pipeline_fill,
         "us",
         "most that filling and draining the memory's pipeline takes",
         {1, 1e-3, 10},
         "rc"},
        {"pipeline_half",
         &F::pipeline_half,
         "us",
         "traffic at which that takes half as much",
         {1, 0.05, 50},
         "rt"},
        {"quantize_floor",
         &F::quantize_floor,
         "us",
         "part of the floor that quantises the input",
         {1, 1e-3, 290},
         "qf"},
        {"quantize_memory_share",
         &F::quantize_memory_share,
         "",
         "share of the memory bandwidth reached when quantising",
         {0.5, 0.05, 1},
         "qe"},
        {"quantize_row",
         &F::quantize_row,
         "us",
         "quantising one row on one multiprocessor",
         {0.05, 1e-5, 5},
         "qr"},
    });
  }
};

// Small products around latent attention, one for each head (engine/kernels/absorbed.cc).
struct AbsorbedFit {
  double compute_share = 1, memory_share = 1, floor = 0, overlap_power = 2, tile_start = 0;
  double cache_share = 1, cache_speed = 1;

  static constexpr std::array<Coordinate, 2> kCoordinates{{{"tokens"}, {"q_heads"}}};
  static constexpr Features kFeatures = Features::none;

  static constexpr auto parameters() {
    using F = AbsorbedFit;
    return std::to_array<Parameter<F>>({
        {"compute_share",
         &F::compute_share,
         "",
         "share of the matrix peak reached",
         {0.7, 0.1, 1},
         "eta_c"},
        {"memory_share",
         &F::memory_share,
         "",
         "share of the memory bandwidth reached",
         {0.8, 0.3, 1},
         "eta_m"},
        {"floor", &F::floor, "us", "least time of a call", {4, 1, 15}, "floor"},
        {"overlap_power",
         &F::overlap_power,
         "",
         "how arithmetic and traffic combine: 1 their sum, a large one their maximum",
         {2, 1, 8},
         "pn"},
        {"tile_start",
         &F::tile_start,
         "kclock",
         "start of the four tiles of a head",
         {1, 1e-3, 20},
         "lat"},
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
         {2, 1, 8},
         "rl2"},
    });
  }
};

// Routed experts in one fused call (engine/kernels/moe.cc).
struct MoeFit {
  double compute_share = 1, memory_share = 1, floor = 0, overlap_power = 2;
  double skew_strength = 0, strong_skew_strength = 0, touched_scale = 1, touched_power = 1;
  double wave_start = 0, activation_passes = 1, token_copy = 0, small_tile_loss = 0;
  double expert_doubling = 0, cache_share = 1, token_passes = 1;

  static constexpr std::array<Coordinate, 7> kCoordinates{{{"tokens"},
                                                           {"hidden"},
                                                           {"inter"},
                                                           {"topk"},
                                                           {"experts"},
                                                           {"local_experts"},
                                                           {"skew", Scale::amount}}};
  static constexpr Features kFeatures = Features::experts;

  static constexpr auto parameters() {
    using F = MoeFit;
    return std::to_array<Parameter<F>>({
        {"compute_share",
         &F::compute_share,
         "",
         "share of the matrix peak reached",
         {0.7, 0.1, 1},
         "eta_c"},
        {"memory_share",
         &F::memory_share,
         "",
         "share of the memory bandwidth reached",
         {0.85, 0.5, 1},
         "eta_m"},
        {"floor", &F::floor, "us", "least time of a call", {18, 5, 60}, "floor"},
        {"overlap_power",
         &F::overlap_power,
         "",
         "how arithmetic and traffic combine: 1 their sum, a large one their maximum",
         {2, 1, 6},
         "pn"},
        {"skew_strength",
         &F::skew_strength,
         "",
         "imbalance over devices at a routing skew of 1.01, over what chance says",
         {0.4, 0.02, 4},
         "c1"},
        {"strong_skew_strength",
         &F::strong_skew_strength,
         "",
         "the same at a routing skew of 1.2",
         {0.5, 0.02, 4},
         "c12"},
        {"touched_scale",
         &F::touched_scale,
         "",
         "scale of tokens per expert in the number of experts with a token",
         {1, 0.2, 3},
         "ct"},
        {"touched_power",
         &F::touched_power,
         "",
         "power of tokens per expert in the number of experts with a token",
         {0.8, 0.4, 1},
         "et"},
        {"wave_start",
         &F::wave_start,
         "100 clocks",
         "start of a wave of tiles",
         {2, 0.01, 30},
         "lw"},
        {"activation_passes",
         &F::activation_passes,
         "",
         "passes over half of the activations",
         {2, 0.2, 10},
         "ca"},
        {"token_copy",
         &F::token_copy,
         "us",
         "moving one copy of a token on one multiprocessor",
         {0.3, 1e-3, 5},
         "ctok"},
        {"small_tile_loss",
         &F::small_tile_loss,
         "rows",
         "arithmetic lost on the edges of a tile",
         {10, 0.1, 80},
         "x0"},
        {"expert_doubling",
         &F::expert_doubling,
         "kclock",
         "time for each doubling of the local experts",
         {1, 1e-3, 20},
         "lr"},
        {"cache_share",
         &F::cache_share,
         "",
         "share of the cache that the kernel can use",
         {0.5, 0.05, 1},
         "l2c"},
        {"token_passes",
         &F::token_passes,
         "",
         "passes over the tokens, in and out",
         {1, 0.01, 5},
         "cT"},
    });
  }
};

// Formats of matrix products with parameters of their own.
enum class GemmFormat : std::uint8_t {
  bf16,       // all 16-bit formats
  fp8,        // a scale a tensor or row
  fp8_block,  // a scale a block of 128
  nvfp4,
  int8_wo,  // weights only; arithmetic in 16 bits
  int4_wo,
  int8,  // weights and activations
};
constexpr std::array<std::string_view, 7> enum_names(GemmFormat) {
  return {"bf16", "fp8", "fp8_block", "nvfp4", "int8_wo", "int4_wo", "int8"};
}

enum class MoeFormat : std::uint8_t { bf16, fp8, fp8_block, nvfp4, int4_wo, mxfp4, mxfp4_mxfp8 };
constexpr std::array<std::string_view, 7> enum_names(MoeFormat) {
  return {"bf16", "fp8", "fp8_block", "nvfp4", "int4_wo", "mxfp4", "mxfp4_mxfp8"};
}

struct ProductFamilies {
  FittedTable<GemmFit, GemmFormat> gemm;
  FittedTable<GemmFit, GemmFormat> grouped_gemm;
  FittedSets<AbsorbedFit> mla_gen_pre, mla_gen_post, mla_gen_pre_fp8, mla_gen_post_fp8;
  FittedTable<MoeFit, MoeFormat> moe;

  template <class Self, class Visit>
  static void sections(Self& self, Visit&& visit) {
    each_kind<GemmFormat>("gemm", self.gemm, visit);
    each_kind<GemmFormat>("grouped_gemm", self.grouped_gemm, visit);
    visit(SectionName{"mla_gen_pre", "bf16"}, self.mla_gen_pre);
    visit(SectionName{"mla_gen_post", "bf16"}, self.mla_gen_post);
    visit(SectionName{"mla_gen_pre", "fp8"}, self.mla_gen_pre_fp8);
    visit(SectionName{"mla_gen_post", "fp8"}, self.mla_gen_post_fp8);
    each_kind<MoeFormat>("moe", self.moe, visit);
  }
};

}  // namespace engine
