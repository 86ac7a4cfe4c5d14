#include "engine/key.h"

#include <xxhash.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/version.h"
#include "engine/chosen_calibration.h"
#include "engine/leaf_use.h"
#include "engine/leaves.h"

namespace engine {
namespace {

// What the key needs of a leaf, and nothing more: the table is walked for every point.
struct KeyLeaf {
  std::uint64_t path_hash = 0;  // says which leaf it is, whatever its position in the table
  std::uint64_t default_bits = 0;
  std::uint32_t offset = 0;
  LeafKind kind = LeafKind::number;
};

constexpr std::size_t kTasks = enum_names(Task{}).size();
using KeyLeaves = std::array<std::vector<KeyLeaf>, kTasks>;

std::uint64_t hash_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

std::uint64_t double_bits(const char* place) {
  double value = 0;
  std::memcpy(&value, place, sizeof value);
  // + 0.0 turns a negative zero into zero: equal values share a key.
  value += 0.0;
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

// The bits of a leaf, or of a text its hash.
std::uint64_t leaf_bits(const Scenario& scenario, const KeyLeaf& leaf) {
  const char* place = reinterpret_cast<const char*>(&scenario) + leaf.offset;
  switch (leaf.kind) {
    case LeafKind::quantity:
    case LeafKind::number:
      return double_bits(place);
    case LeafKind::integer: {
      std::uint64_t word = 0;
      std::memcpy(&word, place, sizeof word);
      return word;
    }
    case LeafKind::boolean:
    case LeafKind::enumeration:
      return static_cast<unsigned char>(*place);
    case LeafKind::text:
      return hash_of(*reinterpret_cast<const std::string*>(place));
  }
  return 0;
}

KeyLeaves key_leaves() {
  const Scenario defaults;
  KeyLeaves by_task;
  const std::vector<Leaf>& leaves = leaf_table().leaves;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const Leaf& leaf = leaves[i];
    if (!leaf.range.in_key) continue;
    KeyLeaf entry;
    entry.path_hash = hash_of(leaf.path);
    entry.offset = std::uint32_t(leaf.offset);
    entry.kind = leaf.kind;
    entry.default_bits = leaf_bits(defaults, entry);
    for (std::size_t task = 0; task < kTasks; ++task) {
      if (task_reads(static_cast<Task>(task), int(i))) by_task[task].push_back(entry);
    }
  }
  return by_task;
}

// Which calibration is behind the point; 0: none is. One that is not there is known by what was asked for.
std::uint64_t calibration_bits(const Scenario& scenario, const Calibrations& calibrations) {
  const CalibrationChoice chosen = chosen_calibration(scenario, calibrations);
  if (chosen.missing) return hash_of("missing " + scenario.calibration.name);
  return chosen.calibration == nullptr ? 0 : hash_of(chosen.calibration->identity);
}

Key key_with(const Scenario& scenario, std::uint64_t calibration) {
  static const KeyLeaves all = key_leaves();
  const std::vector<KeyLeaf>& leaves = all[static_cast<std::size_t>(scenario.task)];
  // Not cleared: only the words written below are hashed.
  std::array<std::uint64_t, 2 * 512> words;
  std::size_t count = 0;
  words[count++] = std::uint64_t(kModelVersion);
  words[count++] = calibration;
  check(2 * leaves.size() + 2 <= words.size(), "the key's buffer holds every leaf");
  for (const KeyLeaf& leaf : leaves) {
    const std::uint64_t word = leaf_bits(scenario, leaf);
    if (word == leaf.default_bits) continue;
    words[count++] = leaf.path_hash;
    words[count++] = word;
  }
  const XXH128_hash_t hash = XXH3_128bits(words.data(), count * sizeof(std::uint64_t));
  return {.high = hash.high64, .low = hash.low64};
}

}  // namespace

Key key_of(const Scenario& scenario, const Calibrations& calibrations) {
  return key_with(scenario, calibration_bits(scenario, calibrations));
}

Key key_of(const Scenario& scenario) {
  static const Calibrations none;
  return key_of(scenario, none);
}

void write_hex(Key key, char* out) {
  constexpr char digits[] = "0123456789abcdef";
  for (int i = 0; i < 16; ++i) {
    out[i] = digits[(key.high >> (60 - 4 * i)) & 15];
    out[16 + i] = digits[(key.low >> (60 - 4 * i)) & 15];
  }
}

std::string to_hex(Key key) {
  std::string text(32, '0');
  write_hex(key, text.data());
  return text;
}

}  // namespace engine
