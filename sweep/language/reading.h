// What readers share while they read one sweep: the library, and every mistake found so far.
#pragma once

#include <algorithm>
#include <concepts>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "engine/leaves/leaves.h"
#include "engine/resources.h"
#include "sweep/input/limits.h"
#include "sweep/input/mistake_list.h"
#include "sweep/language/library.h"
#include "sweep/language/node.h"
#include "sweep/space/space_parts.h"

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
  explicit Reading(Library from, const InputLimits& within = input_limits())
      : library(std::move(from)), limits(within) {}

  void mistake(const engine::Location& where, std::string what, std::string hint = "") {
    mistakes.add({where, std::move(what), std::move(hint)});
  }
  // A hint that takes long to find, such as the nearest of many names: looked for only where it is shown.
  template <std::invocable Hint>
  void mistake(const engine::Location& where, std::string what, Hint&& hint) {
    mistake(where, std::move(what), mistakes.full() ? std::string() : std::string(hint()));
  }

  // Whether one more file may be read, named at this place.
  bool may_read(const engine::Location& named_at) {
    const auto refuse = [&](const std::string& what, std::string_view limit) {
      mistakes.add(beyond_limit(named_at, what, limit));
      return false;
    };
    if (std::int64_t(files.size()) >= limits.files) {
      return refuse("the sweep takes more than " + std::to_string(limits.files) + " files",
                    "files");
    }
    if (std::int64_t(open.size()) >= limits.file_depth) {
      return refuse("more than " + std::to_string(limits.file_depth) +
                        " files that include, or are made from, one another",
                    "file_depth");
    }
    return true;
  }
  // The values of all files together have the limit of one.
  void count(const Node& document) {
    limits.nodes = std::max<std::int64_t>(1, limits.nodes - node_count(document));
  }

  Library library;
  InputLimits limits;
  MistakeList mistakes;
  std::vector<ComparedText> compared;
  std::vector<std::string> files;  // every file read, in order
  // Traces and calibrations that were named, loaded once.
  std::shared_ptr<engine::Resources> resources = std::make_shared<engine::Resources>();
  std::vector<std::string> open;  // files being read now, to find a spec that is made from itself
  // Names of the calibrations in a folder of the library, listed once.
  std::map<std::string, std::vector<std::string>> calibration_names;
  // Specs read already, by section and file. A spec with mistakes is there too, as it came out.
  std::map<std::pair<std::string, std::string>, std::vector<Edit>> specs;
};

}  // namespace sweep
