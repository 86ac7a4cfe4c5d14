// Parts of scenarios by the names they have in our library, each read once.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "engine/scenario.h"
#include "sweep/language/library.h"
#include "sweep/language/sweep_spec.h"

namespace tools {

class NamedSpecs {
 public:
  explicit NamedSpecs(const sweep::Library& library) : library_(library) {}

  // nullptr: `mistakes` says why.
  const engine::Scenario* find(std::string_view library, std::string_view name) {
    const auto key = std::pair(std::string(library), std::string(name));
    auto found = read_.find(key);
    if (found == read_.end()) {
      auto spec = sweep::read_named(library_, library, name);
      if (!spec) {
        mistakes_ = spec.mistakes();
        return nullptr;
      }
      found = read_.emplace(key, std::move(spec->scenario)).first;
    }
    return &found->second;
  }
  const std::vector<engine::Mistake>& mistakes() const { return mistakes_; }

 private:
  const sweep::Library& library_;
  std::map<std::pair<std::string, std::string>, engine::Scenario> read_;
  std::vector<engine::Mistake> mistakes_;
};

}  // namespace tools
