#include "sweep/language/axis_values.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include "sweep/language/load_resources.h"
#include "sweep/language/parse_quantity.h"
#include "sweep/language/read_value.h"
#include "sweep/language/suggest.h"
#include "sweep/space/sampled_value.h"

namespace sweep {
namespace {

using engine::Leaf;
using engine::LeafKind;
using engine::LeafValue;

const std::vector<std::string> kFormKeys{"values", "linear", "geometric", "powers_of_two",
                                         "count",  "when",   "yields"};

bool is_numeric(const Leaf& leaf) {
  return leaf.kind == LeafKind::quantity || leaf.kind == LeafKind::number ||
         leaf.kind == LeafKind::integer;
}

double as_number(const LeafValue& value) {
  return std::holds_alternative<std::int64_t>(value) ? double(std::get<std::int64_t>(value))
                                                     : std::get<double>(value);
}

LeafValue as_value(const Leaf& leaf, double number) {
  if (leaf.kind == LeafKind::integer) return std::int64_t(number);
  return number;
}

class FormReader {
 public:
  FormReader(const Target& target, const NodeEntry& entry, FormPlace place, Reading& reading)
      : target_(target), said_(entry.key.text), place_(place), reading_(reading) {}

  AxisForm read(const Node& node) {
    if (node.is_sequence()) {
      if (place_ == FormPlace::sample && is_interval(node)) {
        interval(node, Interval::Scale::linear);
      } else {
        list(node);
      }
    } else if (node.is_map()) {
      map(node);
    } else {
      wrong(node,
            said_ + ": " +
                (node.is_scalar() ? "'" + node.text + "'" : std::string(name_of(node.kind))) +
                " is neither a list nor a range",
            node.is_scalar() ? scalar_hint(node.text) : "write a list, as in '[1, 2, 4]'");
    }
    return std::move(form_);
  }

 private:
  void wrong(const Node& node, std::string what, std::string hint) {
    reading_.mistake(node.where, std::move(what), std::move(hint));
  }

  // A span in the words of another language ('1..8', '1-8', 'range(1, 8)') is no value that a list could have.
  std::string scalar_hint(const std::string& text) const {
    const bool numeric = target_.leaf != nullptr && is_numeric(*target_.leaf);
    const bool several =
        text.find("..") != std::string::npos || text.find_first_of(",-(:") != std::string::npos;
    if (numeric && several && !parse_quantity(text)) return range_hint();
    return "write '[" + text + "]', or set it under 'base'";
  }
  std::string range_hint() const {
    std::string ways =
        "write a list, '{linear: [FIRST, LAST], count: 5}' or '{geometric: [FIRST, "
        "LAST], count: 5}'";
    if (target_.leaf != nullptr && target_.leaf->kind == LeafKind::integer) {
      ways += ", or '{powers_of_two: [1, 8]}'";
    }
    return ways;
  }
  std::string form_hint(const std::string& key) const {
    if (target_.section != nullptr) return "an axis is a list: '" + said_ + ": [{...}, {...}]'";
    const std::vector<std::string> near = likely(key, kFormKeys);
    // No more than a slip of the keys that there are: others mean a range in the words of another tool.
    const bool slip = near.size() == 1 && edit_distance(key, near.front()) <= 2;
    return slip ? did_you_mean(near) : range_hint();
  }

  // In `of`, two numbers are the ends of an interval.
  bool is_interval(const Node& node) const {
    return target_.leaf != nullptr && is_numeric(*target_.leaf) && node.items.size() == 2 &&
           node.items[0].is_scalar() && node.items[1].is_scalar();
  }

