// Where time went: one row of the kernels table.
#pragma once

#include "engine/base/deployment_role.h"
#include "engine/base/tier.h"
#include "engine/comm/collective_time.h"
#include "engine/model/op_names.h"
#include "engine/step/work.h"

namespace engine {

struct KernelRow {
  DeploymentRole role = DeploymentRole::main;
  Phase phase = Phase::decode;
  OpName op = OpName::qkv;
  Family family = Family::gemm;
  Algorithm algorithm = Algorithm::none;  // of a collective
  Bound bound = Bound::compute;
  Tier tier = Tier::roofline;
  bool extrapolated = false;
  Work work;

  bool operator==(const KernelRow&) const = default;
};

}  // namespace engine
