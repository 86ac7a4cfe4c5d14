// How many different adapters the sequences of a lane have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace engine {

class AdapterCount {
 public:
  void clear() {
    different_ = 0;
    if (sequences_ != nullptr) sequences_->clear();
  }
  void join(std::int64_t adapter) {
    if (sequences_ == nullptr) sequences_ = std::make_unique<ByAdapter>();
    if (++(*sequences_)[adapter] == 1) ++different_;
  }
  void leave(std::int64_t adapter) {
    const auto found = sequences_->find(adapter);
    if (--found->second > 0) return;
    sequences_->erase(found);
    --different_;
  }
  std::int64_t different() const { return different_; }

 private:
  using ByAdapter = std::unordered_map<std::int64_t, std::int64_t>;

  std::int64_t different_ = 0;
  std::unique_ptr<ByAdapter> sequences_;  // those that have some; mostly there are no adapters
};

}  // namespace engine
