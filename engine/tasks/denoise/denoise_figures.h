// Figures of images that a diffusion transformer makes.
#pragma once

#include "engine/base/units.h"
#include "engine/figures.h"

namespace engine {

struct DenoiseFigures {
  Seconds image_latency{kNoValue};
  Seconds image_latency_low{kNoValue};
  Seconds image_latency_high{kNoValue};
  double images_per_s = kNoValue;
  double price_usd_per_1000_images = kNoValue;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("image_latency", self.image_latency,
          "task denoise: time of all steps of a batch of images, without text encoders before and "
          "the decoder of latents after them");
    visit("image_latency_low", self.image_latency_low,
          "task denoise: lower end of the 90% interval of the time of all steps");
    visit("image_latency_high", self.image_latency_high,
          "task denoise: upper end of the 90% interval of the time of all steps");
    visit("images_per_s", self.images_per_s, "task denoise: images a second, all replicas");
    visit("price_usd_per_1000_images", self.price_usd_per_1000_images,
          "task denoise: rent of all devices in use per thousand images; null: device.rent is not "
          "stated");
  }
};

}  // namespace engine
