// What was learned from measurements, as plain values: fitted parameters per family, format and set of
// devices, how far they may be trusted, and the measured calls of a device that was swept.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/result.h"
#include "engine/base/tier.h"
#include "engine/calibration/coordinates.h"
#include "engine/calibration/fits.h"
#include "engine/calibration/parameter_set.h"
#include "engine/calibration/point_set.h"
#include "engine/hardware/device.h"

namespace engine {

// Raised when the text below is read differently; another format is refused.
constexpr std::int64_t kCalibrationFormat = 1;

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

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  custom_all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  send_recv,
};
constexpr std::array<std::string_view, 6> enum_names(CollectiveKind) {
  return {"all_reduce",     "custom_all_reduce", "all_gather",
          "reduce_scatter", "all_to_all",        "send_recv"};
}

enum class ExchangeKind : std::uint8_t {
  low_latency_dispatch,
  low_latency_combine,
  normal_dispatch,
  normal_combine,
};
constexpr std::array<std::string_view, 4> enum_names(ExchangeKind) {
  return {"low_latency_dispatch", "low_latency_combine", "normal_dispatch", "normal_combine"};
}

enum class Direction : std::uint8_t { host_to_device, device_to_host };
constexpr std::array<std::string_view, 2> enum_names(Direction) {
  return {"host_to_device", "device_to_host"};
}

// Shapes the fit has seen; an empty one has no limits.
struct Envelope {
  std::array<double, kMostCoordinates> low{};
  std::array<double, kMostCoordinates> high{};
  bool known = false;

  bool contains(const Coordinates& shape) const {
    bool inside = true;
    for (std::size_t i = 0; i < shape.count; ++i) {
      inside = inside && shape.value[i] >= low[i] && shape.value[i] <= high[i];
    }
    return inside || !known;
  }
  // Nothing is inside.
  static Envelope nowhere() {
    Envelope envelope{.known = true};
    envelope.low.fill(1);
    envelope.high.fill(-1);
    return envelope;
  }
};

// What holds for every fitted set, whatever its form.
struct SetFacts {
  bool present = false;
  Tier tier = Tier::transfer;
  double launch =
      0;  // us; launch latency of the fitted device: another one's floor differs by the rest
  double low = 1;  // 5% and 95% of measured over predicted time, on calls the fit did not see
  double high = 1;
  Envelope envelope;
  PointSet points;
};

template <class Fit>
struct FittedSet : SetFacts {
  Fit fit;
};

template <class Fit>
using FittedSets = std::array<FittedSet<Fit>, kParameterSets>;

template <class Fit, class Kind>
using FittedTable = std::array<FittedSets<Fit>, enum_names(Kind{}).size()>;

struct Calibration {
  std::string name;
  Tier tier = Tier::transfer;
  std::string device;  // measured: the device that was swept
  std::string impl;    // measured: the one implementation it is about; empty: the device's kernels
  std::string source;  // where the measurements come from
  std::string fit_error;              // the fit's own account of its error, one line
  std::string checksum;               // of the text it was read from
  std::string identity;               // checksums of all texts it was put together from
  std::optional<Device> measured_on;  // as its datasheet was then; older files do not say
  // The same for a device whose datasheet was altered since; shared by all copies. See completed_by.
  std::shared_ptr<const Calibration> altered;

  FittedTable<GemmFit, GemmFormat> gemm;
  FittedTable<GemmFit, GemmFormat> grouped_gemm;
  FittedSets<PrefillFit> attn_prefill, attn_prefill_fp8, mla_prefill;
  FittedSets<PrefillFit> attn_prefill_fp8_kv, mla_prefill_fp8_kv;  // 16-bit queries
  FittedSets<DecodeFit> attn_decode, attn_decode_fp8, mla_decode, mla_decode_fp8;
  FittedSets<AbsorbedFit> mla_gen_pre, mla_gen_post, mla_gen_pre_fp8, mla_gen_post_fp8;
  FittedTable<MoeFit, MoeFormat> moe;
  FittedTable<PassFit, Pass> pass;
  FittedTable<CopyFit, Direction> copy;
  FittedTable<CollectiveFit, CollectiveKind> collective;
  FittedTable<BetweenFit, CollectiveKind> between;  // nodes
  FittedTable<ExchangeFit, ExchangeKind> exchange;

