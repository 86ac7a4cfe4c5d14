#include "engine/speculation/acceptance.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace engine {

namespace {

// The most tokens of a sequence in one step that are counted.
constexpr std::int64_t kMostTokens = 1 << 20;
// All paces are whole numbers of tokens in as many steps.
constexpr std::int64_t kGrid = 60;

// Numbers with spaces between them; how many there are, or nothing where the text is something else.
template <class Number>
std::optional<std::size_t> read_list(std::string_view text, std::array<Number, kMostProposed>& into,
                                     Number low, Number high) {
  std::size_t count = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (*at == ' ') {
      ++at;
      continue;
    }
    Number value{};
    const auto [next, error] = std::from_chars(at, end, value);
    const bool whole = next == end || *next == ' ';
    if (error != std::errc{} || !whole || count == into.size()) return std::nullopt;
    if (!(value >= low && value <= high)) return std::nullopt;
    into[count++] = value;
    at = next;
  }
  return count;
}

}  // namespace

std::optional<Acceptance> read_acceptance(std::string_view text) {
  Acceptance acceptance{};
  const auto count = read_list(text, acceptance, 0.0, 1.0);
  if (!count || *count == 0) return std::nullopt;
  std::fill(acceptance.begin() + std::ptrdiff_t(*count), acceptance.end(), acceptance[*count - 1]);
  return acceptance;
}

bool DraftTree::chain() const {
  return std::ranges::all_of(candidates, [](std::int64_t count) { return count == 1; });
}

std::int64_t DraftTree::width(std::int64_t position) const {
  std::int64_t width = 1;
  for (std::int64_t i = 0; i <= position; ++i) {
    width = std::min(width * candidates[std::size_t(i)], kMostTokens);
  }
  return width;
}

std::int64_t DraftTree::tokens(std::int64_t depth) const {
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < depth; ++i) sum += width(i);
  return std::min(sum, kMostTokens);
}

std::optional<DraftTree> read_tree(std::string_view text) {
  DraftTree tree;
  if (!read_list(text, tree.candidates, std::int64_t{1}, std::int64_t{64})) return std::nullopt;
  return tree;
}

Acceptance with_candidates(const Acceptance& acceptance, const DraftTree& tree, double further) {
  Acceptance holds = acceptance;
  for (std::size_t i = 0; i < holds.size(); ++i) {
    double none = 1 - acceptance[i];
    if (tree.candidates[i] == 1) continue;
    for (std::int64_t n = 1; n < tree.candidates[i]; ++n) none *= 1 - further * acceptance[i];
    holds[i] = 1 - none;
  }
  return holds;
}

double expected_tokens(const Acceptance& acceptance, std::int64_t tokens) {
  double sum = 1, reached = 1;
  for (std::int64_t i = 0; i < tokens; ++i) {
    reached *= acceptance[std::size_t(i)];
    sum += reached;
  }
  return sum;
}

Pace expected_pace(double expected, std::int64_t proposed) {
  const std::int64_t tokens = std::llround(expected * double(kGrid));
  const std::int64_t shared = std::gcd(tokens, kGrid);
  return {.tokens = tokens / shared, .steps = kGrid / shared, .queries = proposed + 1};
}

Pace changing_pace(double expected, std::int64_t proposed, std::int64_t most_proposed) {
  return {.tokens = std::llround(expected * double(kGrid)),
          .steps = kGrid,
          .queries = proposed + 1,
          .room = most_proposed};
}

Acceptance reached(const Acceptance& acceptance) {
  Acceptance sums{};
  double all = 1;
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = all *= acceptance[i];
  return sums;
}

}  // namespace engine
