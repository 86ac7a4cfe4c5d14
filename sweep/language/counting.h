// What of a sweep's leaves counts in some point, which values of them, and how that is said.
#pragma once

#include <fmt/core.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/leaves/leaf_use.h"
#include "sweep/language/possibilities.h"

namespace sweep {

// Why a field does not count; nothing: it does.
using Reason = std::optional<engine::LeafUse>;
using LeafValues = std::vector<std::pair<int, engine::LeafValue>>;

struct Counting {
  explicit Counting(const Possibilities& possibilities)
      : can_be(possibilities.can_be()), read(possibilities.read_by_formulas()) {}

  // Nothing: it counts, or a formula reads it that other leaves follow from.
  Reason why_inert(int leaf) const {
    return read.contains(leaf) ? std::nullopt : engine::why_inert(leaf, can_be);
  }
  std::optional<engine::ValueUse> why_another(int leaf, const engine::LeafValue& value) const {
    if (read.contains(leaf)) return std::nullopt;
    return engine::why_another(leaf, engine::condition_value(value), can_be);
  }

  engine::CanBe can_be;
  std::set<int> read;
};

inline std::string said_idle(std::string_view path, const engine::LeafUse& reason) {
  return fmt::format("'{}' changes nothing here: it counts only where {}", path, reason.where());
}

inline std::string located(const engine::Location& where, const std::string& said) {
  return fmt::format("{}:{}:{}: {}", where.file, where.line, where.column, said);
}

}  // namespace sweep
