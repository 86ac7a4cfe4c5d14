// How many different adapters the sequences of a lane have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace engine {

class AdapterCount {
 public:
  void clear() { sequences_.clear(); }
  void join(std::int64_t adapter) { ++sequences_[adapter]; }
  void leave(std::int64_t adapter) {
    const auto found = sequences_.find(adapter);
    if (--found->second == 0) sequences_.erase(found);
  }
  std::int64_t different() const { return std::int64_t(sequences_.size()); }

 private:
  std::unordered_map<std::int64_t, std::int64_t> sequences_;  // by adapter, those that have some
};

}  // namespace engine
