// Edits laid out for the inner loop: where to write, and what. Made once, shared by all threads.
#pragma once

#include <cstdint>
#include <string>

#include "engine/leaves/leaves.h"
#include "engine/scenario.h"

namespace sweep {

struct SpaceParts;

struct LeafWrite {
  std::uint32_t offset = 0;
  engine::LeafKind kind = engine::LeafKind::number;
  union {
    double number;
    std::int64_t integer = 0;
    const std::string* text;  // in the axis the edit comes from
  };
};

void write(const LeafWrite& edit, engine::Scenario& scenario);

// Lays out the edits of every axis, but for those that write what the base holds already where no
// broader axis can have changed it: most of a device is like the next one.
void compile_writes(SpaceParts& parts);

}  // namespace sweep
