#include "engine/own_limits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/calibration/parameter_set.h"

namespace engine {
namespace {

constexpr double kVllmMemory = 0.9;  // gpu_memory_utilization, and TensorRT-LLM's share of the rest

// A step is as large as it is stated, whatever an engine would allow.
bool has_open_limits(const ServingSettings& serving, Task task) {
  if (task == Task::step) return false;
  return serving.max_num_batched_tokens == 0 || serving.max_num_seqs == 0 || serving.chunk == 0;
}

// Copies of an expert would be trained apart, and what is trained is sampled as it is.
bool has_copies_to_take_away(const Deployment& on, Task task) {
  return task == Task::train && on.parallel.ep > 1 &&
         on.parallel.expert_copies == ExpertCopies::by_load;
}

bool is_open(const Deployment& on, Task task) {
  return on.serving.memory_utilization == 0 || has_open_limits(on.serving, task) ||
         has_copies_to_take_away(on, task);
}

void fill(Deployment& on, Task task) {
  if (has_copies_to_take_away(on, task)) on.parallel.expert_copies = ExpertCopies::fewest;
  ServingSettings& serving = on.serving;
  const SglangLimits sglang = sglang_limits(on.device, on.parallel);
  if (serving.memory_utilization == 0) {
    const bool buffers_outside = serving.memory_share == MemoryShare::model_and_kv;
    serving.memory_utilization = buffers_outside ? sglang.memory : kVllmMemory;
  }
  if (!has_open_limits(serving, task)) return;
  const StepLimits limits = own_limits(on.device);
  if (serving.chunk == 0) serving.chunk = sglang.chunk;
  if (serving.max_num_batched_tokens == 0) {
    const bool by_chunk = policy_of(serving.policy).budget == StepBudget::chunk;
    serving.max_num_batched_tokens = by_chunk ? serving.chunk : limits.tokens;
  }
  if (serving.max_num_seqs == 0) serving.max_num_seqs = limits.sequences;
}

// What SGLang takes on devices of less memory than this: tokens of a chunk, and the largest batch of which it captures a graph, over fewer
// than four devices and over more.
struct SglangDefaults {
  double below_mib = 0;
  std::int64_t chunk = 0;
  double graph_over_few = 0, graph_over_many = 0;
};
constexpr std::array kSglangDefaults = std::to_array<SglangDefaults>({
    {20 * 1024, 2048, 8, 8},
    {35 * 1024, 2048, 24, 80},
    {60 * 1024, 4096, 32, 160},
    {160 * 1024, 8192, 256, 512},
    {std::numeric_limits<double>::infinity(), 16384, 512, 512},
});

}  // namespace

// Limits of vLLM's server (EngineArgs.get_batch_defaults in vllm/engine/arg_utils.py), whatever policy a sweep puts into it. The higher ones
// need 70 GiB, and a device whose name is not A100, on which steps of more tokens were slower (its pull request 17885). Names of devices
// decide nothing here, so it goes by their generation.
StepLimits own_limits(const Device& device) {
  constexpr Bytes large{70 * 0x1p30};
  const bool is_large =
      device.memory_capacity >= large && choose_set(device) != ParameterSet::ampere;
  return is_large ? StepLimits{.tokens = 8192, .sequences = 1024}
                  : StepLimits{.tokens = 2048, .sequences = 256};
}

// ServerArgs._handle_gpu_memory_settings and _handle_data_parallelism in python/sglang/srt/server_args.py (2025). What it leaves besides
// where attention is data-parallel (3 MB and more for each sequence of a graph and each replica) is not counted: over many replicas that
// would be all of the memory, and such a deployment has to state its share.
SglangLimits sglang_limits(const Device& device, const Parallelism& parallel) {
  const double all = device.memory_capacity.value / 0x1p20;
  const auto found = std::ranges::find_if(
      kSglangDefaults, [all](const SglangDefaults& one) { return all < one.below_mib; });
  const double graph = parallel.tp < 4 ? found->graph_over_few : found->graph_over_many;
  double left =
      512 + 1.5 * double(found->chunk) + 2 * graph + 1024 * double(parallel.tp * parallel.pp) / 8;
  constexpr double large = 60 * 1024, least_of_large = 10 * 1024;
  if (all > large) left = std::max(left, least_of_large);
  const std::int64_t sharing = std::max<std::int64_t>(1, parallel.ep / parallel.tp);
  constexpr double least = 0.01;  // where its buffers alone would not fit, no model does
  return {.chunk = std::max<std::int64_t>(1, found->chunk / sharing),
          .memory = std::max(least, std::round(1000 * (all - left) / all) / 1000)};
}

const Scenario& with_own_limits(const Scenario& scenario, std::unique_ptr<Scenario>& filled) {
  const Task task = scenario.task;
  bool any = is_open(scenario, task);
  each_role(scenario, [&any, task](std::string_view, const Role& role) {
    any = any || (role.present && is_open(role.deployment, task));
  });
  if (!any) return scenario;
  filled = std::make_unique<Scenario>(scenario);
  fill(*filled, task);
  each_role(*filled, [task](std::string_view, Role& role) {
    if (role.present) fill(role.deployment, task);
  });
  return *filled;
}

}  // namespace engine
