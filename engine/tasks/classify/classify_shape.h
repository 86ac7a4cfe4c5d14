// Task `classify`: which images.
#pragma once

#include <cstdint>

#include "engine/base/fields.h"

namespace engine {

struct ClassifyShape {
  std::int64_t batch = 1;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("batch", self.batch, "images that go through the network together, per replica",
          at_least(1));
  }
};

}  // namespace engine
