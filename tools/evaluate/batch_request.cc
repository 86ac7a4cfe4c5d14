#include "tools/evaluate/batch_request.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "sweep/input/limits.h"

namespace tools {
namespace {

using engine::Location;
using engine::Mistake;
using nlohmann::json;
using sweep::Node;

constexpr std::string_view kScenario = "scenario ";

Location place_of(std::size_t scenario) {
  return {std::string(kScenario) + std::to_string(scenario), 0, 0};
}

// As a spec would say it. JSON's strings are quoted scalars.
Node node_of(const json& value, const Location& where) {
  Node node;
  node.where = where;
  if (value.is_object()) {
    node.kind = Node::Kind::map;
    for (const auto& [key, inner] : value.items()) {
      node.entries.push_back({.key = {.kind = Node::Kind::scalar, .text = key, .where = where},
                              .value = node_of(inner, where)});
    }
  } else if (value.is_array()) {
    node.kind = Node::Kind::sequence;
    for (const json& inner : value) node.items.push_back(node_of(inner, where));
  } else if (!value.is_null()) {
    node.kind = Node::Kind::scalar;
    node.quoted = value.is_string();
    node.text = value.is_string() ? value.get_ref<const std::string&>() : value.dump();
  }
  return node;
}

// Whether there are no more lists and maps inside one another than a file may have.
bool is_shallow(const json& value, std::int64_t levels) {
  if (!value.is_structured()) return true;
  if (levels == 0) return false;
  for (const json& inner : value) {
    if (!is_shallow(inner, levels - 1)) return false;
  }
  return true;
}

// Each value once, and which of them every scenario has.
class DistinctValues {
 public:
  std::uint32_t place(const json& value, std::size_t scenario) {
    // Scenarios that follow one another are often alike.
    if (last_ != nullptr && *last_ == value && last_->type() == value.type()) return last_place_;
    last_ = &value;
    last_place_ =
        value.is_number_integer() ? known(integers_, value.get<std::int64_t>(), value, scenario)
        : value.is_string() ? known(texts_, value.get_ref<const std::string&>(), value, scenario)
                            : known(others_, value.dump(), value, scenario);
    return last_place_;
  }
  std::vector<Node> take() { return std::move(values_); }

 private:
  template <class Key>
  std::uint32_t known(std::unordered_map<Key, std::uint32_t>& places, const Key& key,
                      const json& value, std::size_t scenario) {
    const auto [at, fresh] = places.try_emplace(key, std::uint32_t(values_.size()));
    if (fresh) values_.push_back(node_of(value, place_of(scenario)));
    return at->second;
  }

  const json* last_ = nullptr;
  std::uint32_t last_place_ = 0;
  std::unordered_map<std::int64_t, std::uint32_t> integers_;
  std::unordered_map<std::string, std::uint32_t> texts_;
  std::unordered_map<std::string, std::uint32_t> others_;
  std::vector<Node> values_;
};

sweep::BatchField field_of(const std::string& path, const json& values) {
  sweep::BatchField field;
  const Location first = place_of(0);
  DistinctValues distinct;
  field.order.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    field.order.push_back(distinct.place(values[i], i));
  field.path_and_values.key = {.kind = Node::Kind::scalar, .text = path, .where = first};
  field.path_and_values.value = {
      .kind = Node::Kind::sequence, .where = first, .items = distinct.take()};
  return field;
}

Mistake wrong(std::string what, std::string hint = "") {
  return {{"request", 0, 0}, std::move(what), std::move(hint)};
}

constexpr const char* kForm =
    R"(send one line: {"base": {"task": "step", ...}, "set": {"step.batch": [1, 2], ...}})";

std::vector<Mistake> read_fields(const json& set, BatchRequest& request) {
  std::vector<Mistake> mistakes;
  if (!set.is_object()) return {wrong("'set' is not a map of paths and their values", kForm)};
  for (const auto& [path, values] : set.items()) {
    if (!values.is_array() || values.empty()) {
      mistakes.push_back(
          wrong("set: '" + path + "' is not a list with a value for each scenario", kForm));
    } else if (request.fields.empty() || values.size() == request.scenarios) {
      request.scenarios = values.size();
      request.fields.push_back(field_of(path, values));
    } else {
      mistakes.push_back(wrong("set: '" + path + "' has " + std::to_string(values.size()) +
                               " values, others have " + std::to_string(request.scenarios)));
    }
  }
  return mistakes;
}

}  // namespace

engine::Result<BatchRequest> parse_request(std::string_view line) {
  const json request = json::parse(line, nullptr, false);
  if (!request.is_object()) return wrong("this is not a JSON object", kForm);
  if (!is_shallow(request, sweep::input_limits().depth))
    return wrong("too many lists and maps inside one another");
  std::vector<Mistake> mistakes;
  BatchRequest made;
  made.base = "{}";
  for (const auto& [key, value] : request.items()) {
    if (key == "base" && value.is_object()) {
      made.base = value.dump(-1, ' ', false, json::error_handler_t::replace);
    } else if (key == "set") {
      std::vector<Mistake> found = read_fields(value, made);
      std::ranges::move(found, std::back_inserter(mistakes));
    } else if (key == "columns" && value.is_array()) {
      for (const json& name : value) {
        if (name.is_string()) {
          made.columns.push_back(name.get<std::string>());
        } else {
          mistakes.push_back(wrong("columns: " + name.dump() + " is not a name"));
        }
      }
    } else {
      mistakes.push_back(
          wrong("'" + key + "' is no part of a request, or not of this kind", kForm));
    }
  }
  if (!mistakes.empty()) return mistakes;
  return made;
}

std::int64_t scenario_of(const Mistake& mistake) {
  const std::string& place = mistake.where.file;
  std::int64_t number = -1;
  if (place.starts_with(kScenario)) {
    std::from_chars(place.data() + kScenario.size(), place.data() + place.size(), number);
  }
  return number;
}

}  // namespace tools
