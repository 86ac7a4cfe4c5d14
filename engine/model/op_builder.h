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
  double rows;  // tokens, padding included

  Gemm gemm(std::int64_t n, std::int64_t k) const {
    return {.m = std::int64_t(rows),
            .n = n,
            .k = k,
            .batch = 1,
            .weights = shard.dense.weights,
            .activations = shard.dense.activations,
            .group = shard.dense.group};
  }

  void norm(OpName name, double calls) const;
  void quantize(OpName name, double calls,
                double width) const;                 // nothing where inputs have 16 bits
  void all_reduce(OpName name, double calls) const;  // nothing on one device
};

}  // namespace engine
