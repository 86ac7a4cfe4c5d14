// How often replicas fail, and what becomes of the requests inside.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/deployment_role.h"
#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/units.h"

namespace engine {

// What is left of an answer whose replica failed.
enum class AfterFailure : std::uint8_t {
  resume,   // tokens written so far are read again behind the prompt, and the answer goes on
  restart,  // the answer begins anew
};
constexpr std::array<std::string_view, 2> enum_names(AfterFailure) { return {"resume", "restart"}; }

inline constexpr const Condition& with_failures_anywhere =
    either<"mean_time_to_failure of a deployment is above 0",
           is_above<"serving.failures.mean_time_to_failure", 0>,
           is_above<"prefill.serving.failures.mean_time_to_failure", 0>>;

struct FailureSettings {
  Seconds mean_time_to_failure{0};
  Seconds mean_time_to_repair{600};
  std::int64_t attempts = 3;
  AfterFailure answers = AfterFailure::resume;

  bool any() const { return mean_time_to_failure.value > 0; }

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("mean_time_to_failure", self.mean_time_to_failure,
          "mean time (exponential) that a replica is up before it fails and loses its KV cache",
          non_negative_or("none"));
    visit("mean_time_to_repair", self.mean_time_to_repair,
          "mean time (exponential) from a failure until the replica takes requests again",
          non_negative.where(is_above<"serving.failures.mean_time_to_failure", 0>));
    visit("attempts", self.attempts,
          "times that a request is begun at most; one whose replicas failed as often counts as "
          "failed",
          at_least(1).where(where_tokens_are_generated).where(with_failures_anywhere));
    visit(
        "answers", self.answers,
        "what is kept of an answer whose replica failed; resume: its tokens, which are read again "
        "behind the prompt; restart: nothing",
        any_value.where(where_tokens_are_generated).where(with_failures_anywhere));
  }
};

}  // namespace engine
