// Orca: scheduling at the level of iterations. Whole prompts join the decodes of the same step. Room for the longest sequence that
// the model allows is set aside for each request, so no request is ever preempted.
// Source: Yu et al., OSDI 2022.
#include "engine/serving/policies/reserving.h"

namespace engine {

void plan_orca(const ReplicaView& view, StepPlan& plan) { plan_reserving(view, plan); }

}  // namespace engine
