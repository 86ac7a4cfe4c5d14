// Adds the operations that parts of a layer have in common: products, passes, casts and reductions of one step's rows.
#pragma once

#include <cstdint>

#include "engine/model/batch_shape.h"
#include "engine/model/model_ops.h"
#include "engine/model/model_shard.h"
#include "engine/model/op.h"

namespace engine {

struct OpBuilder {
  const ModelShard& shard;
  const ModelSpec& model;
  const BatchShape& batch;
  const LayerCounts& counts;
  OpList& ops;
  double rows;                  // tokens, padding included
  const Quantization& formats;  // of the matrices of this part

  Gemm gemm(std::int64_t n, std::int64_t k) const {
    return {.m = std::int64_t(rows),
            .n = n,
            .k = k,
            .batch = 1,
            .weights = formats.weights,
            .activations = formats.activations,
            .group = formats.group};
  }

  void norm(OpName name, double calls) const;
  void quantize(OpName name, double calls,
                double width) const;  // nothing where inputs have 16 bits
  // Whether `giver`, one of the narrow outputs, leaves nothing for quantize to do.
  bool comes_narrow(NarrowOutputs giver) const {
    return shard.narrow_outputs >= giver && scaled_as_a_whole(formats.activations, formats.group);
  }
  void all_reduce(OpName name, double calls) const;  // nothing on one device
};

}  // namespace engine
