// What to do with a calibration that was just written, so that points take it.
#pragma once

#include <filesystem>
#include <string>

#include "engine/hardware/device.h"
#include "sweep/language/library.h"

namespace tools {

// Of one device's sweep: where the file goes, which points take it, and which file of the library is about such a device, too.
std::string use_of_measured(const std::filesystem::path& file, const engine::Device& device,
                            const sweep::Library& library);
// Of the parameters that devices share.
std::string use_of_transfer();
// Of the same of one engine's version.
std::string use_of_engine(const std::filesystem::path& file);

}  // namespace tools
