// What published runs name, in our library.
#pragma once

#include <string_view>

#include "engine/scenario.h"
#include "tools/validate_serving/named_specs.h"

namespace tools {

bool is_known_machine(std::string_view name);

// The parts of a scenario that are named in our library; false: one is missing.
struct PartNames {
  std::string_view machine, model, host;
};
bool take_parts(NamedSpecs& specs, const PartNames& names, engine::Scenario& scenario);

// The same for a device by its own name in the library, with its own links.
bool take_device(NamedSpecs& specs, const PartNames& names, engine::Scenario& scenario);

}  // namespace tools
