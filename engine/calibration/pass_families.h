// Families of passes over data and of copies, as in product_families.h.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/calibration/coordinates.h"
#include "engine/calibration/fitted_set.h"
#include "engine/calibration/parameter.h"

namespace engine {

// One pass over data (engine/kernels/elementwise.cc).
struct PassFit {
  double floor = 0, memory_share = 1, cache_rate = 1, cache_share = 1, row_clocks = 0;
  double overlap_power = 1, cold_start = 0;

  // `cold` is the share of the bytes that is not in the cache: sweeps measure all or nothing of it.
  static constexpr std::array<Coordinate, 3> kCoordinates{
      {{"rows"}, {"row_bytes", Scale::size, 2}, {"cold", Scale::amount, 8}}};
  static constexpr Features kFeatures = Features::none;

  static constexpr auto parameters() {
    using F = PassFit;
    return std::to_array<Parameter<F>>({
        {"floor", &F::floor, "us", "least time of a call", {2, 0.3, 40}, "floor"},
        {"memory_share",
         &F::memory_share,
         "",
         "share of the memory bandwidth reached",
         {0.8, 0.08, 1},
         "eta"},
        {"cache_rate",
         &F::cache_rate,
         "64 B/clock",
         "rate from the cache to one multiprocessor",
         {0.4, 0.02, 1},
         "cl2"},
        {"cache_share",
         &F::cache_share,
         "",
         "share of the cache that the kernel can use",
         {0.9, 0.15, 1},
         "l2c"},
        {"row_clocks",
         &F::row_clocks,
         "kclock",
         "time of one block for a KiB of its row",
         {1e-2, 1e-6, 1},
         "cr"},
        {"overlap_power",
         &F::overlap_power,
         "",
         "how rows and traffic combine: 1 their sum, a large one their maximum",
         {1.2, 1, 8},
         "pn"},
        {"cold_start",
         &F::cold_start,
         "us",
         "latency of the first bytes from memory",
         {0.3, 1e-3, 3},
         "lc"},
    });
  }
};

// A copy between host and device (engine/kernels/copy.cc).
struct CopyFit {
  double floor = 0, link_share = 1;

  static constexpr std::array<Coordinate, 1> kCoordinates{{{"bytes"}}};
  static constexpr Features kFeatures = Features::none;

  static constexpr auto parameters() {
    using F = CopyFit;
    return std::to_array<Parameter<F>>({
        {"floor", &F::floor, "us", "least time of a copy", {3, 0.5, 40}, "floor"},
        {"link_share",
         &F::link_share,
         "",
         "share of the link's bandwidth reached",
         {0.8, 0.05, 1},
         "eta"},
    });
  }
};

// Kernels that pass once over their data.
enum class Pass : std::uint8_t {
  norm,  // residual add and norm
  residual,
  rope,
  act,
  embed,
  sample,
  kv_write,
  route,
  copy,
  quantize,
};
constexpr std::array<std::string_view, 10> enum_names(Pass) {
  return {"norm",   "residual", "rope",  "act",  "embed",
          "sample", "kv_write", "route", "copy", "quantize"};
}

enum class Direction : std::uint8_t { host_to_device, device_to_host };
constexpr std::array<std::string_view, 2> enum_names(Direction) {
  return {"host_to_device", "device_to_host"};
}

struct PassFamilies {
  FittedTable<PassFit, Pass> pass;
  FittedTable<CopyFit, Direction> copy;

  template <class Self, class Visit>
  static void sections(Self& self, Visit&& visit) {
    each_kind<Pass>("pass", self.pass, visit);
    each_kind<Direction>("copy", self.copy, visit);
  }
};

}  // namespace engine
