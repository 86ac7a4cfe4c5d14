#include "engine/serving/policy_table.h"

#include <array>

#include "engine/base/check.h"

namespace engine {

void plan_vllm_v1(const ReplicaView& view, StepPlan& plan);
void plan_vllm_v0(const ReplicaView& view, StepPlan& plan);
void plan_sarathi(const ReplicaView& view, StepPlan& plan);
void plan_sglang(const ReplicaView& view, StepPlan& plan);
void plan_orca(const ReplicaView& view, StepPlan& plan);
void plan_no_evict(const ReplicaView& view, StepPlan& plan);
void plan_static(const ReplicaView& view, StepPlan& plan);

namespace {

struct PolicyEntry {
  PolicyName name;
  PlanFunction plan;
};
constexpr std::array kPolicies{
    PolicyEntry{PolicyName::vllm_v1, plan_vllm_v1},
    PolicyEntry{PolicyName::vllm_v0, plan_vllm_v0},
    PolicyEntry{PolicyName::sarathi, plan_sarathi},
    PolicyEntry{PolicyName::sglang, plan_sglang},
    PolicyEntry{PolicyName::orca, plan_orca},
    PolicyEntry{PolicyName::no_evict, plan_no_evict},
    PolicyEntry{PolicyName::static_batch, plan_static},
};
static_assert(kPolicies.size() == enum_names(PolicyName{}).size());

}  // namespace

PlanFunction policy_of(PolicyName name) {
  const PolicyEntry& entry = kPolicies[std::size_t(name)];
  check(entry.name == name, "the policy table is in the order of the names");
  return entry.plan;
}

}  // namespace engine
