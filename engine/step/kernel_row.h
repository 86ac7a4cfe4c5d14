// Where time went: one row of the kernels table.
#pragma once

#include <vector>

#include "engine/base/savings.h"
#include "engine/base/tier.h"
#include "engine/base/units.h"
#include "engine/comm/collective_time.h"
#include "engine/model/op_names.h"

namespace engine {

// Figures are of one device (of each pipeline stage in turn), over all calls.
struct KernelRow {
  Phase phase = Phase::decode;
  OpName op = OpName::qkv;
  Family family = Family::gemm;
  Algorithm algorithm = Algorithm::none;  // of a collective
  Bound bound = Bound::compute;
  Tier tier = Tier::roofline;
  bool extrapolated = false;
  Seconds low;  // nine times in ten, all calls together take between these
  Seconds high;
  double calls = 0;
  Seconds time;
  Flops flops;
  Bytes bytes;
  Savings
      saved;  // of `time`, if one part were free: the largest is `bound`; none where the host takes the time

  // Adds the figures of `other`, `times` over, and takes the weaker of the labels that say how good they are.
  void add(const KernelRow& other, double times = 1);

  bool operator==(const KernelRow&) const = default;
};

// Adds rows to `into`: those of the same phase and op become one, with the later labels.
void merge_rows(const std::vector<KernelRow>& rows, std::vector<KernelRow>& into);

}  // namespace engine
