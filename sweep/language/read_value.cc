#include "sweep/language/read_value.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <vector>

#include "sweep/input/utf8.h"
#include "sweep/language/load_spec.h"
#include "sweep/language/other_words.h"
#include "sweep/language/parse_quantity.h"
#include "sweep/language/suggest.h"

namespace sweep {
namespace {

using engine::Leaf;
using engine::LeafKind;
using engine::LeafValue;

constexpr const char* kBeyond = "it is too large, or too near to zero, for a number here";

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

// "4k", "15T", "15 trillion": numbers have no suffixes here, as a thousand may be 1024. What to write for one that has.
std::string advice_on_suffix(std::string_view text) {
  struct Suffix {
    std::string_view letter, word;
    int zeros;
  };
  constexpr Suffix suffixes[] = {{"k", "thousand", 3}, {"K", "thousand", 3}, {"M", "million", 6},
                                 {"B", "billion", 9},  {"G", "billion", 9},  {"T", "trillion", 12}};
  const auto parts = split_quantity(text);
  if (!parts) return {};
  for (const Suffix& suffix : suffixes) {
    if (parts->unit != suffix.letter && parts->unit != suffix.word) continue;
    const auto value = parse_number(parts->number + "e" + std::to_string(suffix.zeros));
    if (!value) return {};
    const bool thousands = suffix.zeros == 3;
    return "numbers have no suffix: write '" + format_number(*value) + "'" +
           (thousands ? ", or '" + format_number(*value / 1000 * 1024) + "'" : "");
  }
  return {};
}

std::optional<double> read_quantity(const Leaf& leaf, const Node& node, std::string_view said,
                                    Reading& reading) {
  const std::string advice =
      "write a number and its unit, as in '" + std::string(example_of(leaf.unit)) + "'";
  const std::string what =
      std::string(said) + ": " + in_quotes(node.text) + " is not a quantity in " + leaf.unit.symbol;
  const auto parsed = parse_quantity(node.text);
  if (parsed && parsed->unit.symbol == leaf.unit.symbol) return parsed->value;
  const auto parts = split_quantity(node.text);
  std::string hint = advice;
  if (parsed) {
    hint =
        in_quotes(parts->unit) + " measures " + std::string(parsed->unit.measure) + "; " + advice;
  } else if (parts && find_unit(parts->unit)) {
    hint = kBeyond;
  } else if (parts && !parts->unit.empty()) {
    const std::vector<std::string> units = units_of(leaf.unit);
    hint = in_quotes(parts->unit) + " is not a unit; " + advice;
    if (units.size() > 1) hint += "; units: " + listing(units);
  }
  reading.mistake(node.where, what, hint);
  return std::nullopt;
}

std::optional<LeafValue> read_name(const Leaf& leaf, const Node& node, std::string_view said,
                                   Reading& reading) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < leaf.names.size(); ++i) {
    if (leaf.names[i] == node.text) return std::int64_t(i);
    names.emplace_back(leaf.names[i]);
  }
  const std::string what = std::string(said) + ": unknown name " + in_quotes(node.text);
  const std::string_view advice = advice_on_word(leaf.path + ": " + node.text);
  if (!advice.empty()) {
    reading.mistake(node.where, what, std::string(advice));
    return std::nullopt;
  }
  const std::string near = nearest(node.text, names);
  reading.mistake(node.where, what,
                  (near.empty() ? "" : "did you mean " + in_quotes(near) + "? ") +
                      "one of: " + listing(names, names.size()));
  return std::nullopt;
}

std::optional<LeafValue> read_text_leaf(const Leaf& leaf, const Node& node, const std::string& said,
                                        Reading& reading) {
  if (std::int64_t(node.text.size()) > reading.limits.text_bytes) {
    reading.mistakes.add(beyond_limit(
        node.where, said + ": more than " + limit_text(reading.limits.text_bytes), "text_bytes"));
    return std::nullopt;
  }
  if (!leaf.range.file || node.text.empty()) return node.text;
  std::string path =
      std::filesystem::absolute(relative_to(node.where, node.text)).lexically_normal().string();
  if (is_utf8(path)) return path;
  reading.mistake(node.where, said + ": the path '" + path + "' is not UTF-8 text",
                  "rename the folder: rows carry the path, and readers of Parquet want UTF-8");
  return std::nullopt;
}

