// What conditions of fields ask that follows from more than one struct.
#pragma once

#include <span>
#include <string_view>

#include "engine/base/counts.h"
#include "engine/scenario.h"

namespace engine {

struct FactEntry {
  Fact fact;
  // About one deployment of a scenario.
  bool (*holds)(const Scenario& scenario, const Deployment& deployment);
  std::span<const std::string_view> behind;  // leaves and sections that it follows from
};

const FactEntry& fact_entry(Fact fact);

}  // namespace engine
