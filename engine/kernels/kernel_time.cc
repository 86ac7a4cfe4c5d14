#include "engine/kernels/kernel_time.h"

#include "engine/base/check.h"
#include "engine/kernels/absorbed.h"
#include "engine/kernels/attention.h"
#include "engine/kernels/copy.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/moe.h"
#include "engine/kernels/quantize.h"
#include "engine/kernels/recurrent.h"

namespace engine {
namespace {

bool is_absorbed(Family family) {
  return family == Family::mla_gen_pre || family == Family::mla_gen_post;
}

// One overload a kind of op: a new alternative of Op does not compile until it has one.
struct TimeOf {
  Family family;
  const Device& device;
  const Calibration* calibration;

  KernelTime operator()(const Gemm& op) const {
    return is_absorbed(family) ? absorbed_time(op, family, device, calibration)
                               : gemm_time(op, device, calibration);
  }
  KernelTime operator()(const GroupedGemm& op) const {
    return grouped_gemm_time(op, device, calibration);
  }
  KernelTime operator()(const Moe& op) const { return moe_time(op, device, calibration); }
  KernelTime operator()(const AttentionPrefill& op) const {
    return attention_prefill_time(op, device, family, calibration);
  }
  KernelTime operator()(const AttentionDecode& op) const {
    return attention_decode_time(op, device, family, calibration);
  }
  KernelTime operator()(const Elementwise& op) const {
    return elementwise_time(op, device, family, calibration);
  }
  KernelTime operator()(const Quantize& op) const { return quantize_time(op, device, calibration); }
  KernelTime operator()(const Copy& op) const { return copy_time(op, device, calibration); }
  KernelTime operator()(const Lora& op) const { return lora_time(op, device); }
  KernelTime operator()(const Scan& op) const { return scan_time(op, device); }
  KernelTime operator()(const Convolution& op) const { return convolution_time(op, device); }
  KernelTime operator()(const Collective&) const { return not_a_kernel(); }
  KernelTime operator()(const ExpertExchange&) const { return not_a_kernel(); }

  static KernelTime not_a_kernel() {
    check(false, "a collective is not a kernel of one device");
    return {};
  }
};

struct CoordinatesOf {
  Family family;

  Coordinates operator()(const Gemm& op) const {
    return is_absorbed(family) ? absorbed_coordinates(op) : gemm_coordinates(op);
  }
  Coordinates operator()(const GroupedGemm& op) const { return grouped_gemm_coordinates(op); }
  Coordinates operator()(const Moe& op) const { return moe_coordinates(op); }
  Coordinates operator()(const AttentionPrefill& op) const { return prefill_coordinates(op); }
  Coordinates operator()(const AttentionDecode& op) const { return decode_coordinates(op); }
  Coordinates operator()(const Elementwise& op) const { return pass_coordinates(op); }
  Coordinates operator()(const Quantize& op) const { return quantize_coordinates(op); }
  Coordinates operator()(const Copy& op) const {
    return op.path == CopyPath::device ? coordinates(1, 2 * op.bytes, 0) : coordinates(op.bytes);
  }
  Coordinates operator()(const Collective& op) const {
    return between_nodes(op)
               ? coordinates(op.bytes, double(op.ranks) / double(op.per_node), op.per_node)
               : coordinates(op.bytes, op.ranks);
  }
  Coordinates operator()(const ExpertExchange& op) const {
    return coordinates(op.tokens, op.hidden, op.top_k, op.experts);
  }
  template <class Uncalibrated>
  Coordinates operator()(const Uncalibrated&) const {
    return {};
  }
};

}  // namespace

KernelTime kernel_time(Family family, const Op& op, const Device& device,
                       const Calibration* calibration) {
  return std::visit(TimeOf{family, device, calibration}, op);
}

Coordinates coordinates_of(Family family, const Op& op) {
  return std::visit(CoordinatesOf{family}, op);
}

}  // namespace engine
