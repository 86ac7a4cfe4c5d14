// Which host goes with settings that name an engine or a training library, and how is it written?
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/input/limits.h"
#include "sweep/language/library.h"
#include "sweep/language/node.h"

namespace sweep {

using Entries = std::vector<NodeEntry>;

// Where engines, or training libraries, are named, and the library that has them.
struct EngineKind {
  std::string_view section, library;
};
inline constexpr EngineKind kEngines{"serving", "serving"};
inline constexpr EngineKind kTraining{"train", "training"};

// Whether these settings are whole, not only some that differ from the base's.
bool whole(const Node& settings);

// The name of the host of what these settings are, or are made from.
std::optional<std::string> host_of(const Node& settings, const EngineKind& kind,
                                   const Library& library, const InputLimits& limits);

Node scalar(std::string text, const engine::Location& where);
Node map_of(Entries entries, const engine::Location& where);

// Puts what is said further in on top of what is said around it. A field that one place says twice stays there twice, which is a
// mistake to tell.
void add_fields(Entries& fields, const Entries& more);

// The host of this name, or one of round figures, with these fields of its own.
Node host_node(const std::optional<std::string>& name, const Entries& fields,
               const engine::Location& where);

}  // namespace sweep
