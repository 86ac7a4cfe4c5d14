// Task `request`: which request.
#pragma once

#include <cstdint>

#include "engine/base/fields.h"

namespace engine {

struct RequestShape {
  std::int64_t batch = 1;
  std::int64_t prompt = 1024;
  std::int64_t cached = 0;
  std::int64_t output = 128;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("batch", self.batch, "identical requests that start together, per replica", at_least(1));
    visit("prompt", self.prompt, "new prompt tokens of each request", at_least(1));
    visit("cached", self.cached, "prompt tokens whose KV is already there", non_negative);
    visit("output", self.output, "tokens generated, the first one included", at_least(1));
  }
};

}  // namespace engine