  // Every family of parameters: visit(name, its sets, its coordinates). A section of the text is
  // "name/set", as "gemm/fp8/hopper".
  template <class Self, class Visit>
  static void sections(Self& self, Visit&& visit) {
    const auto table = [&visit](std::string_view family, auto kind, auto& sets,
                                CoordinateList list) {
      constexpr auto names = enum_names(decltype(kind){});
      for (std::size_t i = 0; i < names.size(); ++i) {
        visit(std::string(family) + "/" + std::string(names[i]), sets[i], list);
      }
    };
    table("gemm", GemmFormat{}, self.gemm, kGemmCoordinates);
    table("grouped_gemm", GemmFormat{}, self.grouped_gemm, kGemmCoordinates);
    visit("attn_prefill/bf16", self.attn_prefill, kPrefillCoordinates);
    visit("attn_prefill/fp8", self.attn_prefill_fp8, kPrefillCoordinates);
    visit("attn_prefill/fp8_kv", self.attn_prefill_fp8_kv, kPrefillCoordinates);
    visit("mla_prefill/bf16", self.mla_prefill, kPrefillCoordinates);
    visit("mla_prefill/fp8_kv", self.mla_prefill_fp8_kv, kPrefillCoordinates);
    visit("attn_decode/bf16", self.attn_decode, kDecodeCoordinates);
    visit("attn_decode/fp8", self.attn_decode_fp8, kDecodeCoordinates);
    visit("mla_decode/bf16", self.mla_decode, kDecodeCoordinates);
    visit("mla_decode/fp8", self.mla_decode_fp8, kDecodeCoordinates);
    visit("mla_gen_pre/bf16", self.mla_gen_pre, kAbsorbedCoordinates);
    visit("mla_gen_post/bf16", self.mla_gen_post, kAbsorbedCoordinates);
    visit("mla_gen_pre/fp8", self.mla_gen_pre_fp8, kAbsorbedCoordinates);
    visit("mla_gen_post/fp8", self.mla_gen_post_fp8, kAbsorbedCoordinates);
    table("moe", MoeFormat{}, self.moe, kMoeCoordinates);
    table("pass", Pass{}, self.pass, kPassCoordinates);
    table("copy", Direction{}, self.copy, kCopyCoordinates);
    table("collective", CollectiveKind{}, self.collective, kCollectiveCoordinates);
    table("between", CollectiveKind{}, self.between, kBetweenCoordinates);
    table("exchange", ExchangeKind{}, self.exchange, kExchangeCoordinates);
  }
};

// The set that speaks for a device whose generation is `chosen` (see choose_set): the device's own
// sweep, its generation's, or a wider one; nullptr where the family has none.
template <class Fit>
const FittedSet<Fit>* find_set(const FittedSets<Fit>& sets, ParameterSet chosen) {
  const auto at = [&sets](ParameterSet set) { return &sets[static_cast<std::size_t>(set)]; };
  if (at(ParameterSet::own)->present) return at(ParameterSet::own);
  if (chosen == ParameterSet::none) return nullptr;
  for (ParameterSet set = chosen;; set = wider_set(set)) {
    if (at(set)->present) return at(set);
    if (set == ParameterSet::pooled) return nullptr;
  }
}

// The set is a sweep's own, whether the device is still the one that was swept or was altered since.
template <class Fit>
bool is_own(const FittedSets<Fit>& sets, const FittedSet<Fit>* set) {
  return set == &sets[static_cast<std::size_t>(ParameterSet::own)];
}

// Whether a family has any parameters.
template <class Fit>
bool speaks(const FittedSets<Fit>& sets) {
  return std::ranges::any_of(sets, &FittedSet<Fit>::present);
}

// Text of a calibration and back. Refused, with the place and the reason: another format or model
// version, a checksum that does not match (edited by hand), an unknown or repeated name, a value that
// is not a number.
Result<Calibration> parse_calibration(std::string_view text, const std::string& file_name);
std::string write_calibration(const Calibration& calibration);

// The texts of a file that holds several, one after the other: a device's, then those of single
// implementations. Each has a checksum of its own; parse_calibration reads one.
std::vector<std::string_view> calibrations_in(std::string_view text);

// A device's sweep with the transfer parameters for everything it did not measure. Where it says what it
// was measured on, `altered` speaks for a device that is no longer that: the same utilisation of the altered
// datasheet, but as what it is then: tier transfer, flagged, and as wide an interval as a relative has.
Calibration completed_by(Calibration measured, const Calibration& transfer);

}  // namespace engine
