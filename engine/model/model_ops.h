// The operations of one step of a model on one device of each pipeline stage.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "engine/base/check.h"
#include "engine/model/all_reduce.h"
#include "engine/model/batch_shape.h"
#include "engine/model/expert_places.h"
#include "engine/model/model_spec.h"
#include "engine/model/op.h"
#include "engine/model/parallelism.h"
#include "engine/model/sampling.h"

namespace engine {

// A list without allocation; the longest model needs about thirty entries.
class OpList {
 public:
  void add(OpName name, Family family, double calls, const Op& op) {
    if (calls <= 0) return;
    check(size_ < ops_.size(), "an op list holds every op of a step");
    ops_[size_++] = {name, family, calls, op};
  }
  void clear() { size_ = 0; }
  std::size_t size() const { return size_; }
  const PlannedOp* begin() const { return ops_.data(); }
  const PlannedOp* end() const { return ops_.data() + size_; }

 private:
  std::array<PlannedOp, 48> ops_;
  std::size_t size_ = 0;
};

// The share of a model that one device holds, under the tensor and expert parallelism at hand.
struct ModelShard {
  const ModelSpec* model = nullptr;
  Parallelism parallel;
  Quantization quant;  // of the routed experts, and of the KV cache
  Quantization dense;  // of every other matrix
  LayerCounts layers;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t intermediate = 1;
  std::int64_t shared_intermediate = 0;
  std::int64_t expert_intermediate = 0;
  ExpertPlaces experts;
  std::int64_t expert_replicas = 1;  // data-parallel replicas that share one set of experts
  std::int64_t vocabulary = 1;
  Sampling sampling = Sampling::greedy;
  bool joined_attention = false;  // prompts and decodes of a step in one kernel, that for prompts
  AllReduce all_reduce = AllReduce::custom;
  bool even_parts = false;  // of decodes: a long one is split into no more parts than others
};

// Why the model cannot be laid out like this, or nothing.
std::optional<std::string> shard_problem(const ModelSpec& model, const Parallelism& parallel);

// The model outlives the shard; `shard_problem` found nothing.
ModelShard shard_of(const ModelSpec& model, const Parallelism& parallel, const Quantization& quant);

// What depends on the number of tokens only: projections, norms, collectives, logits.
void token_ops(const ModelShard& shard, const BatchShape& batch, OpList& ops);

// What depends on how much is attended to.
void attention_ops(const ModelShard& shard, const BatchShape& batch, OpList& ops);

// Attention of the batch's decodes in the kernel that reads its prompts; `attention_ops` has it where
// the shard joins them.
void joined_decode_ops(const ModelShard& shard, const BatchShape& batch, OpList& ops);

}  // namespace engine
