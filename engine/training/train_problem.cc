#include "engine/training/train_problem.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/model/mixers/mixer.h"

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

Problem pipeline_problem(const ModelSpec& model, const Parallelism& parallel,
                         const TrainSettings& train) {
  const bool interleaved = train.schedule == Schedule::interleaved;
  if (!interleaved && train.virtual_stages > 1) {
    return refused("train.virtual_stages needs train.schedule: interleaved");
  }
  const std::int64_t chunks = parallel.pp * (interleaved ? train.virtual_stages : 1);
  if (chunks > model.layers) {
    return refused(
        fmt::format("{} chunks of layers (parallel.pp x train.virtual_stages) exceed "
                    "model.layers {}",
                    chunks, model.layers));
  }
  const std::int64_t micro_batches = train.global_batch / (train.micro_batch * parallel.dp);
  if (interleaved && micro_batches % parallel.pp != 0) {
    return refused(
        fmt::format("the interleaved schedule needs a multiple of parallel.pp {} "
                    "micro-batches; there are {}",
                    parallel.pp, micro_batches));
  }
  return std::nullopt;
}

Problem heads_problem(const ModelSpec& model, const Parallelism& parallel) {
  const std::int64_t ways = parallel.tp * parallel.cp;
  const LayerCounts layers = layer_counts(model);
  for (const Mixer* mixer : kMixers) {
    if (mixer->layers(model, layers) == 0) continue;
    if (const auto problem = mixer->indivisible(model, ways)) {
      return refused(
          fmt::format("model.{} {} cannot be split {} ways (parallel.tp x parallel.cp, which "
                      "train.context: all_to_all splits heads over)",
                      problem->field, problem->count, ways));
    }
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
  if (heads) return heads_problem(model, parallel);
  if (train.context == ContextExchange::ring && model.window > 0) {
    return Refusal{ReasonClass::unsupported,
                   "a ring passes on all keys, of which model.window leaves few; train.context: "
                   "all_gather or all_to_all works with windows"};
  }
  return std::nullopt;
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

}  // namespace

std::optional<Refusal> train_problem(const ModelSpec& model, const Parallelism& parallel,
                                     const TrainSettings& train) {
  if (auto problem = batch_problem(parallel, train)) return problem;
  if (auto problem = pipeline_problem(model, parallel, train)) return problem;
  if (auto problem = context_problem(model, parallel, train)) return problem;
  if (auto problem = sequence_problem(parallel, train)) return problem;
  return method_problem(model, train);
}

}  // namespace engine
