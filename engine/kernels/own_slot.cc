#include "engine/kernels/own_slot.h"

#include "engine/kernels/absorbed.h"
#include "engine/kernels/attention.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/moe.h"

namespace engine {
namespace {

template <class Kind>
std::size_t index(Kind kind) {
  return static_cast<std::size_t>(kind);
}

// Floors of forms that no table speaks for start at the device's own launch latency.
void set_floor(double& floor, double launch) { floor = launch; }

struct Slots {
  Calibration& calibration;
  Family family;
  const Device& device;

  template <class Fit>
  OwnSlot begin(FittedSets<Fit>& sets, const FittedSets<Fit>& base, CoordinateList list,
                std::string section) const {
    FittedSet<Fit>& own = sets[index(ParameterSet::own)];
    const double launch = device.launch_latency.value * 1e6;
    if (!own.present) {
      const FittedSet<Fit>* from = find_set(base, choose_set(device));
      if (from != nullptr) {
        own.fit = from->fit;
        own.launch = from->launch;
        own.low = from->low;
        own.high = from->high;
      } else {
        own.launch = launch;
        if constexpr (requires { own.fit.floor; }) set_floor(own.fit.floor, launch);
      }
      own.present = true;
      own.tier = Tier::measured;
    }
    return {&own, list, section + "/own"};
  }

  std::string named(std::string_view table, std::string_view kind) const {
    return std::string(table) + "/" + std::string(kind);
  }

  OwnSlot operator()(const Gemm& op) const {
    if (family == Family::mla_gen_pre || family == Family::mla_gen_post) {
      auto& sets = const_cast<FittedSets<AbsorbedFit>&>(absorbed_sets(op, family, calibration));
      return begin(sets, speaking_absorbed_sets(op, family, calibration), kAbsorbedCoordinates,
                   named(name_of(family), bytes_of(op.weights) < 2 ? "fp8" : "bf16"));
    }
    if (!has_gemm_format(op.weights, op.activations)) return {};
    const GemmFormat format = gemm_format(op.weights, op.activations, op.group);
    auto& sets = calibration.gemm[index(format)];
    return begin(sets, sets, kGemmCoordinates, named("gemm", name_of(format)));
  }
  OwnSlot operator()(const GroupedGemm& op) const {
    if (!has_gemm_format(op.weights, op.activations)) return {};
    const GemmFormat format = gemm_format(op.weights, op.activations, op.group);
    return begin(calibration.grouped_gemm[index(format)], calibration.gemm[index(format)],
                 kGemmCoordinates, named("grouped_gemm", name_of(format)));
  }
  OwnSlot operator()(const Moe& op) const {
    if (!has_gemm_format(op.weights, op.activations)) return {};
    auto& sets = calibration.moe[index(moe_format(op))];
    return begin(sets, sets, kMoeCoordinates, named("moe", name_of(moe_format(op))));
  }
  OwnSlot operator()(const AttentionPrefill& op) const {
    auto& sets = const_cast<FittedSets<PrefillFit>&>(prefill_sets(op, family, calibration));
    const bool fp8 = &sets == &calibration.attn_prefill_fp8;
    const bool wide = &sets == &calibration.attn_prefill || &sets == &calibration.mla_prefill;
    return begin(sets, speaking_prefill_sets(op, family, calibration), kPrefillCoordinates,
                 named(name_of(family), fp8    ? "fp8"
                                        : wide ? "bf16"
                                               : "fp8_kv"));
  }
  OwnSlot operator()(const AttentionDecode& op) const {
    auto& sets = const_cast<FittedSets<DecodeFit>&>(decode_sets(op, family, calibration));
    const bool fp8 = &sets == &calibration.attn_decode_fp8 || &sets == &calibration.mla_decode_fp8;
    return begin(sets, sets, kDecodeCoordinates, named(name_of(family), fp8 ? "fp8" : "bf16"));
  }
  OwnSlot operator()(const Elementwise&) const { return pass(pass_of(family)); }
  OwnSlot operator()(const Quantize&) const { return pass(Pass::quantize); }
  OwnSlot operator()(const Copy& op) const {
    if (op.path == CopyPath::device) return pass(Pass::copy);
    const Direction direction =
        op.path == CopyPath::host_to_device ? Direction::host_to_device : Direction::device_to_host;
    auto& sets = calibration.copy[index(direction)];
    return begin(sets, sets, kCopyCoordinates, named("copy", name_of(direction)));
  }
  OwnSlot operator()(const Collective& op) const {
    static constexpr CollectiveKind kinds[] = {
        CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
        CollectiveKind::all_to_all, CollectiveKind::send_recv};
    CollectiveKind kind = kinds[index(op.pattern)];
    if (op.pattern == Pattern::all_reduce && op.library == Library::custom) {
      kind = CollectiveKind::custom_all_reduce;
    }
    if (between_nodes(op)) {
      kind = kinds[index(op.pattern)];
      auto& between = calibration.between[index(kind)];
      return begin(between, between, kBetweenCoordinates, named("between", name_of(kind)));
    }
    auto& sets = calibration.collective[index(kind)];
    return begin(sets, sets, kCollectiveCoordinates, named("collective", name_of(kind)));
  }
  OwnSlot operator()(const ExpertExchange& op) const {
    const bool combine = op.way == ExpertExchange::Way::combine;
    const ExchangeKind kind =
        op.kernels == ExpertExchange::Kernels::normal
            ? (combine ? ExchangeKind::normal_combine : ExchangeKind::normal_dispatch)
            : (combine ? ExchangeKind::low_latency_combine : ExchangeKind::low_latency_dispatch);
    auto& sets = calibration.exchange[index(kind)];
    return begin(sets, sets, kExchangeCoordinates, named("exchange", name_of(kind)));
  }
  template <class Uncalibrated>
  OwnSlot operator()(const Uncalibrated&) const {
    return {};
  }

  OwnSlot pass(Pass which) const {
    auto& sets = calibration.pass[index(which)];
    return begin(sets, sets, kPassCoordinates, named("pass", name_of(which)));
  }
};

}  // namespace

OwnSlot own_slot(Calibration& calibration, Family family, const Op& op, const Device& device) {
  return std::visit(Slots{calibration, family, device}, op);
}

}  // namespace engine
