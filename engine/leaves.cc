#include "engine/leaves.h"

#include <xxhash.h>

#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

#include "engine/base/check.h"
#include "engine/base/version.h"

namespace engine {
namespace {

template <class T>
concept HasComplete = requires(T& t) {
  t.complete();
};

// Finds the struct to complete in a scenario; each type that needs it appears in one place.
template <class T>
struct CompleteThunk;
template <>
struct CompleteThunk<Device> {
  static void run(Scenario& scenario) { scenario.device.complete(); }
};

// Walks the field lists and notes where each value lies. Every struct is held by value, so a leaf's
// offset is the same in every Scenario.
class TableBuilder {
 public:
  TableBuilder(const Scenario& origin, LeafTable& table)
      : origin_(reinterpret_cast<const char*>(&origin)), table_(table) {}

  template <class T>
  void operator()(std::string_view name, const T& member, std::string_view meaning, Range range) {
    const std::size_t kept = prefix_.size();
    if (!prefix_.empty()) prefix_ += '.';
    prefix_ += name;
    if constexpr (HasFields<T>) {
      Section section;
      section.path = prefix_;
      section.meaning = meaning;
      if constexpr (InLibrary<T>) section.library = T::library;
      if constexpr (HasComplete<T>) section.complete = &CompleteThunk<T>::run;
      section.first_leaf = table_.leaves.size();
      const std::size_t position = table_.sections.size();
      table_.sections.push_back(section);
      T::fields(member, *this);
      table_.sections[position].last_leaf = table_.leaves.size();
    } else {
      Leaf leaf;
      leaf.path = prefix_;
      leaf.meaning = meaning;
      leaf.range = range;
      leaf.offset = std::size_t(reinterpret_cast<const char*>(&member) - origin_);
      describe_type<T>(leaf);
      limit_range(leaf);
      table_.leaves.push_back(std::move(leaf));
    }
    prefix_.resize(kept);
  }

 private:
  template <class T>
  static void describe_type(Leaf& leaf) {
    if constexpr (IsQuantity<T>) {
      static_assert(sizeof(T) == sizeof(double) && std::is_standard_layout_v<T>);
      leaf.kind = LeafKind::quantity;
      leaf.unit = UnitOf<T>::unit;
    } else if constexpr (std::is_same_v<T, double>) {
      leaf.kind = LeafKind::number;
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      leaf.kind = LeafKind::integer;
    } else if constexpr (std::is_same_v<T, bool>) {
      leaf.kind = LeafKind::boolean;
    } else if constexpr (NamedEnum<T>) {
      static constexpr auto names = enum_names(T{});
      leaf.kind = LeafKind::enumeration;
      leaf.names = names;
    } else {
      static_assert(std::is_same_v<T, std::string>, "a leaf is a number, a name or a text");
      leaf.kind = LeafKind::text;
    }
  }

  static void limit_range(Leaf& leaf) {
    const double most = most_of(leaf.kind);
    if (leaf.range.high == std::numeric_limits<double>::infinity()) leaf.range.high = most;
    if (leaf.range.low == -std::numeric_limits<double>::infinity()) leaf.range.low = -most;
  }

  const char* origin_;
  LeafTable& table_;
  std::string prefix_;
};

LeafTable build_table() {
  LeafTable table;
  const Scenario origin;
  TableBuilder builder(origin, table);
  Scenario::fields(origin, builder);
  return table;
}

template <class T>
const T& at(const Scenario& scenario, const Leaf& leaf) {
  return *reinterpret_cast<const T*>(reinterpret_cast<const char*>(&scenario) + leaf.offset);
}
template <class T>
T& at(Scenario& scenario, const Leaf& leaf) {
  return *reinterpret_cast<T*>(reinterpret_cast<char*>(&scenario) + leaf.offset);
}

}  // namespace

double most_of(LeafKind kind) { return kind == LeafKind::integer ? kMostCount : kMostAmount; }

int LeafTable::find_leaf(std::string_view path) const {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].path == path) return int(i);
  }
  return -1;
}

int LeafTable::find_section(std::string_view path) const {
  for (std::size_t i = 0; i < sections.size(); ++i) {
    if (sections[i].path == path) return int(i);
  }
  return -1;
}

const LeafTable& leaf_table() {
  static const LeafTable table = build_table();
  return table;
}

LeafValue get_leaf(const Scenario& scenario, const Leaf& leaf) {
  switch (leaf.kind) {
    case LeafKind::quantity:
    case LeafKind::number:
      return at<double>(scenario, leaf);
    case LeafKind::integer:
      return at<std::int64_t>(scenario, leaf);
    case LeafKind::boolean:
      return at<bool>(scenario, leaf);
    case LeafKind::enumeration:
      return std::int64_t(at<std::uint8_t>(scenario, leaf));
    case LeafKind::text:
      return at<std::string>(scenario, leaf);
  }
  return 0.0;
}

