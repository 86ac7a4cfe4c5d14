#include "engine/leaves/facts.h"

#include <array>
#include <cstddef>

#include "engine/base/check.h"
#include "engine/engine_kernels.h"
#include "engine/model/expert_places.h"
#include "engine/tasks/handover.h"

namespace engine {
namespace {

using Paths = std::span<const std::string_view>;

constexpr std::string_view kGeneration[] = {"device.architecture"};
constexpr std::string_view kCopies[] = {"task", "model.moe.experts", "model.moe.skew", "parallel"};
constexpr std::string_view kWays[] = {"task",    "device",           "cluster",      "parallel",
                                      "prefill", "serving.replicas", "transfer.link"};

// Copies would be trained apart.
bool experts_have_copies(const Scenario& scenario, const Deployment& on) {
  Parallelism parallel = on.parallel;
  if (scenario.task == Task::train) parallel.expert_copies = ExpertCopies::fewest;
  return on.model.is_moe() && expert_places(on.model, parallel).redundant > 0;
}

constexpr std::array kFacts{
    FactEntry{
        Fact::attention_kernels_differ,
        [](const Scenario&, const Deployment& on) { return attention_kernels_differ(on.device); },
        kGeneration},
    FactEntry{Fact::experts_have_copies, experts_have_copies, kCopies},
    FactEntry{Fact::kv_leaves_a_node,
              [](const Scenario& scenario, const Deployment&) { return leaves_a_node(scenario); },
              kWays},
    FactEntry{Fact::kv_takes_a_fabric,
              [](const Scenario& scenario, const Deployment&) { return takes_a_fabric(scenario); },
              kWays},
};

}  // namespace

const FactEntry& fact_entry(Fact fact) {
  const FactEntry& entry = kFacts[static_cast<std::size_t>(fact)];
  check(entry.fact == fact, "facts stand in the order of their names");
  return entry;
}

}  // namespace engine
