// How many tokens a verification makes, from how likely each proposed one holds.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "engine/step/pace.h"

namespace engine {

constexpr std::int64_t kMostProposed = 64;

// By position: that a token holds where all before it did.
using Acceptance = std::array<double, kMostProposed>;

// Numbers between 0 and 1 with spaces between them; the last one counts for all positions that follow. Nothing where
// the text is something else, or empty.
std::optional<Acceptance> read_acceptance(std::string_view text);

// What a file says, by workload; one without that column has one, without a name.
struct AcceptanceTable {
  std::map<std::string, Acceptance, std::less<>> by_workload;
  std::string checksum;
};

// A tree of proposals: behind every token it has so many candidates for the next position. A chain has one each.
struct DraftTree {
  std::array<std::int64_t, kMostProposed> candidates;

  DraftTree() { candidates.fill(1); }
  bool chain() const;
  // Tokens at a position (the first is 0), and at all positions before it: more than a step can hold is that many.
  std::int64_t width(std::int64_t position) const;
  std::int64_t tokens(std::int64_t depth) const;
};

// Numbers with spaces between them, for the first positions; nothing where the text is something else.
std::optional<DraftTree> read_tree(std::string_view text);

// That one of the candidates for a position holds. The first does with the position's acceptance a; each further one, where
// those before it did not, with a times `further`: 1 - (1 - a) (1 - further a)^(candidates - 1).
Acceptance with_candidates(const Acceptance& acceptance, const DraftTree& tree, double further);

// Tokens that a step makes of a sequence when `tokens` positions are proposed: the one that the model itself adds, and
// every position that holds.
double expected_tokens(const Acceptance& acceptance, std::int64_t tokens);

// The same in fixed point, to the nearest of 1/60: the greatest error is 1/120 of a token a step. More acceptance never
// becomes a lower pace.
Pace expected_pace(double expected, std::int64_t proposed);

// One of several paces that follow one another: all on the same grid, and all with room for `most_proposed`.
Pace changing_pace(double expected, std::int64_t proposed, std::int64_t most_proposed);

// Chances that at least 1, 2, ... positions are accepted, with which draws are compared.
Acceptance reached(const Acceptance& acceptance);

}  // namespace engine