void set_leaf(Scenario& scenario, const Leaf& leaf, const LeafValue& value) {
  switch (leaf.kind) {
    case LeafKind::quantity:
    case LeafKind::number:
      at<double>(scenario, leaf) = std::get<double>(value);
      return;
    case LeafKind::integer:
      at<std::int64_t>(scenario, leaf) = std::get<std::int64_t>(value);
      return;
    case LeafKind::boolean:
      at<bool>(scenario, leaf) = std::get<bool>(value);
      return;
    case LeafKind::enumeration:
      at<std::uint8_t>(scenario, leaf) = std::uint8_t(std::get<std::int64_t>(value));
      return;
    case LeafKind::text:
      at<std::string>(scenario, leaf) = std::get<std::string>(value);
      return;
  }
}

double leaf_double(const Scenario& scenario, const Leaf& leaf) {
  return at<double>(scenario, leaf);
}

std::int64_t leaf_integer(const Scenario& scenario, const Leaf& leaf) {
  return leaf.kind == LeafKind::integer ? at<std::int64_t>(scenario, leaf)
                                        : std::int64_t(at<std::uint8_t>(scenario, leaf));
}

const std::string& leaf_text(const Scenario& scenario, const Leaf& leaf) {
  return at<std::string>(scenario, leaf);
}

double leaf_as_double(const Scenario& scenario, const Leaf& leaf) {
  switch (leaf.kind) {
    case LeafKind::quantity:
    case LeafKind::number:
      return leaf_double(scenario, leaf);
    case LeafKind::integer:
    case LeafKind::boolean:
    case LeafKind::enumeration:
      return double(leaf_integer(scenario, leaf));
    case LeafKind::text:
      break;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

namespace {

// What the key needs of a leaf, and nothing more: the table is walked for every point.
struct KeyLeaf {
  std::uint64_t path_hash = 0;  // says which leaf it is, whatever its position in the table
  std::uint64_t default_bits = 0;
  std::uint32_t offset = 0;
  LeafKind kind = LeafKind::number;
};

std::uint64_t double_bits(const Scenario& scenario, std::size_t offset) {
  double value = 0;
  std::memcpy(&value, reinterpret_cast<const char*>(&scenario) + offset, sizeof value);
  // + 0.0 turns a negative zero into zero: equal values share a key.
  value += 0.0;
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

// The bits of a leaf, for all kinds but text.
std::uint64_t leaf_bits(const Scenario& scenario, const KeyLeaf& leaf) {
  const char* place = reinterpret_cast<const char*>(&scenario) + leaf.offset;
  switch (leaf.kind) {
    case LeafKind::quantity:
    case LeafKind::number:
      return double_bits(scenario, leaf.offset);
    case LeafKind::integer: {
      std::uint64_t word = 0;
      std::memcpy(&word, place, sizeof word);
      return word;
    }
    case LeafKind::boolean:
    case LeafKind::enumeration:
      return static_cast<unsigned char>(*place);
    case LeafKind::text:
      break;
  }
  return 0;
}

std::vector<KeyLeaf> key_leaves(const Scenario& defaults) {
  std::vector<KeyLeaf> table;
  for (const Leaf& leaf : leaf_table().leaves) {
    if (leaf.range.file)
      continue;  // where a file lies is not what it holds; its checksum is a leaf
    KeyLeaf entry;
    entry.path_hash = XXH3_64bits(leaf.path.data(), leaf.path.size());
    entry.offset = std::uint32_t(leaf.offset);
    entry.kind = leaf.kind;
    entry.default_bits = leaf_bits(defaults, entry);
    table.push_back(entry);
  }
  return table;
}

}  // namespace

Key key_of(const Scenario& scenario) {
  static const Scenario defaults;
  static const std::vector<KeyLeaf> leaves = key_leaves(defaults);
  // Not cleared: only the words written below are hashed.
  std::array<std::uint64_t, 2 * 512> words;
  std::size_t count = 0;
  words[count++] = std::uint64_t(kModelVersion);
  check(2 * leaves.size() + 1 <= words.size(), "the key's buffer holds every leaf");
  for (const KeyLeaf& leaf : leaves) {
    std::uint64_t word = 0;
    if (leaf.kind == LeafKind::text) {
      const auto text_of = [&](const Scenario& from) -> const std::string& {
        return *reinterpret_cast<const std::string*>(reinterpret_cast<const char*>(&from) +
                                                     leaf.offset);
      };
      const std::string& text = text_of(scenario);
      if (text == text_of(defaults)) continue;
      word = XXH3_64bits(text.data(), text.size());
    } else {
      word = leaf_bits(scenario, leaf);
      if (word == leaf.default_bits) continue;
    }
    words[count++] = leaf.path_hash;
    words[count++] = word;
  }
  const XXH128_hash_t hash = XXH3_128bits(words.data(), count * sizeof(std::uint64_t));
  return {.high = hash.high64, .low = hash.low64};
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
