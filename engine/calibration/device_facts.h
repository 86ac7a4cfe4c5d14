// What a calibration remembers of the device it was measured on, so that a device whose datasheet was
// altered is not taken for it.
#pragma once

#include <string>
#include <string_view>

#include "engine/hardware/device.h"

namespace engine {

// Every field that says it decides times (engine/base/fields.h): rates, sizes, clocks, links; not names, prices, power or how much
// memory there is. One "measured_on.multiprocessors: 132" a line.
std::string facts_text(const Device& device);

// Puts one such value into `device`; false: no such fact, or not a number. `name` is without the prefix.
bool set_fact(Device& device, std::string_view name, std::string_view value);

// Older calibrations have the rate of matrix units under fp32, whether in tf32 or in fp32: where it is above that of the vector units,
// these do fp32 today, and it is that of tf32.
void tell_tf32_apart(Device& device);

// Whether kernels of one take as long on the other; links between devices are told apart in the second.
bool same_kernels(const Device& a, const Device& b);
bool same_links(const Device& a, const Device& b);

}  // namespace engine
