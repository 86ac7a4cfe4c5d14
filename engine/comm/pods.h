// Ways out of a pod of nodes, where they are thinner than the adapters of its nodes together.
#pragma once

#include "engine/comm/collective_form.h"
#include "engine/hardware/cluster.h"
#include "engine/model/op.h"

namespace engine {

// The link between nodes as the groups of a collective have it: all such groups of the cluster send at the same time, so a way out is
// shared by as many nodes of a pod as have their next one, or most of those they send to, in another pod.
LinkRates between_pods(Pattern pattern, const Spread& spread, const Fabric& fabric);

}  // namespace engine
