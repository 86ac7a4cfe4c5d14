// Which process and thread of a trace is what.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/deployment_role.h"
#include "engine/base/enum_names.h"

namespace tools {

constexpr std::int64_t kQueueProcess = 1;
constexpr std::int64_t kKernelProcess = 2;
constexpr std::int64_t kPhaseProcess = 3;  // of an iteration with samples
// Replicas of one deployment have neighbouring numbers.
constexpr std::int64_t kFirstReplica = 10;
constexpr std::int64_t kDeploymentSpan = 1'000'000;
constexpr std::int64_t kFirstStage = 10;
// In a replica: steps above, requests below.
constexpr std::int64_t kFirstRequestThread = 1'000;

inline std::int64_t process_of(engine::DeploymentRole role, std::int64_t replica) {
  return kFirstReplica + std::int64_t(role) * kDeploymentSpan + replica;
}

inline std::string replica_name(engine::DeploymentRole role, std::int64_t replica) {
  return std::string(engine::name_of(role)) + " replica " + std::to_string(replica);
}

}  // namespace tools
