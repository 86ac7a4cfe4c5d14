#include "engine/model/network_ops.h"

namespace engine {
namespace {

struct LayerBuilder {
  const NetworkLayer& layer;
  double images;
  const Quantization& quant;

  double value_bytes() const { return bytes_of(quant.activations); }
  double values_in() const {
    return images * (layer.values_in() + (layer.adds ? layer.values_out() : 0));
  }
  double values_out() const { return images * layer.values_out(); }

  ImageConvolution convolution() const {
    return {.rows = images * layer.out_pixels(),
            .n = layer.out / layer.groups,
            .k = std::int64_t(layer.summed()),
            .groups = layer.groups,
            .values_in = values_in(),
            .values_out = values_out(),
            .weights = quant.weights,
            .activations = quant.activations,
            .group = quant.group};
  }

  // A pass of the vector units: each value of the output is a sum, or the largest, of few values of one channel.
  Elementwise pass(double flops_per_value) const {
    return {.rows = images * layer.out_pixels(),
            .resident_bytes = (values_in() + values_out()) * value_bytes(),
            .cold_bytes = stored_bytes(layer.weights(), quant.weights, quant.group),
            .flops = flops_per_value * layer.summed() * values_out()};
  }

  Gemm linear() const {
    return {.m = std::int64_t(images),
            .n = layer.out,
            .k = layer.in,
            .weights = quant.weights,
            .activations = quant.activations,
            .group = quant.group};
  }
};

}  // namespace

void network_ops(const std::vector<NetworkLayer>& layers, std::int64_t images,
                 const Quantization& quant, OpList& ops) {
  static_assert(kMostNetworkLayers <= OpList::kMost);
  for (const NetworkLayer& layer : layers) {
    const LayerBuilder build{layer, double(images), quant};
    const double calls = double(layer.times);
    if (layer.depthwise()) {
      ops.add(OpName::depthwise, Family::act, calls, build.pass(2));
    } else if (layer.kind == NetworkLayer::Kind::convolution) {
      const OpName name = layer.kernel == 1 ? OpName::pointwise : OpName::convolution;
      ops.add(name, Family::convolution, calls, build.convolution());
    } else if (layer.kind == NetworkLayer::Kind::pool) {
      ops.add(OpName::pool, Family::act, calls, build.pass(1));
    } else {
      ops.add(OpName::linear, Family::gemm, calls, build.linear());
    }
  }
}

}  // namespace engine
