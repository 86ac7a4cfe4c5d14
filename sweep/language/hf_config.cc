// config.json is read by the YAML reader: JSON is YAML, and every mistake then has its line.
#include "sweep/language/hf_config.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>

#include "sweep/language/hf_fields.h"
#include "sweep/language/hub_name.h"
#include "sweep/language/parse_quantity.h"
#include "sweep/language/suggest.h"
#include "sweep/language/yaml_file.h"

namespace sweep {

using engine::Mistake;
using engine::ModelSpec;

bool HfFields::has(std::string_view key) const {
  const Node* node = map_.find(key);
  return node != nullptr && !node->is_null();
}

std::int64_t HfFields::read_integer(std::string_view key, const Node& node) const {
  const auto value = node.is_scalar() ? parse_integer(node.text) : std::nullopt;
  if (!value || *value < 0) {
    mistakes_.push_back(
        {node.where, std::string(key) + ": '" + flow_text(node) + "' is not a whole number", ""});
    return 1;
  }
  return *value;
}

std::int64_t HfFields::integer(std::string_view key) const {
  if (has(key)) return read_integer(key, *map_.find(key));
  mistakes_.push_back(
      {map_.where, "the key '" + std::string(key) + "' is missing", architecture_ + " needs it"});
  return 1;
}

std::int64_t HfFields::integer(std::string_view key, std::int64_t otherwise) const {
  return has(key) ? read_integer(key, *map_.find(key)) : otherwise;
}

bool HfFields::boolean(std::string_view key, bool otherwise) const {
  if (!has(key)) return otherwise;
  const Node& node = *map_.find(key);
  if (node.is_scalar() && (node.text == "true" || node.text == "false")) return node.text == "true";
  mistakes_.push_back(
      {node.where, std::string(key) + ": '" + flow_text(node) + "' is neither true nor false", ""});
  return otherwise;
}

double HfFields::share(std::string_view key, double otherwise) const {
  if (!has(key)) return otherwise;
  const Node& node = *map_.find(key);
  const auto value = node.is_scalar() ? parse_number(node.text) : std::nullopt;
  if (value && *value >= 0 && *value <= 1) return *value;
  mistakes_.push_back(
      {node.where, std::string(key) + ": '" + flow_text(node) + "' is no number from 0 to 1", ""});
  return otherwise;
}

std::int64_t HfFields::entries(std::string_view list) const {
  const Node* node = map_.find(list);
  return node != nullptr && node->is_sequence() ? std::int64_t(node->items.size()) : 0;
}

void HfFields::refuse(std::string_view key, std::string why) const {
  const Node* node = map_.find(key);
  mistakes_.push_back({node != nullptr ? node->where : map_.where,
                       std::string(key) + ": " + std::move(why),
                       "write the model's fields yourself, as in specs/models"});
}

HfFields HfFields::inside(std::string_view key) const {
  const Node* node = map_.find(key);
  // Some files of multimodal models keep the text model's keys at the top.
  if (node == nullptr || !node->is_map()) return *this;
  return {*node, architecture_, mistakes_};
}

std::vector<std::string> hf_architectures() {
  std::vector<std::string> names;
  for (const HfArchitecture& architecture : hf_table()) names.emplace_back(architecture.name);
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

// A field out of its range would otherwise surface as nonsense in some formula.
template <class Section>
void check_fields(const Section& section, const std::string& prefix, const Node& root,
                  std::vector<Mistake>& mistakes) {
  Section::fields(section, [&](std::string_view name, const auto& value, std::string_view,
                               engine::Range range) {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, engine::MoeSpec> ||
                  std::is_same_v<Value, engine::MlaSpec> ||
                  std::is_same_v<Value, engine::ScanSpec>) {
      check_fields(value, prefix + std::string(name) + ".", root, mistakes);
    }
    if constexpr (std::is_same_v<Value, std::int64_t>) {
      if (double(value) < range.low || double(value) > std::min(range.high, engine::kMostCount)) {
        mistakes.push_back({root.where,
                            "the model's '" + prefix + std::string(name) + "' comes out as " +
                                std::to_string(value),
                            "check the file"});
      }
    }
  });
}

// What a file calls a kind of model ("granitemoehybrid", "qwen3_moe") is the name of its class in small letters.
bool is_of_type(std::string_view architecture, std::string_view type) {
  std::string name(architecture), wanted;
  for (char& c : name) c = char(std::tolower(c));
  std::erase(name, '_');
  std::ranges::remove_copy(type, std::back_inserter(wanted), '_');
  return name == wanted + "forcausallm" || name == wanted + "lmheadmodel" ||
         name == wanted + "forconditionalgeneration";
}

// The first of `architectures`; files of converted models may have a `model_type` alone.
std::optional<Node> architecture_in(const Node& root) {
  const Node* names = root.find("architectures");
  if (names != nullptr && names->is_sequence() && !names->items.empty()) return names->items[0];
  const Node* type = root.find("model_type");
  if (type == nullptr || !type->is_scalar() || type->text.empty()) return std::nullopt;
  Node named = *type;
  for (const HfArchitecture& entry : hf_table()) {
    if (is_of_type(entry.name, type->text)) named.text = std::string(entry.name);
  }
  return named;
}

}  // namespace

engine::Result<HfModel> parse_hf_config(std::string_view text, const std::string& file_name) {
  const engine::Result<Node> root = read_yaml(text, file_name);
  if (!root) {
    std::vector<Mistake> mistakes = root.mistakes();
    for (Mistake& mistake : mistakes) {
      if (mistake.what.starts_with("this is not YAML")) mistake.what.replace(12, 4, "JSON");
    }
    return mistakes;
  }
  if (!root->is_map()) {
    return Mistake{root->where,
                   "a config.json is an object, not " + std::string(name_of(root->kind)), ""};
  }
  const std::optional<Node> written = architecture_in(*root);
  if (!written) {
    return Mistake{root->where, "the key 'architectures' is missing",
                   "it says how to read the others; is this a model's config.json?"};
  }
  const std::vector<HfArchitecture>& table = hf_table();
  const auto known = std::ranges::find(table, written->text, &HfArchitecture::name);
  if (known == table.end()) {
    if (const HfUnmodelled* unmodelled = hf_unmodelled(written->text)) {
      return Mistake{written->where,
                     "architecture '" + written->text + "' is not modelled: it has " +
                         std::string(unmodelled->has),
                     std::string(unmodelled->hint)};
    }
    const std::vector<std::string> all = hf_architectures();
    return Mistake{written->where, "unknown architecture '" + written->text + "'",
                   "known ones: " + listing(all, all.size()) +
                       "; or write the model's fields yourself, as in specs/models"};
  }
  std::vector<Mistake> mistakes;
  ModelSpec model;
  known->read(HfFields(*root, written->text, mistakes), model);
  if (mistakes.empty()) check_fields(model, "", *root, mistakes);
  if (!mistakes.empty()) return mistakes;
  const std::filesystem::path path(file_name);
  model.name = path.stem() == "config" && path.has_parent_path()
                   ? path.parent_path().filename().string()
                   : path.stem().string();
  model.hub = hub_name_of_file(path);
  HfQuantization formats = read_hf_quantization(*root, model.layers);
  return HfModel{std::move(model), std::move(formats)};
}

engine::Result<HfModel> read_hf_config(const std::filesystem::path& file) {
  const engine::Result<std::string> text = read_text_file(file);
  if (!text) return text.mistakes();
  return parse_hf_config(*text, file.string());
}

}  // namespace sweep
