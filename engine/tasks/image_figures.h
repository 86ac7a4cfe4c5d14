// Figures of images, whether a diffusion transformer makes them or a convolutional network looks at them.
#pragma once

#include "engine/base/units.h"
#include "engine/figures.h"

namespace engine {

struct ImageFigures {
  Seconds image_latency{kNoValue};
  Seconds image_latency_low{kNoValue};
  Seconds image_latency_high{kNoValue};
  double images_per_s = kNoValue;
  double energy_j_per_image = kNoValue;
  double price_usd_per_1000_images = kNoValue;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit(
        "image_latency", self.image_latency,
        "time of a batch of images (task denoise: all its steps, without text encoders before and "
        "the decoder of latents after them; task classify: all layers, with images in the device's "
        "memory)");
    visit("image_latency_low", self.image_latency_low,
          "lower end of the 90% interval of the time of a batch of images");
    visit("image_latency_high", self.image_latency_high,
          "upper end of the 90% interval of the time of a batch of images");
    visit("images_per_s", self.images_per_s,
          "tasks denoise and classify: images a second, all replicas");
    visit("energy_j_per_image", self.energy_j_per_image,
          "tasks denoise and classify: energy of all devices of a replica, per image; null: the "
          "device does not state what it draws (device.tensor_power)");
    visit("price_usd_per_1000_images", self.price_usd_per_1000_images,
          "tasks denoise and classify: rent of all devices in use per thousand images; null: "
          "device.rent is not stated");
  }
};

}  // namespace engine
