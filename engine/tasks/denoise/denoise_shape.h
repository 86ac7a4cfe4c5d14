// Task `denoise`: which images.
#pragma once

#include <cstdint>

#include "engine/base/fields.h"

namespace engine {

struct DenoiseShape {
  std::int64_t batch = 1;
  std::int64_t tokens = 1024;
  std::int64_t text = 0;
  std::int64_t steps = 50;
  std::int64_t passes = 1;

  // In one sequence, all of which attend to one another.
  std::int64_t sequence() const { return tokens + text; }
  std::int64_t sequences() const { return batch * passes; }

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("batch", self.batch, "images that are made together, per replica", at_least(1));
    visit("tokens", self.tokens,
          "tokens of one image: patches of its latents, 1,024 for 512 x 512 pixels and 4,096 for "
          "1,024 x 1,024 where a token has 16 x 16",
          at_least(1));
    visit("text", self.text,
          "tokens of text that go through the layers with those of each image; 0: the image is "
          "conditioned by model.modulation alone",
          non_negative);
    visit("steps", self.steps, "steps from noise to the image", at_least(1));
    visit("passes", self.passes,
          "passes of each step, side by side: 2 with classifier-free guidance, once with and once "
          "without the condition",
          at_least(1));
  }
};

}  // namespace engine