// Numbers as a list, or as one text with spaces between them: how tables and resolved sweeps have it.
std::vector<Node> listed(const Node& node) {
  if (node.is_sequence()) return node.items;
  std::vector<Node> items;
  std::size_t end = 0;
  for (std::size_t at = 0; (at = node.text.find_first_not_of(' ', end)) != std::string::npos;) {
    end = std::min(node.text.find(' ', at), node.text.size());
    items.push_back(node);
    items.back().text = node.text.substr(at, end - at);
  }
  return items;
}

std::optional<LeafValue> read_list(const Leaf& leaf, const Node& node, const std::string& said,
                                   Reading& reading) {
  constexpr std::size_t most = 64;
  const std::vector<Node> items = listed(node);
  if (node.is_map() || items.size() > most) {
    reading.mistake(
        node.where,
        said + (node.is_map() ? ": a map" : ": more than 64 values") + " is not a list of numbers",
        "write one number, or a list as in '[0.8, 0.7]'");
    return std::nullopt;
  }
  std::string text;
  bool sound = true;
  for (const Node& item : items) {
    const auto value = item.is_scalar() ? parse_number(item.text) : std::nullopt;
    if (!value) {
      const std::string what =
          item.is_scalar() ? in_quotes(item.text) : std::string(name_of(item.kind));
      reading.mistake(item.where, said + ": " + what + " is not a number",
                      "write one number, or a list as in '[0.8, 0.7]'");
    }
    sound = sound && value && check_range(leaf, *value, item, said, reading);
    if (sound) text += (text.empty() ? "" : " ") + format_number(*value);
  }
  return sound ? std::optional<LeafValue>(text) : std::nullopt;
}

// Phrases as a list, or as one text with commas between them: how tables and resolved sweeps have it.
std::optional<LeafValue> read_phrases(const Leaf& leaf, const Node& node, const std::string& said,
                                      Reading& reading) {
  Node whole = node;                     // all of it as one text
  std::vector<engine::Location> places;  // of each phrase
  whole.text.clear();
  for (const Node& item : node.is_sequence() ? node.items : std::vector<Node>{node}) {
    if (!item.is_scalar()) {
      reading.mistake(item.where, said + ": " + std::string(name_of(item.kind)) + " is not a text",
                      "write a list of texts");
      return std::nullopt;
    }
    whole.text += (places.empty() ? "" : ", ") + item.text;
    const auto commas = std::ranges::count(item.text, ',');
    places.insert(places.end(), std::size_t(commas) + 1, item.where);
  }
  auto value = read_text_leaf(leaf, whole, said, reading);
  if (!value || whole.text.empty()) return value;
  if (auto wrong = leaf.range.phrases(whole.text)) {
    reading.mistake(places[wrong->phrase], said + ": " + wrong->what, wrong->hint);
    return std::nullopt;
  }
  return value;
}

std::string bound_text(const Leaf& leaf, double bound) {
  return leaf.kind == LeafKind::quantity ? format_quantity(bound, leaf.unit) : format_number(bound);
}

// For a value above the range, which may have no upper end but the one that every number has.
std::string upper_end_text(const Leaf& leaf) {
  const std::string text = range_text(leaf);
  return leaf.range.high < engine::most_of(leaf.kind)
             ? text
             : "at most " + bound_text(leaf, leaf.range.high);
}

}  // namespace

std::string range_text(const Leaf& leaf) {
  const auto text = [&leaf](double bound) { return bound_text(leaf, bound); };
  const bool open_low = leaf.range.low == std::numeric_limits<double>::denorm_min();
  const std::string low = open_low ? text(0) : text(leaf.range.low);
  // The ends that every number has go without saying.
  const bool has_low = leaf.range.low > -engine::most_of(leaf.kind);
  const bool has_high = leaf.range.high < engine::most_of(leaf.kind);
  if (has_low && has_high) return "between " + low + " and " + text(leaf.range.high);
  if (has_low) return (open_low ? "above " : "at least ") + low;
  if (has_high) return "at most " + text(leaf.range.high);
  return "";
}

bool check_range(const Leaf& leaf, double value, const Node& node, std::string_view said,
                 Reading& reading) {
  const bool is_word = leaf.range.word != nullptr && value == leaf.range.word_value;
  if (is_word || (value >= leaf.range.low && value <= leaf.range.high)) return true;
  const std::string said_range = value > leaf.range.high ? upper_end_text(leaf) : range_text(leaf);
  reading.mistake(node.where, std::string(said) + ": '" + node.text + "' is out of range",
                  "it must be " + said_range);
  return false;
}

