// Where things with keys of 64 bits lie in an array of their owner's. Open addressing: nothing is allocated but to grow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/fetch_lines.h"
#include "engine/base/large_pages.h"

namespace engine {

class KeyTable {
 public:
  // Its size stays where most of it was used, so that it need not grow anew.
  void clear() {
    const bool used = 2 * kRoom * count_ > entries_.size();
    entries_.assign(used ? entries_.size() : kFirst, Entry{});
    count_ = 0;
  }
  // Asks for the place of a key before it is looked up.
  void fetch(std::uint64_t key) const { fetch_line(&entries_[home_of(key)]); }
  // -1: it is not there.
  std::int32_t find(std::uint64_t key) const { return entries_[place_of(key)].index; }
  // A key that is not there.
  void insert(std::uint64_t key, std::int32_t index) {
    if (kRoom * ++count_ > entries_.size()) grow();
    put({key, index});
  }
  // One that is.
  void erase(std::uint64_t key) {
    const std::size_t mask = entries_.size() - 1;
    std::size_t hole = home_of(key);
    while (entries_[hole].key != key)
      hole = (hole + 1) & mask;  // there is no empty place on the way
    --count_;
    // Entries behind the hole may stand there only because its place was taken. The first that belongs no further back fills it.
    for (std::size_t place = (hole + 1) & mask; entries_[place].index >= 0;
         place = (place + 1) & mask) {
      const std::size_t pushed = place - home_of(entries_[place].key);
      if ((pushed & mask) < ((place - hole) & mask)) continue;
      entries_[hole] = entries_[place];
      hole = place;
    }
    entries_[hole] = {};
  }
  template <class Visit>
  void each(Visit visit) const {
    for (const Entry& entry : entries_) {
      if (entry.index >= 0) visit(entry.index);
    }
  }

 private:
  static constexpr std::size_t kFirst = 64;
  // Places for each key, at least: so most stand where they belong, and how many others stand before one need not be foreseen.
  static constexpr std::size_t kRoom = 4;

  struct Entry {
    std::uint64_t key = 0;
    std::int32_t index = -1;  // -1: the place is empty
  };
  std::size_t home_of(std::uint64_t key) const {
    return std::size_t(key * 0x9e3779b97f4a7c15ull >> 20) & (entries_.size() - 1);
  }
  std::size_t place_of(std::uint64_t key) const {
    const std::size_t mask = entries_.size() - 1;
    std::size_t place = home_of(key);
    while (entries_[place].index >= 0 && entries_[place].key != key) place = (place + 1) & mask;
    return place;
  }
  void put(const Entry& entry) {
    const std::size_t mask = entries_.size() - 1;
    std::size_t place = home_of(entry.key);
    while (entries_[place].index >= 0) place = (place + 1) & mask;
    entries_[place] = entry;
  }
  void grow() {
    std::vector<Entry> old;
    reserve_large_pages(old, entries_.size() * 2);
    old.resize(entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.index >= 0) put(entry);
    }
  }

  std::vector<Entry> entries_;  // as many as a power of two
  std::size_t count_ = 0;
};

}  // namespace engine
