// What ships under specs/, read once, for laws that hold for all of it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/resources.h"
#include "sweep/language/sweep_spec.h"
#include "tests/support/calibrations.h"
#include "tests/support/paths.h"

namespace toys {

// One named spec of a library ("devices", "h100-sxm"), in a scenario of its own.
inline engine::Scenario shipped(std::string_view library, std::string_view name) {
  static const sweep::Library specs({paths::specs()});
  auto read = sweep::read_named(specs, library, name);
  if (!read) ADD_FAILURE() << engine::to_text(read.mistakes());
  return read ? std::move(read).value().scenario : engine::Scenario{};
}

inline std::vector<engine::Device> shipped_devices() {
  std::vector<engine::Device> all;
  for (const std::string& name : sweep::Library({paths::specs()}).names("devices")) {
    all.push_back(shipped("devices", name).device);
  }
  return all;
}

// With the host of a scenario that names none.
inline std::vector<engine::HostSettings> shipped_hosts() {
  std::vector<engine::HostSettings> all{engine::HostSettings{}};
  for (const std::string& name : sweep::Library({paths::specs()}).names("hosts")) {
    all.push_back(shipped("hosts", name).host);
  }
  return all;
}

// The parameters that ship, and no sweep of a device.
inline const engine::Resources& transfer_resources() {
  static const engine::Resources shared = [] {
    engine::Resources loaded;
    loaded.calibrations.by_name["transfer"] = std::make_shared<engine::Calibration>(transfer());
    return loaded;
  }();
  return shared;
}

// These and the sweep of the H200 that ships.
inline const engine::Resources& shipped_resources() {
  static const engine::Resources shared = [] {
    engine::Resources loaded = transfer_resources();
    const std::string path = paths::specs("calibration/h200-sxm.calibration");
    const std::string text = file_text(path);
    auto own = engine::parse_calibration(engine::calibrations_in(text).front(), path);
    if (!own) ADD_FAILURE() << engine::to_text(own.mistakes());
    loaded.calibrations.by_name["h200-sxm"] = std::make_shared<const engine::Calibration>(
        engine::completed_by(std::move(own).value(), transfer()));
    return loaded;
  }();
  return shared;
}

}  // namespace toys