  void map(const Node& node) {
    const Node* shape = nullptr;
    for (const NodeEntry& entry : node.entries) {
      const std::string& key = entry.key.text;
      if (std::find(kFormKeys.begin(), kFormKeys.end(), key) == kFormKeys.end()) {
        wrong(entry.key, said_ + ": unknown key '" + key + "'", form_hint(key));
      } else if (key == "when") {
        form_.when = &entry.value;
      } else if (key == "yields") {
        form_.yields = entry.value.text == "true";
        if (!form_.yields) {
          wrong(entry.value, said_ + ": 'yields' is '" + entry.value.text + "'",
                "write 'yields: true', or leave it out");
        }
      } else if (key != "count") {
        if (shape != nullptr) {
          wrong(entry.key, said_ + ": '" + key + "' beside another range", "keep one of them");
        }
        shape = &entry.value;
      }
    }
    if (shape == nullptr) {
      if (form_.when != nullptr || node.entries.empty()) {
        wrong(node, said_ + " has no values", "add 'values: [...]' or a range");
      }
      return;
    }
    if (const Node* values = node.find("values")) {
      if (values->is_sequence()) {
        list(*values);
      } else {
        wrong(*values, said_ + ": 'values' is " + std::string(name_of(values->kind)),
              "write a list, as in '[1, 2, 4]'");
      }
      no_count(node);
    } else if (const Node* powers = node.find("powers_of_two")) {
      powers_of_two(*powers);
      no_count(node);
    } else if (const Node* linear = node.find("linear")) {
      range(node, *linear, Interval::Scale::linear);
    } else if (const Node* geometric = node.find("geometric")) {
      range(node, *geometric, Interval::Scale::logarithmic);
    }
  }

  void no_count(const Node& node) {
    if (const Node* count = node.find("count")) {
      wrong(*count, said_ + ": 'count' has no meaning here",
            "it goes with 'linear' and 'geometric'; remove it");
    }
  }

  // ---- lists ---------------------------------------------------------------------------------

  void list(const Node& node) {
    if (node.items.empty()) {
      return wrong(node, said_ + ": the list is empty", "write at least one value");
    }
    if (std::int64_t(node.items.size()) > kMostValues) return too_many(node);
    for (const Node& item : node.items) add_item(item);
    if (place_ == FormPlace::axis) refuse_repeats(node);
  }

  void add_item(const Node& item) {
    const Node* written = &item;
    const Node* when = nullptr;
    std::string label = flow_text(item);
    if (item.is_map() && item.find("value") != nullptr) {
      written = item.find("value");
      label = flow_text(*written);
      for (const NodeEntry& entry : item.entries) {
        if (entry.key.text == "when") {
          when = &entry.value;
        } else if (entry.key.text == "label") {
          label = read_text(entry.value, "label", reading_).value_or("");
        } else if (entry.key.text != "value") {
          wrong(entry.key, said_ + ": unknown key '" + entry.key.text + "'",
                suggestion(entry.key.text, {"value", "when", "label"}, "known keys"));
        }
      }
    } else if (item.is_map() && target_.leaf != nullptr) {
      return wrong(item, said_ + ": a map without 'value'", "write '{value: ..., when: \"...\"}'");
    }
    std::vector<Edit> edits;
    if (target_.leaf == nullptr) {
      const std::vector<Assignment> fields =
          read_section(*target_.section, *written, said_, reading_);
      for (const Assignment& field : fields) refuse_elsewhere(field);
      edits = merged(fields);
    } else if (auto read = read_value(*target_.leaf, *written, said_, reading_)) {
      edits = leaf_edits(number_of(*target_.leaf), std::move(*read), written->where, reading_);
    }
    form_.add(std::move(label), edits, when);
  }

  // One path, one axis: what lies elsewhere moves beside it.
  void refuse_elsewhere(const Assignment& field) {
    const std::string& section = target_.section->path;
    if (field.path == section || field.path.starts_with(section + ".")) return;
    reading_.mistake(field.where, said_ + ": an axis over it cannot set " + field.path,
                     "move both together, as in 'zip: {" + section + ": [...], " + field.path +
                         ": [...]}', or set it under 'base'");
  }

