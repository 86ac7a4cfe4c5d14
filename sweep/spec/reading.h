// What readers share while they read one sweep: the library, and every mistake found so far.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/leaves.h"
#include "engine/resources.h"
#include "sweep/space/space_parts.h"
#include "sweep/spec/library.h"

namespace sweep {

// What a document does to one path: a leaf gets its value, or a named spec fills a whole section.
struct Assignment {
  std::string path;
  std::vector<Edit> edits;
  engine::Location where;
};

// Parts of a path: "device.memory_bandwidth" has two.
inline int depth_of(std::string_view path) {
  int depth = 1;
  for (const char c : path) depth += c == '.' ? 1 : 0;
  return depth;
}

// A text an expression compares a leaf with. Whether anything is called so can only be told once all
// axes are read.
struct ComparedText {
  int leaf = 0;
  std::string text;
  engine::Location where;
};

class Reading {
 public:
  explicit Reading(Library from) : library(std::move(from)) {}

  void mistake(const engine::Location& where, std::string what, std::string hint = "") {
    engine::Mistake found{where, std::move(what), std::move(hint)};
    // A library file named twice is wrong once.
    for (const engine::Mistake& known : mistakes) {
      if (known == found) return;
    }
    mistakes.push_back(std::move(found));
  }

  Library library;
  std::vector<engine::Mistake> mistakes;
  std::vector<ComparedText> compared;
  std::vector<std::string> files;  // every file read, in order
  // Traces and calibrations that were named, loaded once.
  std::shared_ptr<engine::Resources> resources = std::make_shared<engine::Resources>();
  std::vector<std::string> open;  // files being read now, to find a spec that is made from itself
  // Specs read already, by section and file. A spec with mistakes is there too, as it came out.
  std::map<std::pair<std::string, std::string>, std::vector<Edit>> specs;
};

}  // namespace sweep
