// Which requests are turned away when they arrive.
#pragma once

#include <cstdint>

#include "engine/base/fields.h"

namespace engine {

struct AdmissionSettings {
  std::int64_t max_queue = 0;
  bool shed_late = false;

  bool any() const { return max_queue > 0 || shed_late; }

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("max_queue", self.max_queue,
          "most requests in the queue of a replica: one more is turned away; with prefill: in the "
          "queue of the replica that reads its prompt, or among those that wait for room or a seat "
          "where its answer is written; requests whose images are not encoded yet count as queued",
          non_negative_or("none"));
    visit(
        "shed_late", self.shed_late,
        "a request is turned away if its predicted time to first token exceeds its limit (that of "
        "its class in load.classes, else that of slo); cached tokens take no time to read",
        any_value);
  }
};

}  // namespace engine
