// Where devices may read a prompt together (parallel.cp).
#pragma once

#include <optional>

#include "engine/base/refusal.h"
#include "engine/scenario.h"

namespace engine {

// Several devices share a prompt where prompts are all that is read: in a prefill step, and in the deployment `prefill`
// of requests and served loads. A decode has one token a sequence, which cannot be shared out; only its keys could,
// at the price of exchanging queries and results in every layer, and more tensor parallelism divides these, too.
// Training has its own rules.
std::optional<Refusal> shared_prompts_problem(const Scenario& scenario);

}  // namespace engine
