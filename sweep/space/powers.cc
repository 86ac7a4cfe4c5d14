#include "sweep/space/powers.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "engine/leaves/leaves.h"

namespace sweep {
namespace {

constexpr std::array<std::string_view, 4> kPowers{"idle", "busy", "tensor", "memory"};
constexpr std::array<std::string_view, 4> kFollowed{"multiprocessors", "peak.", "memory_bandwidth",
                                                    "energy_scale"};

// "device." and those of the roles.
std::vector<std::string> device_prefixes() {
  std::vector<std::string> prefixes;
  for (const engine::Section& section : engine::leaf_table().sections) {
    if (section.library == engine::Device::library) prefixes.push_back(section.path + ".");
  }
  return prefixes;
}

int find(const std::string& path) { return engine::leaf_table().find_leaf(path); }

std::vector<std::vector<Edit>> taken_back_by_leaf() {
  std::vector<std::vector<Edit>> taken_back(engine::leaf_table().leaves.size());
  for (const std::string& device : device_prefixes()) {
    const auto by = [&](const std::string& name) -> std::vector<Edit>& {
      return taken_back[std::size_t(find(device + name))];
    };
    for (const std::string_view power : kPowers) {
      std::vector<Edit>& edits = by(std::string(power) + "_power");
      edits.push_back({find(device + "rated_powers." + std::string(power)), 0.0});
      // What boards draw at rest is listed.
      if (power != "idle") edits.push_back({find(device + "power_assumed"), false});
    }
    by("rent").push_back({find(device + "rent_assumed"), false});
  }
  return taken_back;
}

}  // namespace

std::span<const Edit> taken_back_by(int leaf) {
  static const std::vector<std::vector<Edit>> taken_back = taken_back_by_leaf();
  return taken_back[std::size_t(leaf)];
}

void follow_rated_powers(engine::Scenario& scenario) {
  engine::follow_rated_powers(scenario.device);
  engine::each_role(scenario, [](std::string_view, engine::Role& role) {
    if (role.present) engine::follow_rated_powers(role.deployment.device);
  });
}

void add_powers_that_vary(std::set<int>& varied) {
  const std::vector<engine::Leaf>& leaves = engine::leaf_table().leaves;
  for (const std::string& device : device_prefixes()) {
    const bool follow = std::ranges::any_of(varied, [&](int leaf) {
      const std::string& path = leaves[std::size_t(leaf)].path;
      return std::ranges::any_of(kFollowed, [&](std::string_view followed) {
        return path.starts_with(device + std::string(followed));
      });
    });
    if (!follow) continue;
    for (const std::string_view power : kPowers) {
      varied.insert(find(device + std::string(power) + "_power"));
    }
  }
}

}  // namespace sweep
