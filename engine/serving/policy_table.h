// The batching policies, by name. Adding one: write its .cc, add its line to policy_table.cc and its
// name to PolicyName, and a timeline worked out by hand to tests/engine/serving/policies_test.cc.
#pragma once

#include "engine/serving/batch_policy.h"

namespace engine {

PlanFunction policy_of(PolicyName name);

}  // namespace engine
