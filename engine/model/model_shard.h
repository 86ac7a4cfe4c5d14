// The share of a model that one device holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/model/all_reduce.h"
#include "engine/model/context_sharing.h"
#include "engine/model/expert_places.h"
#include "engine/model/expert_travel.h"
#include "engine/model/four_bit_experts.h"
#include "engine/model/lora_targets.h"
#include "engine/model/model_spec.h"
#include "engine/model/narrow_outputs.h"
#include "engine/model/parallelism.h"
#include "engine/model/sampling.h"
#include "engine/model/shared_experts.h"

namespace engine {

// How narrow matrices come by the layout that products of gradients need, where their units want one layout.
enum class NarrowTurn : std::uint8_t {
  apart,        // by a pass of its own
  in_the_cast,  // which writes both: scales of blocks are of rows or of columns
  never,        // units take either layout
};

// Under the tensor and expert parallelism at hand.
struct ModelShard {
  const ModelSpec* model = nullptr;
  Parallelism parallel;
  Quantization quant;  // of the routed experts, and of the KV cache
  Quantization dense;  // of matrices of dense MLPs and shared experts
  // Of what mixes tokens: projections of attention and of scans, and attention itself.
  Quantization mixers;
  LayerCounts layers;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t intermediate = 1;
  std::int64_t shared_intermediate = 0;
  std::int64_t expert_intermediate = 0;
  ExpertPlaces experts;
  std::int64_t expert_replicas = 1;  // data-parallel replicas that share one set of experts
  bool lockstep = false;             // served: these step together, each with a batch of its own
  std::int64_t vocabulary = 1;
  Sampling sampling = Sampling::greedy;
  FourBitExperts four_bit_experts = FourBitExperts::own;
  ExpertTravel expert_travel = ExpertTravel::automatic;
  bool narrow_exchange = true;  // inputs of experts in fp8 with blocks travel in fp8, too
  SharedExperts shared_experts = SharedExperts::after;
  NarrowOutputs narrow_outputs = NarrowOutputs::none;
  bool joined_attention = false;  // prompts and decodes of a step in one kernel, that for prompts
  bool overlapped_attention = false;  // in two kernels at the same time
  AllReduce all_reduce = AllReduce::custom;
  // Sums around experts normalise, too, in the one-shot kernel (TensorRT-LLM).
  bool normed_sums = false;
  // An engine's call of experts takes 16-bit inputs and makes them narrow itself.
  bool experts_quantize = false;
  // One half of the tokens computes while the experts of the other exchange.
  bool two_halves = false;
  ContextSharing shared_prompts;  // devices that read a prompt together
  // Training: how many times longer attention's kernels take than the fastest ones of the GPU.
  float attention_slower = 1;
  float attention_backward_slower = 1;
  NarrowTurn narrow_turn = NarrowTurn::apart;
  bool shared_keys = true;  // few queries of a prompt are shared out by the keys they attend to
  bool even_parts = false;  // of decodes: a long one is split into no more parts than others

  // Rank of the adapters that a batch brings.
  std::int64_t lora_rank = 16;
  LoraTargets lora_targets = LoraTargets::all;

  bool operator==(const ModelShard&) const = default;
};

// Why the model cannot be laid out like this, or nothing.
std::optional<std::string> shard_problem(const ModelSpec& model, const Parallelism& parallel);

// The model outlives the shard; `shard_problem` found nothing.
ModelShard shard_of(const ModelSpec& model, const Parallelism& parallel, const Quantization& quant);

}  // namespace engine
