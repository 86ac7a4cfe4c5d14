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
          "a request that would have so many before it in its replica's queue is turned away; with "
          "prefill, in that of who reads, or among those that wait for room or a seat where it is "
          "written; those whose images are not encoded yet count as queued",
          non_negative_or("none"));
    visit("shed_late", self.shed_late,
          "a request is turned away whose predicted time to first token exceeds its limit (that of "
          "its class in load.classes, else that of slo); what is cached takes no time to read",
          any_value);
  }
};

}  // namespace engine
