// In-flight batching that never evicts: room for the prompt and the most it may generate is set aside
// on admission. Source: GUARANTEED_NO_EVICT of TensorRT-LLM's batch manager.
#include "engine/serving/policies/reserving.h"

namespace engine {

void plan_no_evict(const ReplicaView& view, StepPlan& plan) { plan_reserving(view, plan); }

}  // namespace engine