  void refuse_repeats(const Node& node) {
    // In an order, since comparing every pair of a long list would take for ever. Numbers are the same however they are
    // written; two names may stand for the same device or model today.
    const bool by_label = target_.leaf == nullptr;
    const auto edits = [this](std::size_t i) {
      const Setting& setting = form_.settings[i];
      return std::span(form_.edits)
          .subspan(setting.first_edit, setting.last_edit - setting.first_edit);
    };
    const auto before = [&](std::size_t a, std::size_t b) {
      if (by_label && form_.labels[a] != form_.labels[b]) return form_.labels[a] < form_.labels[b];
      return std::ranges::lexicographical_compare(
          edits(a), edits(b), [](const Edit& x, const Edit& y) {
            return std::tie(x.leaf, x.value) < std::tie(y.leaf, y.value);
          });
    };
    std::set<std::size_t, decltype(before)> seen(before);
    std::unordered_set<std::string_view> labels;
    for (std::size_t i = 0; i < form_.settings.size() && i < node.items.size(); ++i) {
      const bool labelled = !labels.insert(form_.labels[i]).second;
      const auto [first, fresh] = seen.insert(i);
      if (form_.whens[i] != nullptr || edits(i).empty()) continue;
      if (fresh && labelled) {
        wrong(node.items[i], said_ + ": another value has the label '" + form_.labels[i] + "'",
              "rows are told apart by it; change one");
      }
      if (fresh) continue;
      const std::string &label = form_.labels[i], &before_it = form_.labels[*first];
      wrong(node.items[i],
            said_ + ": '" + label + "' is " +
                (label == before_it ? "listed twice" : "'" + before_it + "' again"),
            "every point would be computed twice; remove one");
    }
  }

  // ---- ranges --------------------------------------------------------------------------------

  static int number_of(const Leaf& leaf) { return int(&leaf - engine::leaf_table().leaves.data()); }

  void too_many(const Node& node) {
    wrong(node, said_ + ": more than " + std::to_string(kMostValues) + " values",
          "draw from so many with 'sample'");
  }

  struct Ends {
    double low = 0;
    double high = 0;
  };
  std::optional<Ends> ends(const Node& node, const std::string& form) {
    if (target_.leaf == nullptr || !is_numeric(*target_.leaf)) {
      wrong(node, said_ + ": '" + form + "' needs a number", "write a list of values");
      return std::nullopt;
    }
    if (!node.is_sequence() || node.items.size() != 2) {
      wrong(node, said_ + ": '" + form + "' takes two ends",
            "write them as a list, as in '" + form + ": [1, 256]'");
      return std::nullopt;
    }
    const auto low = read_value(*target_.leaf, node.items[0], said_, reading_);
    const auto high = read_value(*target_.leaf, node.items[1], said_, reading_);
    if (!low || !high) return std::nullopt;
    const Ends result{as_number(*low), as_number(*high)};
    if (target_.leaf->kind == LeafKind::integer &&
        std::max(std::abs(result.low), std::abs(result.high)) > 0x1p53) {
      wrong(node, said_ + ": a range of whole numbers cannot go beyond 2^53",
            "write a list of values");
      return std::nullopt;
    }
    if (form == "geometric" && !(result.low > 0 && result.high > 0)) {
      wrong(node, said_ + ": a geometric range cannot start or end at or below zero",
            "use 'linear', or ends above zero");
      return std::nullopt;
    }
    if (!std::isfinite(result.high - result.low) ||
        (form != "linear" && !std::isfinite(result.high / result.low))) {
      wrong(node, said_ + ": the ends of the range are too far apart", "write a list of values");
      return std::nullopt;
    }
    return result;
  }

