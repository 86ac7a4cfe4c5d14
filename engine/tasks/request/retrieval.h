// Before a prompt is there: a search for passages, and a model that looks at those it found.
#pragma once

#include <optional>

#include "engine/deploy.h"
#include "engine/step/breakdown.h"
#include "engine/step/step_time.h"
#include "engine/tasks/task_table.h"

namespace engine {

// Whether passages are looked up for a request, and whether a model orders them.
bool retrieves(const Scenario& scenario);
bool reranks(const Scenario& scenario);

// Devices of a deployment beside the main one: there is nothing to rank where nothing is looked up.
double devices_beside_request(const Scenario& scenario, const Deployment& role);

// The request as the main deployment meets it: with passages in its prompt.
RequestShape with_passages(const Scenario& scenario);

// Vectors on each device of the main deployment.
Bytes vectors_beside(const Scenario& scenario);

// Settings that contradict one another.
std::optional<Refusal> retrieval_problem(const Scenario& scenario);

struct RetrievalPart {
  StepTime search;  // of the main deployment, or of a host that it waits for
  StepTime rerank;  // of a deployment of its own

  Seconds total() const { return search.total() + rerank.total(); }
};
// Times both, with their rows; or says why that cannot be.
std::optional<Refusal> retrieve(const TaskPoint& point, Breakdown& kernels, RetrievalPart& part);

}  // namespace engine
