#include "tools/validate_training/run_parts.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace tools {
namespace {

struct Machine {
  std::string_view name, device, link;
  std::int64_t devices_per_node = 8;
};
constexpr std::array<Machine, 7> kMachines = {{
    {"DGX-H100", "h100-sxm", "infiniband-ndr-400"},
    {"DGX-B200", "b200-sxm", "infiniband-ndr-400"},
    {"DGX-B300", "b300-sxm", "infiniband-xdr-800"},
    {"DGX-GB200", "gb200", "infiniband-ndr-400", 72},
    {"DGX-GB300", "gb300", "infiniband-xdr-800", 72},
    {"a100_80gb", "a100-80gb-sxm", "roce-200"},
    {"h100_80gb", "h100-sxm", "infiniband-ndr-400"},
}};

}  // namespace

bool is_known_machine(std::string_view name) {
  return std::ranges::find(kMachines, name, &Machine::name) != kMachines.end();
}

bool take_parts(NamedSpecs& specs, const PartNames& names, engine::Scenario& scenario) {
  const auto found = std::ranges::find(kMachines, names.machine, &Machine::name);
  if (found == kMachines.end()) return false;
  const engine::Scenario* device = specs.find("devices", found->device);
  const engine::Scenario* link = specs.find("links", found->link);
  const engine::Scenario* shape = specs.find("models", names.model);
  const engine::Scenario* host = specs.find("hosts", names.host);
  if (device == nullptr || link == nullptr || shape == nullptr || host == nullptr) return false;
  scenario.task = engine::Task::train;
  scenario.device = device->device;
  scenario.model = shape->model;
  scenario.host = host->host;
  scenario.cluster.devices_per_node = found->devices_per_node;
  scenario.cluster.scale_out = link->device.scale_up;
  return true;
}

bool take_device(NamedSpecs& specs, const PartNames& names, engine::Scenario& scenario) {
  const engine::Scenario* device = specs.find("devices", names.machine);
  const engine::Scenario* shape = specs.find("models", names.model);
  const engine::Scenario* host = specs.find("hosts", names.host);
  if (device == nullptr || shape == nullptr || host == nullptr) return false;
  scenario.task = engine::Task::train;
  scenario.device = device->device;
  scenario.model = shape->model;
  scenario.host = host->host;
  return true;
}

}  // namespace tools