  void range(const Node& node, const Node& shape, Interval::Scale scale) {
    const bool linear = scale == Interval::Scale::linear;
    const Node* count = node.find("count");
    if (count == nullptr && place_ == FormPlace::sample) return interval(shape, scale);
    const auto between = ends(shape, linear ? "linear" : "geometric");
    if (count == nullptr) {
      return wrong(node, said_ + ": a range without 'count'",
                   "add how many values, as in 'count: 8'");
    }
    const auto steps = read_count(*count, said_ + ".count", 2, reading_);
    if (!between || !steps) return;
    if (*steps > kMostValues) return too_many(*count);
    if (between->low == between->high) {
      return wrong(shape, said_ + ": both ends of the range are the same",
                   "write a list of one value");
    }
    std::vector<double> values;
    for (std::int64_t i = 0; i < *steps; ++i) {
      const double t = double(i) / double(*steps - 1);
      double value = linear ? between->low + t * (between->high - between->low)
                            : between->low * std::pow(between->high / between->low, t);
      value = rounded(value, 12);
      if (target_.leaf->kind == LeafKind::integer) value = std::round(value);
      if (i == 0) value = between->low;
      if (i == *steps - 1) value = between->high;
      if (values.empty() || values.back() != value) values.push_back(value);
    }
    add_numbers(values);
  }

  void powers_of_two(const Node& node) {
    const auto between = ends(node, "powers_of_two");
    if (!between) return;
    const Leaf& leaf = *target_.leaf;
    int exponent = 0;
    // A plain number is a power of two itself; a quantity is doubled from its first value.
    if (leaf.kind != LeafKind::quantity &&
        (between->low <= 0 || std::frexp(between->low, &exponent) != 0.5)) {
      return wrong(node.items[0], said_ + ": '" + node.items[0].text + "' is not a power of two",
                   "write 1, 2, 4, ..., or use 'geometric'");
    }
    const double ratio = between->high / between->low;
    if (!(between->low > 0) || !(ratio >= 1) || std::frexp(ratio, &exponent) != 0.5) {
      return wrong(node.items[1],
                   said_ + ": doubling '" + node.items[0].text + "' never gives '" +
                       node.items[1].text + "'",
                   "end the range on a power of two times its start, or use 'geometric'");
    }
    std::vector<double> values;
    for (double value = between->low; value <= between->high; value *= 2) values.push_back(value);
    add_numbers(values);
  }

  void add_numbers(const std::vector<double>& values) {
    const Leaf& leaf = *target_.leaf;
    // Six digits tell neighbours apart unless the range is very fine.
    std::set<std::string> distinct;
    for (const double value : values)
      distinct.insert(value_text(leaf, as_value(leaf, short_of(value))));
    const bool fine = distinct.size() < values.size();
    for (const double value : values) {
      form_.add(value_text(leaf, as_value(leaf, fine ? value : short_of(value))),
                {{number_of(leaf), as_value(leaf, value)}});
    }
  }
  double short_of(double value) const {
    return target_.leaf->kind == LeafKind::integer ? value : rounded(value, 6);
  }

  void interval(const Node& node, Interval::Scale scale) {
    const auto between = ends(node, scale == Interval::Scale::linear ? "linear" : "geometric");
    if (!between) return;
    if (!(between->low < between->high)) {
      return wrong(node, said_ + ": the interval ends before it starts",
                   "write the lower end first, or '{values: [...]}' to draw from two values");
    }
    form_.interval = Interval{number_of(*target_.leaf), between->low, between->high, scale};
  }

  const Target& target_;
  std::string said_;
  FormPlace place_;
  Reading& reading_;
  AxisForm form_;
};

}  // namespace

void AxisForm::add(std::string label, const std::vector<Edit>& made, const Node* only_when) {
  const auto first = std::uint32_t(edits.size());
  edits.insert(edits.end(), made.begin(), made.end());
  settings.push_back({.first_edit = first, .last_edit = std::uint32_t(edits.size())});
  labels.push_back(std::move(label));
  whens.push_back(only_when);
}

AxisForm read_form(const Target& target, const NodeEntry& entry, FormPlace place,
                   Reading& reading) {
  return FormReader(target, entry, place, reading).read(entry.value);
}

}  // namespace sweep