std::optional<LeafValue> read_value(const Leaf& leaf, const Node& node, std::string_view said,
                                    Reading& reading) {
  const std::string name(said);
  if (node.is_null()) {
    reading.mistake(node.where, name + " has no value", "write one, or remove the key");
    return std::nullopt;
  }
  if (leaf.range.list) return read_list(leaf, node, name, reading);
  if (leaf.range.phrases != nullptr) return read_phrases(leaf, node, name, reading);
  if (!node.is_scalar()) {
    reading.mistake(node.where, name + ": " + std::string(name_of(node.kind)) + " is not a value",
                    node.is_sequence() ? "one value goes here; a list of values goes under 'axes'"
                                       : name + " is a single value, without parts");
    return std::nullopt;
  }
  // "auto", "none": words that some numbers have for one value.
  if (leaf.range.word != nullptr && node.text == leaf.range.word) {
    if (leaf.kind == LeafKind::integer) return std::int64_t(leaf.range.word_value);
    return leaf.range.word_value;
  }
  switch (leaf.kind) {
    case LeafKind::quantity: {
      const auto value = read_quantity(leaf, node, said, reading);
      if (!value || !check_range(leaf, *value, node, said, reading)) return std::nullopt;
      return *value;
    }
    case LeafKind::number: {
      const auto value = parse_number(node.text);
      if (!value) {
        const std::string suffix = advice_on_suffix(node.text);
        reading.mistake(node.where, name + ": " + in_quotes(node.text) + " is not a number",
                        is_digits(node.text) ? kBeyond
                        : suffix.empty()     ? "write a plain number, as in '0.9'"
                                             : suffix);
        return std::nullopt;
      }
      if (!check_range(leaf, *value, node, said, reading)) return std::nullopt;
      return *value;
    }
    case LeafKind::integer: {
      const auto value = parse_integer(node.text);
      if (!value) {
        const bool fraction = node.text.find('.') != std::string::npos ||
                              node.text.find("e-") != std::string::npos ||
                              node.text.find("E-") != std::string::npos;
        const bool large = is_digits(node.text) && !fraction;
        const std::string suffix = advice_on_suffix(node.text);
        reading.mistake(node.where, name + ": " + in_quotes(node.text) + " is not a whole number",
                        large            ? "it is too large for one"
                        : suffix.empty() ? "write digits only, as in '64' or '1_000_000'"
                                         : suffix);
        return std::nullopt;
      }
      if (!check_range(leaf, double(*value), node, said, reading)) return std::nullopt;
      return *value;
    }
    case LeafKind::boolean:
      if (node.text == "true" || node.text == "false") return node.text == "true";
      reading.mistake(node.where, name + ": " + in_quotes(node.text) + " is neither true nor false",
                      "write 'true' or 'false'");
      return std::nullopt;
    case LeafKind::enumeration:
      return read_name(leaf, node, said, reading);
    case LeafKind::text:
      return read_text_leaf(leaf, node, name, reading);
  }
  return std::nullopt;
}

std::string value_text(const Leaf& leaf, const LeafValue& value) {
  switch (leaf.kind) {
    case LeafKind::quantity:
      return format_quantity(std::get<double>(value), leaf.unit);
    case LeafKind::number:
      return format_number(std::get<double>(value));
    case LeafKind::integer:
      return std::to_string(std::get<std::int64_t>(value));
    case LeafKind::boolean:
      return std::get<bool>(value) ? "true" : "false";
    case LeafKind::enumeration:
      return std::string(leaf.names[std::size_t(std::get<std::int64_t>(value))]);
    case LeafKind::text:
      return std::get<std::string>(value);
  }
  return "";
}

std::optional<std::int64_t> read_count(const Node& node, std::string_view said, std::int64_t low,
                                       Reading& reading) {
  const auto value = node.is_scalar() ? parse_integer(node.text) : std::nullopt;
  if (value && *value >= low) return value;
  const std::string written =
      node.is_scalar() ? in_quotes(node.text) : std::string(name_of(node.kind));
  reading.mistake(
      node.where,
      std::string(said) + ": " + written + (value ? " is too small" : " is not a whole number"),
      "write a whole number, at least " + std::to_string(low));
  return std::nullopt;
}

std::optional<std::string> read_text(const Node& node, std::string_view said, Reading& reading) {
  if (node.is_scalar()) return node.text;
  reading.mistake(node.where,
                  std::string(said) + ": " + std::string(name_of(node.kind)) + " is not a text",
                  "write a single value");
  return std::nullopt;
}

}  // namespace sweep
