// Where the search for a form's parameters starts and what values make physical sense.
#pragma once

#include <vector>

#include "engine/calibration/fits.h"
#include "tools/calibrate/fit/minimise.h"

namespace tools {

// By the name of each parameter; one that is not listed keeps its value (tile sizes are choices, not
// quantities). The starts are round middle values: they know no device.
std::vector<Unknown> unknowns_of(const engine::GemmFit&);
std::vector<Unknown> unknowns_of(const engine::PrefillFit&);
std::vector<Unknown> unknowns_of(const engine::DecodeFit&);
std::vector<Unknown> unknowns_of(const engine::MoeFit&);
std::vector<Unknown> unknowns_of(const engine::AbsorbedFit&);
std::vector<Unknown> unknowns_of(const engine::PassFit&);
std::vector<Unknown> unknowns_of(const engine::CollectiveFit&);
std::vector<Unknown> unknowns_of(const engine::BetweenFit&);
std::vector<Unknown> unknowns_of(const engine::ExchangeFit&);
std::vector<Unknown> unknowns_of(const engine::CopyFit&);

}  // namespace tools
