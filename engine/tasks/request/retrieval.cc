#include "engine/tasks/request/retrieval.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/feasibility.h"
#include "engine/kernels/kernel_time.h"
#include "engine/kernels/power.h"
#include "engine/model/passes.h"
#include "engine/tasks/request/vector_search.h"

namespace engine {
namespace {

using Problem = std::optional<Refusal>;

// The search on one of the devices that share the store.
VectorSearch search_of(const Scenario& scenario) {
  const RetrievalSettings& retrieval = scenario.retrieval;
  const bool shared = retrieval.place == StorePlace::device;
  return {.questions = scenario.request.batch,
          .vectors = retrieval.vectors,
          .dimensions = retrieval.dimensions,
          .format = retrieval.format,
          .lists = retrieval.index == VectorIndex::ivf ? retrieval.lists : 1,
          .probes = retrieval.index == VectorIndex::ivf ? retrieval.probes : 1,
          .devices = shared ? scenario.parallel.devices_of_replica() : 1};
}

// The server's part, and what a search takes besides: the devices wait.
KernelRow host_row(const RetrievalSettings& retrieval, const VectorSearch& search,
                   const Device& waiting) {
  KernelRow row{.phase = Phase::prefill,
                .op = OpName::vector_search,
                .family = Family::host,
                .bound = Bound::host};
  Work& work = row.work;
  work.calls = 1;
  work.time = work.low = work.high = retrieval.latency;
  if (retrieval.place == StorePlace::host) {
    work.flops = search.flops();
    work.bytes = search.bytes();
    Seconds searching = work.bytes / retrieval.host_bandwidth;
    if (retrieval.host_peak.value > 0) {
      searching = std::max(searching, work.flops / retrieval.host_peak);
    }
    work.time += searching;
    work.low += searching;
    // A scan was not measured: its interval is that of other kernels on the roofline.
    work.high += searching * kRooflineHigh;
  }
  work.energy = power_at_rest(waiting) * work.time;
  return row;
}

void search(const TaskPoint& point, Breakdown& kernels, StepTime& time) {
  const Scenario& scenario = point.scenario;
  const VectorSearch search = search_of(scenario);
  const KernelRow waited = host_row(scenario.retrieval, search, scenario.device);
  if (waited.work.time.value > 0) kernels.add(waited);
  if (scenario.retrieval.place == StorePlace::device) {
    OpList ops;
    search_ops(search, ops);
    std::vector<KernelRow> rows;
    const StepWork work{.sequences = search.questions};
    time = ops_time(ops, work, LaunchMode::eager, point.main.context(point.work), Phase::prefill,
                    &rows);
    for (const KernelRow& row : rows) kernels.add(row);
  }
  time.host.between += waited.work.time;
  time.saved[Bound::host] += waited.work.time;
}

// Pairs of a question and a passage that are read in one step.
struct Pairs {
  std::int64_t all = 1;
  std::int64_t tokens = 1;    // of one
  std::int64_t together = 1;  // in a step
};

Pairs pairs_of(const Scenario& scenario) {
  const RetrievalSettings& retrieval = scenario.retrieval;
  Pairs pairs{.all = scenario.request.batch * retrieval.candidates,
              .tokens = retrieval.question + retrieval.passage_tokens};
  const std::int64_t budget = scenario.rerank.deployment.serving.max_num_batched_tokens;
  pairs.together = std::clamp<std::int64_t>(budget / pairs.tokens, 1, pairs.all);
  return pairs;
}

// Reads `together` pairs in each of `steps` steps. The score of a pair is one number, which is not worth a row.
void read_pairs(std::int64_t steps, std::int64_t together, const Pairs& pairs,
                const StepContext& context, Breakdown& kernels, StepTime& time) {
  if (steps == 0 || together == 0) return;
  BatchShape batch;
  add_prefill(batch, together, pairs.tokens, 0, context.shard.model->window);
  std::vector<KernelRow> rows;
  context.charge(kWorkOfAStep);
  const StepTime step = step_time(batch, context, Phase::prefill, &rows);
  const double times = double(steps);
  time.device.add(step.device, times);
  time.host.add(step.host, times);
  time.saved.add(step.saved, times);
  for (KernelRow& row : rows) {
    row.role = DeploymentRole::rerank;
    kernels.add(row, times);
  }
}

Problem rerank(const TaskPoint& point, Breakdown& kernels, StepTime& time) {
  const Scenario& scenario = point.scenario;
  const Deployment& on = scenario.rerank.deployment;
  Deployed deployed;
  if (auto problem = deploy(on, scenario.calibration, point.resources.calibrations, 1, deployed))
    return in_role("rerank", std::move(*problem));
  const Pairs pairs = pairs_of(scenario);
  const MemoryDemand demand{.sequences = pairs.together,
                            .context = pairs.tokens,
                            .step_tokens = pairs.together * pairs.tokens,
                            .sampled = 0};
  if (auto problem = memory_problem(deployed, footprint_of(deployed, demand), demand))
    return in_role("rerank", std::move(*problem));
  const StepContext context = deployed.context(point.work);
  read_pairs(pairs.all / pairs.together, pairs.together, pairs, context, kernels, time);
  read_pairs(1, pairs.all % pairs.together, pairs, context, kernels, time);
  return std::nullopt;
}

Problem not_possible(std::string text) {
  return Refusal{ReasonClass::unsupported, std::move(text)};
}

Problem rerank_problem(const Scenario& scenario) {
  const RetrievalSettings& retrieval = scenario.retrieval;
  const Deployment& on = scenario.rerank.deployment;
  if (on.parallel.cp > 1) {
    return not_possible(
        "rerank: passages that several devices read together: state rerank.parallel.cp: 1");
  }
  if (on.parallel.dp != scenario.parallel.dp) {
    return Refusal{ReasonClass::divisibility,
                   fmt::format("rerank.parallel.dp is {} and parallel.dp {}: every replica has one "
                               "that looks at its passages",
                               on.parallel.dp, scenario.parallel.dp)};
  }
  if (retrieval.candidates < retrieval.passages) {
    return not_possible(
        fmt::format("retrieval.candidates ({}) are fewer than the "
                    "retrieval.passages ({}) that are kept of them",
                    retrieval.candidates, retrieval.passages));
  }
  return too_long("rerank: retrieval.question + retrieval.passage_tokens",
                  retrieval.question + retrieval.passage_tokens, on.model);
}

}  // namespace

bool retrieves(const Scenario& scenario) {
  return scenario.task == Task::request && scenario.retrieval.on();
}

bool reranks(const Scenario& scenario) { return retrieves(scenario) && scenario.rerank.present; }

double devices_beside_request(const Scenario& scenario, const Deployment& role) {
  if (&role == &scenario.rerank.deployment && !reranks(scenario)) return 0;
  return devices_of(role, 1);
}

RequestShape with_passages(const Scenario& scenario) {
  RequestShape request = scenario.request;
  request.prompt += scenario.retrieval.prompt();
  return request;
}

Bytes vectors_beside(const Scenario& scenario) {
  if (!retrieves(scenario) || scenario.retrieval.place != StorePlace::device) return Bytes{0};
  return search_of(scenario).stored();
}

std::optional<Refusal> retrieval_problem(const Scenario& scenario) {
  if (!retrieves(scenario)) return std::nullopt;
  const RetrievalSettings& retrieval = scenario.retrieval;
  if (double(scenario.request.prompt + retrieval.prompt()) > kMostCount) {
    return not_possible(fmt::format("a prompt of {} tokens, with retrieval.passages",
                                    scenario.request.prompt + retrieval.prompt()));
  }
  if (retrieval.index == VectorIndex::ivf && retrieval.probes > retrieval.lists) {
    return not_possible(fmt::format("retrieval.probes ({}) are more than the retrieval.lists ({})",
                                    retrieval.probes, retrieval.lists));
  }
  const bool reranked = scenario.rerank.present;
  const std::int64_t found = reranked ? retrieval.candidates : retrieval.passages;
  const VectorSearch search = search_of(scenario);
  if (double(found) > search.of_a_question()) {
    return not_possible(fmt::format("{} ({}) are more than the {:g} vectors that a question meets",
                                    reranked ? "retrieval.candidates" : "retrieval.passages", found,
                                    search.of_a_question()));
  }
  if (retrieval.place == StorePlace::host && retrieval.host_bandwidth.value <= 0) {
    return not_possible(
        "retrieval.place host needs the memory bandwidth of the server: state "
        "retrieval.host_bandwidth");
  }
  return reranked ? rerank_problem(scenario) : std::nullopt;
}

std::optional<Refusal> retrieve(const TaskPoint& point, Breakdown& kernels, RetrievalPart& part) {
  if (!retrieves(point.scenario)) return std::nullopt;
  search(point, kernels, part.search);
  return reranks(point.scenario) ? rerank(point, kernels, part.rerank) : std::nullopt;
}

}  // namespace engine
