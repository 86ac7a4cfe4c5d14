#include "sweep/language/said_of_formats.h"

#include <algorithm>
#include <string_view>

namespace sweep {
namespace {

// Of what is said under a condition.
void at_times(SaidOfFormats& said) {
  said.everywhere = false;
  for (SaidOfFormats::Field& field : said.besides) field.always = false;
}

using Points = SaidOfFormats::Points;

// Looks for what is said of formats under one path, such as "quant" or "draft.quant".
class Listener {
 public:
  explicit Listener(std::string_view role)
      : path_(role.empty() ? "quant" : std::string(role) + ".quant") {}

  SaidOfFormats in_sweep(const Node& sweep) {
    SaidOfFormats said;
    for (const auto& [key, value] : sweep.entries) {
      if (key.text == "base" || key.text == "derive") said.add(in_fields(value, ""), Points::same);
      if (key.text == "axes") said.add(in_axes(value), Points::same);
    }
    if (sweep.is_sequence()) said.add(in_axes(sweep), Points::same);
    return said;
  }

  SaidOfFormats on_axis(const std::string& path, const Node& axis) {
    const Node* values = axis.find("values");
    const Node& list = values == nullptr ? axis : *values;
    SaidOfFormats said;
    if (path.starts_with(path_ + ".")) {
      say(said, path.substr(path_.size() + 1), axis.where);
    } else if (path == path_ || path_.starts_with(path + ".")) {
      said = in_all(list.items, [&](const Node& item) {
        const Node* labelled = item.find("value");
        SaidOfFormats one = in_fields(labelled == nullptr ? item : *labelled, path + ".");
        if (item.find("when") != nullptr) at_times(one);
        return one;
      });
    }
    if (axis.find("when") != nullptr) at_times(said);
    return said;
  }

 private:
  void say(SaidOfFormats& said, std::string_view field, const engine::Location& where) const {
    if (field != "weights") {
      said.besides.push_back({std::string(field), trail_});
      return;
    }
    if (!said.somewhere) said.where = where;
    said.somewhere = said.everywhere = true;
  }

  // Of alternatives: everywhere where every one says it.
  template <class InOne>
  SaidOfFormats in_all(const std::vector<Node>& items, InOne&& in_one) const {
    SaidOfFormats said;
    std::vector<SaidOfFormats> each;
    bool everywhere = !items.empty();
    for (const Node& item : items) {
      each.push_back(in_one(item));
      everywhere = everywhere && each.back().everywhere;
      said.add(each.back(), Points::some);
    }
    said.everywhere = everywhere;
    const auto by_all = [&](const SaidOfFormats::Field& field) {
      return std::ranges::all_of(
          each, [&](const SaidOfFormats& one) { return one.says_always(field.name, trail_); });
    };
    for (SaidOfFormats::Field& field : said.besides) field.always = field.always && by_all(field);
    return said;
  }

  // What a sub-sweep says counts for all of its points, whatever the others say.
  SaidOfFormats in_branches(const Node& concat) {
    SaidOfFormats said;
    bool everywhere = !concat.items.empty();
    for (std::size_t i = 0; i < concat.items.size(); ++i) {
      trail_.push_back({concat.where, i});
      const SaidOfFormats one = in_sweep(concat.items[i]);
      trail_.pop_back();
      everywhere = everywhere && one.everywhere;
      said.add(one, Points::some);
    }
    said.everywhere = everywhere;
    return said;
  }

  SaidOfFormats in_fields(const Node& map, const std::string& prefix) const {
    SaidOfFormats said;
    for (const auto& [key, value] : map.entries) {
      const std::string path = prefix + key.text;
      if (path.starts_with(path_ + ".")) {
        say(said, path.substr(path_.size() + 1), key.where);
      } else if (path == path_ || path_.starts_with(path + ".")) {
        said.add(in_fields(value, path + "."), Points::same);
      }
    }
    return said;
  }

  SaidOfFormats in_axes(const Node& list) {
    SaidOfFormats said;
    for (const Node& item : list.items) {
      SaidOfFormats one;
      for (const auto& [key, value] : item.entries)
        one.add(in_entry(key.text, value), Points::same);
      if (item.find("when") != nullptr) at_times(one);
      said.add(one, Points::same);
    }
    return said;
  }

  SaidOfFormats in_entry(const std::string& key, const Node& value) {
    if (key == "product") return in_axes(value);
    if (key == "concat") return in_branches(value);
    if (key == "zip" && value.is_sequence()) return in_axes(value);
    if (key != "zip" && key != "sample") return on_axis(key, value);
    SaidOfFormats said;
    const Node* members = key == "zip" ? &value : value.find("of");
    if (members == nullptr) return said;
    for (const auto& [path, values] : members->entries)
      said.add(on_axis(path.text, values), Points::same);
    if (value.find("when") != nullptr) at_times(said);
    return said;
  }

  std::string path_;
  Trail trail_;  // of what is listened to
};

}  // namespace

void SaidOfFormats::add(const SaidOfFormats& more, Points points) {
  if (!somewhere) where = more.where;
  somewhere = somewhere || more.somewhere;
  everywhere = everywhere || (points == Points::same && more.everywhere);
  besides.insert(besides.end(), more.besides.begin(), more.besides.end());
}

bool SaidOfFormats::says_always(std::string_view field, const Trail& at) const {
  return std::ranges::any_of(besides, [&](const Field& said) {
    return said.name == field && said.always && covers(said.trail, at);
  });
}
bool SaidOfFormats::says_at_times(std::string_view field, const Trail& at) const {
  return std::ranges::any_of(
      besides, [&](const Field& said) { return said.name == field && may_meet(said.trail, at); });
}

SaidOfFormats said_in_sweep(const Node& sweep, std::string_view role) {
  return Listener(role).in_sweep(sweep);
}

SaidOfFormats said_on_axis(const NodeEntry& axis, std::string_view role) {
  return Listener(role).on_axis(axis.key.text, axis.value);
}

}  // namespace sweep
