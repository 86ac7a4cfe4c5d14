// What a calibration remembers of the device it was measured on, so that a device whose datasheet was
// altered is not taken for it.
#pragma once

#include <string>
#include <string_view>

#include "engine/hardware/device.h"

namespace engine {

// Everything kernel times depend on: rates, sizes, clocks, links; not names, prices, power or how much
// memory there is. One "measured_on.multiprocessors: 132" a line.
std::string facts_text(const Device& device);

// Puts one such value into `device`; false: no such fact, or not a number. `name` is without the prefix.
bool set_fact(Device& device, std::string_view name, std::string_view value);

// Whether kernels of one take as long on the other; links between devices are told apart in the second.
bool same_kernels(const Device& a, const Device& b);
bool same_links(const Device& a, const Device& b);

}  // namespace engine
