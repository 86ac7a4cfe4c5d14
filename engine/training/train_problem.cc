#include "engine/training/train_problem.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/model/context_ops.h"
#include "engine/training/pipeline/stages.h"
#include "engine/training/run/scaling_law.h"

namespace engine {
namespace {

using Problem = std::optional<Refusal>;

Refusal refused(std::string why) { return {ReasonClass::divisibility, std::move(why)}; }

Problem batch_problem(const Parallelism& parallel, const TrainSettings& train) {
  const std::int64_t pass = train.micro_batch * parallel.dp;
  if (train.global_batch % pass == 0) return std::nullopt;
  return refused(
      fmt::format("train.global_batch {} is not a multiple of train.micro_batch x "
                  "parallel.dp ({})",
                  train.global_batch, pass));
}

// The first and the last stage have the layers that are stated; each chunk but those with the embedding and the output needs one.
Problem ends_problem(const ModelSpec& model, const Parallelism& parallel,
                     const TrainSettings& train) {
  const std::int64_t turns = chunks_per_stage(train, parallel.pp);
  const std::int64_t first = train.first_stage_layers, last = train.last_stage_layers;
  for (const std::int64_t end : {first, last}) {
    if (end > 0 && end < turns - 1) {
      return refused(
          fmt::format("{} layers of the first or last stage leave one of its {} chunks "
                      "without layers (train.virtual_stages)",
                      end, turns));
    }
  }
  const std::int64_t others = parallel.pp - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
  const std::int64_t left = model.layers - first - last;
  if (others == 0 ? left == 0 : left >= others * turns) return std::nullopt;
  return refused(
      fmt::format("train.first_stage_layers {} and train.last_stage_layers {} leave {} of {} "
                  "layers to {} chunks of other stages",
                  first, last, left, model.layers, others * turns));
}

// Both ways fill the pipeline before pairs begin.
Problem dual_problem(const Parallelism& parallel, const TrainSettings& train,
                     std::int64_t micro_batches) {
  const bool folded = train.schedule == Schedule::dualpipe_v;
  if (!folded && parallel.pp % 2 != 0) {
    return refused(
        fmt::format("dualpipe pairs stages from both ends: parallel.pp {} is odd (dualpipe_v folds "
                    "any number of stages)",
                    parallel.pp));
  }
  if (folded && (train.first_stage_layers > 0 || train.last_stage_layers > 0)) {
    return refused(
        "dualpipe_v has the embedding and the output on its first stage: train.first_stage_layers "
        "and train.last_stage_layers are of other schedules");
  }
  if (micro_batches >= 2 * parallel.pp && (folded || micro_batches % 2 == 0)) return std::nullopt;
  return refused(fmt::format("{} needs {} micro-batches, at least 2 x parallel.pp {}; there are {}",
                             name_of(train.schedule), folded ? "enough" : "an even number of",
                             parallel.pp, micro_batches));
}

Problem pipeline_problem(const ModelSpec& model, const Parallelism& parallel,
                         const TrainSettings& train) {
  if (parallel.pp == 1) return std::nullopt;
  const bool interleaved = train.schedule == Schedule::interleaved;
  if (!interleaved && train.virtual_stages > 1) {
    return refused(fmt::format(
        "train.virtual_stages {} needs train.schedule: interleaved; {} has {} on each stage",
        train.virtual_stages, name_of(train.schedule),
        is_dual(train.schedule) ? "two chunks of layers, whatever it says,"
                                : "one chunk of layers"));
  }
  const std::int64_t chunks = parallel.pp * chunks_per_stage(train, parallel.pp);
  if (train.first_stage_layers > 0 || train.last_stage_layers > 0) {
    if (auto problem = ends_problem(model, parallel, train)) return problem;
  } else if (chunks > model.layers + 2) {  // the embedding and the logits may have one of their own
    return refused(
        fmt::format("{} chunks of layers (parallel.pp x train.virtual_stages) exceed "
                    "model.layers {} and its two ends",
                    chunks, model.layers));
  }
  const std::int64_t micro_batches = train.global_batch / (train.micro_batch * parallel.dp);
  if (is_dual(train.schedule)) return dual_problem(parallel, train, micro_batches);
  if (interleaved && micro_batches % parallel.pp != 0) {
    return refused(
        fmt::format("the interleaved schedule needs a multiple of parallel.pp {} "
                    "micro-batches; there are {}",
                    parallel.pp, micro_batches));
  }
  return std::nullopt;
}

Problem context_problem(const ModelSpec& model, const Parallelism& parallel,
                        const TrainSettings& train) {
  if (parallel.cp == 1) return std::nullopt;
  const bool heads = train.context == ContextExchange::all_to_all;
  // Otherwise a device has an early and a late part of each sequence, which makes their work equal.
  const std::int64_t parts = parallel.cp * (heads ? 1 : 2);
  if (train.sequence % parts != 0) {
    return refused(fmt::format("train.sequence {} cannot be split {} ways ({}parallel.cp)",
                               train.sequence, parts, heads ? "" : "2 x "));
  }
  return sharing_problem(model, parallel, train.context, "train.context");
}

Problem sequence_problem(const Parallelism& parallel, const TrainSettings& train) {
  const std::int64_t ways = parallel.tp * parallel.cp;
  if (!train.sequence_parallel || train.sequence % ways == 0) return std::nullopt;
  return refused(fmt::format("train.sequence {} cannot be split {} ways (parallel.tp{})",
                             train.sequence, ways, parallel.cp > 1 ? " x parallel.cp" : ""));
}

Problem method_problem(const ModelSpec& model, const TrainSettings& train) {
  if (train.method != Method::last_layers || train.trained_layers <= model.layers) {
    return std::nullopt;
  }
  return refused(fmt::format("train.trained_layers {} exceed model.layers {}", train.trained_layers,
                             model.layers));
}

Problem recompute_problem(const ModelSpec& model, const TrainSettings& train) {
  if (train.recompute == Recompute::up_projections && !model.is_mla()) {
    return Refusal{ReasonClass::unsupported,
                   "train.recompute up_projections: this model expands no latents (model.mla); "
                   "activations does norms and activations again"};
  }
  if (parts_of(train.recompute).experts && !model.is_moe()) {
    return Refusal{ReasonClass::unsupported,
                   fmt::format("train.recompute {}: this model has no experts (model.moe)",
                               name_of(train.recompute))};
  }
  const auto exceeds = [&](const char* field, std::int64_t layers) {
    return refused(fmt::format("{} {} exceed model.layers {}", field, layers, model.layers));
  };
  if (train.offload_activations && train.offload_layers > model.layers) {
    return exceeds("train.offload_layers", train.offload_layers);
  }
  if (train.recompute != Recompute::full) return std::nullopt;
  if (train.recompute_layers > model.layers) {
    return exceeds("train.recompute_layers", train.recompute_layers);
  }
  if (train.recompute_first > model.layers) {
    return exceeds("train.recompute_first", train.recompute_first);
  }
  return std::nullopt;
}

// Weights that a backward pass updates cannot wait for the gradients of other micro-batches, nor for the sum over replicas.
Problem buffers_problem(const Parallelism& parallel, const TrainSettings& train) {
  const std::int64_t passes = train.global_batch / (train.micro_batch * parallel.dp);
  if (train.gradient_buffers != GradientBuffers::freed || passes == 1) return std::nullopt;
  return refused(
      fmt::format("train.gradient_buffers freed updates each weight within the one backward pass "
                  "of a step; train.global_batch asks for {} micro-batches (remade adds them up)",
                  passes));
}

Problem group_problem(const Parallelism& parallel, const TrainSettings& train) {
  const std::int64_t replicas = parallel.dp * parallel.cp, group = train.zero_group;
  if (train.zero == 0 || group == 0) return std::nullopt;
  if (replicas % group != 0) {
    return refused(fmt::format("train.zero_group {} does not divide {} replicas (parallel.dp{})",
                               group, replicas, parallel.cp > 1 ? " x parallel.cp" : ""));
  }
  const std::int64_t sharing = std::max<std::int64_t>(1, parallel.ep / parallel.tp);
  if (group % sharing == 0 || sharing % group == 0) return std::nullopt;
  return refused(
      fmt::format("train.zero_group {} cuts through the {} replicas that share experts "
                  "(parallel.ep / parallel.tp)",
                  group, sharing));
}

Problem trained_experts_problem(const ModelSpec& model, const Parallelism& parallel) {
  if (!model.is_moe() || parallel.ep == 1) return std::nullopt;
  if (model.moe.experts % parallel.ep == 0 && parallel.redundant_experts <= 0) return std::nullopt;
  return refused(fmt::format(
      "parallel.ep {} with {} redundant experts: copies of one of the {} experts would be trained "
      "apart; ep must divide the experts, without redundant ones",
      parallel.ep, std::max<std::int64_t>(0, parallel.redundant_experts), model.moe.experts));
}

Problem adapter_problem(const ModelSpec& model, const TrainSettings& train) {
  if (!train.has_adapters()) return std::nullopt;
  if (train.lora_rank > model.hidden) {
    return refused(fmt::format("train.lora_rank {} exceeds the width of products, model.hidden {}",
                               train.lora_rank, model.hidden));
  }
  const bool dense = layer_counts(model).dense > 0 || model.moe.shared_intermediate > 0;
  if (dense || train.lora_targets != LoraTargets::mlp) return std::nullopt;
  return refused(
      "train.lora_targets mlp: all layers of this model have routed experts, which have no "
      "adapters");
}

Problem state_problem(const TrainSettings& train) {
  if (train.gradients == StateFormat::none) {
    return refused("train.gradients none: gradients are summed up in some format, fp32 or bf16");
  }
  const bool remembers = train.optimizer == Optimizer::adamw || train.optimizer == Optimizer::muon;
  if (remembers && train.moments == StateFormat::none) {
    return refused(
        fmt::format("train.moments none: {} follows from what it remembers of past gradients",
                    name_of(train.optimizer)));
  }
  if (train.optimizer == Optimizer::muon && train.offload_optimizer) {
    return Refusal{ReasonClass::unsupported,
                   "train.optimizer muon multiplies matrices, which a host "
                   "(train.offload_optimizer) would take too long for"};
  }
  return std::nullopt;
}

Problem exchange_problem(const Parallelism& parallel, const TrainSettings& train) {
  const bool apart = train.schedule == Schedule::gpipe || train.schedule == Schedule::zero_bubble;
  if (train.batch_overlap && parallel.ep > 1 && parallel.pp > 1 && apart) {
    return refused(
        fmt::format("train.batch_overlap puts each forward pass beside a backward pass, which {} "
                    "does apart; 1f1b, interleaved, dualpipe and dualpipe_v have such pairs",
                    name_of(train.schedule)));
  }
  if (!train.batch_overlap || !train.expert_overlap) return std::nullopt;
  return refused(
      "train.batch_overlap and train.expert_overlap hide the same exchange behind different work; "
      "choose one");
}

Problem order_problem(const Parallelism& parallel, const TrainSettings& train) {
  if (train.order == DeviceOrder::replicas_inside || parallel.pp == 1 ||
      parallel.ep <= parallel.tp) {
    return std::nullopt;
  }
  return Refusal{ReasonClass::unsupported,
                 "train.order tp_cp_pp_dp puts stages between the replicas that share experts "
                 "(parallel.ep above parallel.tp), whose exchange is known among neighbours only"};
}

Problem loss_problem(const ModelSpec& model, const TrainSettings& train) {
  if (train.scaling_law == ScalingLaw::none) {
    if (train.loss <= 0) return std::nullopt;
    return refused("train.loss needs train.scaling_law, by which it follows from tokens");
  }
  if (train.tokens <= 0 && train.loss <= 0) return std::nullopt;
  if (model.is_moe()) {
    return Refusal{ReasonClass::unsupported,
                   fmt::format("train.scaling_law {} is of dense models; this one is a mixture",
                               name_of(train.scaling_law))};
  }
  const double parameters = parameter_counts(model).total();
  const double least = loss_law(train.scaling_law).floor(parameters);
  if (train.loss <= 0 || train.loss > least) return std::nullopt;
  return refused(
      fmt::format("no number of tokens brings this model to train.loss {:g}: by {} a model of "
                  "{:.3g} parameters stays above {:.4g}",
                  train.loss, name_of(train.scaling_law), parameters, least));
}

}  // namespace

std::optional<Refusal> train_problem(const ModelSpec& model, const Parallelism& parallel,
                                     const TrainSettings& train) {
  if (auto problem = batch_problem(parallel, train)) return problem;
  if (auto problem = pipeline_problem(model, parallel, train)) return problem;
  if (auto problem = context_problem(model, parallel, train)) return problem;
  if (auto problem = sequence_problem(parallel, train)) return problem;
  if (auto problem = method_problem(model, train)) return problem;
  if (auto problem = recompute_problem(model, train)) return problem;
  if (auto problem = group_problem(parallel, train)) return problem;
  if (auto problem = buffers_problem(parallel, train)) return problem;
  if (auto problem = state_problem(train)) return problem;
  if (auto problem = adapter_problem(model, train)) return problem;
  if (auto problem = trained_experts_problem(model, parallel)) return problem;
  if (auto problem = exchange_problem(parallel, train)) return problem;
  if (auto problem = order_problem(parallel, train)) return problem;
  return loss_problem(model, train);
}

}  // namespace engine
