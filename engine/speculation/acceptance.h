// How many tokens a verification makes, from how likely each proposed one holds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/step/pace.h"

namespace engine {

constexpr std::int64_t kMostProposed = 64;

// By position: that a token holds where all before it did.
using Acceptance = std::array<double, kMostProposed>;

// Numbers between 0 and 1 with spaces between them; the last one counts for all positions that follow. Nothing where
// the text is something else, or empty.
std::optional<Acceptance> read_acceptance(std::string_view text);

// Tokens that a step makes of a sequence when `tokens` are proposed: the one that the model itself adds, and every
// proposed one that holds.
double expected_tokens(const Acceptance& acceptance, std::int64_t tokens);

// The same in fixed point, to the nearest of 1/60: the greatest error is 1/120 of a token a step. More acceptance never
// becomes a lower pace.
Pace expected_pace(double expected, std::int64_t proposed);

}  // namespace engine
