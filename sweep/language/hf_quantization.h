// What `quantization_config` of a config.json says about number formats.
#pragma once

#include <optional>
#include <string>

#include "engine/base/result.h"
#include "engine/model/parallelism.h"
#include "sweep/language/node.h"

namespace sweep {

// Formats a published model comes in. What the file leaves open stays empty, and is then the sweep's to say.
struct HfQuantization {
  struct Matrices {
    engine::Dtype weights = engine::Dtype::bf16;
    engine::Dtype activations = engine::Dtype::bf16;
    std::int64_t group = 128;
    engine::QuantScope scope = engine::QuantScope::all;

    bool operator==(const Matrices&) const = default;
  };
  std::optional<Matrices> matrices;
  std::optional<engine::Dtype> kv;
  // What cannot be read, where there is such a thing: then the sweep has to state its formats.
  std::optional<engine::Mistake> unknown;

  bool operator==(const HfQuantization&) const = default;
};

// Formats by the whole file, whose model has so many layers. Empty where it has no quantization_config.
HfQuantization read_hf_quantization(const Node& config, std::int64_t layers);

}  // namespace sweep
