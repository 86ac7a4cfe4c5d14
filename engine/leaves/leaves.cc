#include "engine/leaves/leaves.h"

#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "engine/base/check.h"

namespace engine {
namespace {

template <class T>
concept HasComplete = requires(T& t) {
  t.complete();
};

template <class T>
concept HasRate = requires(T& t) {
  t.rate();
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
      section.range = range;
      section.around = around_;
      if constexpr (InLibrary<T>) section.library = T::library;
      section.offset = offset_of(member);
      if constexpr (HasComplete<T>) {
        section.complete = [](void* place) { static_cast<T*>(place)->complete(); };
      }
      if constexpr (HasRate<T>) {
        section.rate = [](void* place) { static_cast<T*>(place)->rate(); };
      }
      section.first_leaf = table_.leaves.size();
      const std::size_t position = table_.sections.size();
      table_.sections.push_back(section);
      const int around = std::exchange(around_, int(position));
      T::fields(member, *this);
      around_ = around;
      table_.sections[position].last_leaf = table_.leaves.size();
    } else {
      Leaf leaf;
      leaf.path = prefix_;
      leaf.meaning = meaning;
      leaf.range = range;
      leaf.offset = offset_of(member);
      leaf.section = around_;
      describe_type<T>(leaf);
      limit_range(leaf);
      table_.leaves.push_back(std::move(leaf));
    }
    prefix_.resize(kept);
  }

 private:
  template <class T>
  std::size_t offset_of(const T& member) const {
    return std::size_t(reinterpret_cast<const char*>(&member) - origin_);
  }

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
  int around_ = -1;  // the innermost section
};

// Ties the leaves of a role to those of the main deployment.
void tie_role(std::string_view role, LeafTable& table) {
  const Section& section = table.sections[std::size_t(table.find_section(role))];
  const std::string prefix = std::string(role) + ".";
  const int presence = table.find_leaf(prefix + "present");
  const std::optional<DeploymentRole> name = from_name<DeploymentRole>(role);
  check(name.has_value(), "a role has its row in kRoleTraits");
  for (std::size_t i = section.first_leaf; i < section.last_leaf; ++i) {
    table.leaves[i].role = *name;
    if (int(i) == presence) continue;
    table.leaves[i].presence = presence;
    table.leaves[i].of_main = table.find_leaf(table.leaves[i].path.substr(prefix.size()));
  }
}

template <class Item>
void number_paths(const std::vector<Item>& items, LeafTable::Numbers& numbers) {
  for (std::size_t i = 0; i < items.size(); ++i) numbers.emplace(items[i].path, int(i));
}

LeafTable build_table() {
  LeafTable table;
  const Scenario origin;
  TableBuilder builder(origin, table);
  Scenario::fields(origin, builder);
  number_paths(table.leaves, table.leaf_numbers);
  number_paths(table.sections, table.section_numbers);
  each_role(origin, [&table](std::string_view role, const Role&) { tie_role(role, table); });
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

const LeafTable& leaf_table() {
  static const LeafTable table = build_table();
  return table;
}

void complete_section(Scenario& scenario, const Section& section) {
  if (section.complete == nullptr) return;
  section.complete(reinterpret_cast<char*>(&scenario) + section.offset);
}

void complete_spec(Scenario& scenario, const Section& section) {
  complete_section(scenario, section);
  if (section.rate == nullptr) return;
  section.rate(reinterpret_cast<char*>(&scenario) + section.offset);
}

bool is_present(const Scenario& scenario, const Leaf& leaf) {
  return leaf.presence < 0 ||
         leaf_integer(scenario, leaf_table().leaves[std::size_t(leaf.presence)]) != 0;
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

}  // namespace engine
