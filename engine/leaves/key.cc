#include "engine/leaves/key.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/version.h"
#include "engine/chosen_calibration.h"
#include "engine/leaves/leaf_use.h"
#include "engine/leaves/leaves.h"

namespace engine {
namespace {

// What the key needs of a leaf, and nothing more: the table is walked for every point.
struct KeyLeaf {
  std::uint64_t path_hash = 0;  // says which leaf it is, whatever its position in the table
  std::uint64_t default_bits = 0;
  std::uint32_t offset = 0;
  LeafKind kind = LeafKind::number;
};

// The same of a leaf of a role, which counts where it differs from the main deployment's.
struct RoleKeyLeaf {
  KeyLeaf own;
  std::uint32_t main_offset = 0;
};
struct RoleKey {
  std::uint32_t presence_offset = 0;
  std::vector<RoleKeyLeaf> leaves;
};

struct TaskKey {
  std::vector<KeyLeaf> leaves;
  std::vector<RoleKey> roles;
};

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

KeyLeaf key_leaf(const Leaf& leaf, const Scenario& defaults) {
  KeyLeaf entry;
  entry.path_hash = hash_of(leaf.path);
  entry.offset = std::uint32_t(leaf.offset);
  entry.kind = leaf.kind;
  entry.default_bits = leaf_bits(defaults, entry);
  return entry;
}

RoleKey& role_of(const Leaf& leaf, TaskKey& key) {
  const auto presence = std::uint32_t(leaf_table().leaves[std::size_t(leaf.presence)].offset);
  const auto same = std::ranges::find(key.roles, presence, &RoleKey::presence_offset);
  return same != key.roles.end() ? *same : key.roles.emplace_back(RoleKey{presence, {}});
}

TaskKey task_key(Task task) {
  const Scenario defaults;
  TaskKey key;
  const std::vector<Leaf>& leaves = leaf_table().leaves;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const Leaf& leaf = leaves[i];
    if (!leaf.range.in_key || !task_reads(task, int(i))) continue;
    const KeyLeaf entry = key_leaf(leaf, defaults);
    if (leaf.presence < 0) {
      key.leaves.push_back(entry);
    } else {
      const Leaf& main = leaves[std::size_t(leaf.of_main)];
      role_of(leaf, key).leaves.push_back({entry, std::uint32_t(main.offset)});
    }
  }
  return key;
}

// Made when a point of the task first asks for it: a sweep has one task as a rule, and to know what a task reads takes as long as to
// evaluate hundreds of points.
template <Task kTask>
const TaskKey& key_of_task() {
  static const TaskKey key = task_key(kTask);
  return key;
}
constexpr std::size_t kTaskCount = enum_names(Task{}).size();
template <std::size_t... kNumbers>
constexpr auto keys_of_tasks(std::index_sequence<kNumbers...>) {
  return std::array{key_of_task<static_cast<Task>(kNumbers)>...};
}
constexpr auto kTaskKeys = keys_of_tasks(std::make_index_sequence<kTaskCount>{});

// Which calibration is behind a deployment; 0: none is. One that is not there is known by what was asked for.
std::uint64_t calibration_bits(const Scenario& scenario, const Deployment& deployment,
                               const Calibrations& calibrations) {
  const CalibrationChoice chosen =
      chosen_calibration(scenario.calibration, deployment, calibrations);
  if (chosen.missing) return hash_of("missing " + scenario.calibration.name);
  return chosen.calibration == nullptr ? 0 : hash_of(chosen.calibration->identity);
}

// What is hashed. Not cleared: only the words written are read.
class KeyWords {
 public:
  void add(std::uint64_t word) { words_[count_++] = word; }
  void add(std::uint64_t name, std::uint64_t word) {
    add(name);
    add(word);
  }
  Key hash() const {
    const XXH128_hash_t hash = XXH3_128bits(words_.data(), count_ * sizeof(std::uint64_t));
    return {.high = hash.high64, .low = hash.low64};
  }
  static constexpr std::size_t kMost = 4 * 512;

 private:
  std::array<std::uint64_t, kMost> words_;
  std::size_t count_ = 0;
};

// What a role has that the main deployment has not.
void add_role(const Scenario& scenario, const RoleKey& role, KeyWords& words) {
  const char* place = reinterpret_cast<const char*>(&scenario) + role.presence_offset;
  if (*place == 0) return;
  for (const RoleKeyLeaf& leaf : role.leaves) {
    const std::uint64_t word = leaf_bits(scenario, leaf.own);
    KeyLeaf main = leaf.own;
    main.offset = leaf.main_offset;
    if (word != leaf_bits(scenario, main)) words.add(leaf.own.path_hash, word);
  }
}

// Whether the task reads anything of a role.
bool has_role(const TaskKey& key, const Scenario& scenario, const Role& role) {
  const auto offset = std::uint32_t(reinterpret_cast<const char*>(&role.present) -
                                    reinterpret_cast<const char*>(&scenario));
  return std::ranges::find(key.roles, offset, &RoleKey::presence_offset) != key.roles.end();
}

}  // namespace

Key key_of(const Scenario& scenario, const Calibrations& calibrations) {
  const TaskKey& key = kTaskKeys[static_cast<std::size_t>(scenario.task)]();
  std::size_t most = 2 + 2 * key.leaves.size();
  for (const RoleKey& role : key.roles) most += 2 + 2 * role.leaves.size();
  check(most <= KeyWords::kMost, "the key's buffer holds every leaf");
  KeyWords words;
  words.add(std::uint64_t(kModelVersion));
  words.add(calibration_bits(scenario, scenario, calibrations));
  for (const KeyLeaf& leaf : key.leaves) {
    const std::uint64_t word = leaf_bits(scenario, leaf);
    if (word != leaf.default_bits) words.add(leaf.path_hash, word);
  }
  for (const RoleKey& role : key.roles) add_role(scenario, role, words);
  each_role(scenario, [&](std::string_view name, const Role& role) {
    if (!role.present || !has_role(key, scenario, role)) return;
    words.add(hash_of(name), calibration_bits(scenario, role.deployment, calibrations));
  });
  return words.hash();
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
