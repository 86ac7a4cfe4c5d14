// Which leaves a condition of a field is about, and what it says of them in words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/leaves/leaf_use.h"

namespace engine {

// The leaf of a path, or every leaf of a section.
std::vector<int> leaves_at(std::string_view path);
// The same path in the role that a leaf belongs to, where the role has it.
std::string path_for(const Leaf& leaf, std::string_view path);
// The whole path of one that a condition writes.
std::string path_of(const LeafUse& use, std::string_view path);

// Whether a test asks where its field lies instead of what others are; and the answer.
bool follows_from_place(const Test& test);
bool holds_in_place(const Test& test, const Leaf& leaf);

}  // namespace engine
