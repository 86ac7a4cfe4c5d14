#include "sweep/language/hf_quantization.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "sweep/language/parse_quantity.h"
#include "sweep/language/suggest.h"

namespace sweep {
namespace {

using engine::Dtype;
using engine::QuantScope;
using Matrices = HfQuantization::Matrices;

// A scale a row of weights, or fewer: what formats call per channel and per tensor.
constexpr std::int64_t kWholeRow = 4096;

std::string_view text_of(const Node& map, std::string_view key) {
  const Node* node = map.find(key);
  return node != nullptr && node->is_scalar() ? std::string_view(node->text) : std::string_view{};
}

std::int64_t integer_of(const Node& map, std::string_view key, std::int64_t otherwise) {
  const auto value = parse_integer(std::string(text_of(map, key)));
  return value.value_or(otherwise);
}

// -1 and 0 stand for a scale a row.
std::int64_t group_of(const Node& map, std::string_view key, std::int64_t otherwise) {
  const std::int64_t group = integer_of(map, key, otherwise);
  return group > 0 ? std::min(group, kWholeRow) : kWholeRow;
}

std::optional<Dtype> format_of(std::string_view type, std::int64_t bits) {
  const bool floating = type == "float";
  if (bits == 8) return floating ? Dtype::fp8 : Dtype::int8;
  if (bits == 4) return floating ? Dtype::fp4 : Dtype::int4;
  if (bits == 16) return Dtype::bf16;
  return std::nullopt;
}

// Weights alone are narrow; arithmetic is in 16 bits.
std::optional<Matrices> weights_only(std::int64_t bits, std::int64_t group) {
  const auto weights = format_of("int", bits);
  if (!weights) return std::nullopt;
  return Matrices{.weights = *weights, .group = group};
}

std::optional<Matrices> read_fp8(const Node& map) {
  const Node* block = map.find("weight_block_size");
  std::int64_t group = kWholeRow;
  if (block != nullptr && block->is_sequence() && !block->items.empty()) {
    group = std::max<std::int64_t>(1, parse_integer(block->items.back().text).value_or(128));
  }
  return Matrices{.weights = Dtype::fp8, .activations = Dtype::fp8, .group = group};
}

std::optional<Matrices> read_gptq(const Node& map) {
  return weights_only(integer_of(map, "bits", 4), group_of(map, "group_size", 128));
}

std::optional<Matrices> read_awq(const Node& map) {
  return weights_only(integer_of(map, "bits", integer_of(map, "w_bit", 4)),
                      group_of(map, "group_size", group_of(map, "q_group_size", 128)));
}

// Files of this kind keep attention, router and embeddings in 16 bits.
std::optional<Matrices> read_mxfp4(const Node&) {
  return Matrices{.weights = Dtype::fp4, .group = 32, .scope = QuantScope::experts};
}

std::optional<Matrices> read_bitsandbytes(const Node& map) {
  if (text_of(map, "load_in_4bit") == "true" || text_of(map, "_load_in_4bit") == "true") {
    return Matrices{.weights = Dtype::int4, .group = 64};
  }
  return Matrices{.weights = Dtype::int8, .activations = Dtype::int8, .group = kWholeRow};
}

// The first group of layers speaks for all; its input_activations are null where weights alone are narrow.
std::optional<Matrices> read_compressed_tensors(const Node& map) {
  const Node* groups = map.find("config_groups");
  if (groups == nullptr || !groups->is_map() || groups->entries.empty()) return std::nullopt;
  const Node& group = groups->entries.front().value;
  const Node* weights = group.find("weights");
  if (weights == nullptr || !weights->is_map()) return std::nullopt;
  const auto format = format_of(text_of(*weights, "type"), integer_of(*weights, "num_bits", 0));
  if (!format) return std::nullopt;
  Matrices matrices{.weights = *format, .group = group_of(*weights, "group_size", kWholeRow)};
  const Node* inputs = group.find("input_activations");
  if (inputs != nullptr && inputs->is_map()) {
    const auto input = format_of(text_of(*inputs, "type"), integer_of(*inputs, "num_bits", 0));
    if (!input) return std::nullopt;
    matrices.activations = *input;
  }
  return matrices;
}

std::optional<Matrices> read_modelopt(const Node& map) {
  const std::string_view algorithm = text_of(map, "quant_algo");
  if (algorithm == "FP8") {
    return Matrices{.weights = Dtype::fp8, .activations = Dtype::fp8, .group = kWholeRow};
  }
  if (algorithm == "NVFP4") {
    return Matrices{
        .weights = Dtype::fp4, .activations = Dtype::fp4, .group = group_of(map, "group_size", 16)};
  }
  if (algorithm == "W4A16_AWQ") return weights_only(4, group_of(map, "group_size", 128));
  if (algorithm == "W8A16") return weights_only(8, kWholeRow);
  return std::nullopt;
}

struct Method {
  std::string_view name;
  std::optional<Matrices> (*read)(const Node& map);
};
constexpr Method kMethods[] = {
    {"fp8", read_fp8},
    {"fbgemm_fp8", read_fp8},
    {"gptq", read_gptq},
    {"awq", read_awq},
    {"compressed-tensors", read_compressed_tensors},
    {"mxfp4", read_mxfp4},
    {"modelopt", read_modelopt},
    {"modelopt_fp4", read_modelopt},
    {"bitsandbytes", read_bitsandbytes},
};

std::optional<Dtype> read_kv(const Node& map) {
  // modelopt has a name for it, compressed-tensors a description.
  if (const std::string_view name = text_of(map, "kv_cache_quant_algo"); !name.empty()) {
    if (name == "FP8") return Dtype::fp8;
    if (name == "INT8") return Dtype::int8;
    if (name == "NVFP4") return Dtype::fp4;
  }
  const Node* scheme = map.find("kv_cache_scheme");
  if (scheme == nullptr || !scheme->is_map()) return std::nullopt;
  return format_of(text_of(*scheme, "type"), integer_of(*scheme, "num_bits", 0));
}

// Names of matrices that a list of them speaks of: paths, beginnings of paths, or patterns.
struct Names {
  std::vector<std::string_view> all;

  template <class Is>
  bool any(Is&& is) const {
    return std::ranges::any_of(all, is);
  }
};

void add_names(const Node* list, Names& names) {
  if (list == nullptr || !list->is_sequence()) return;
  for (const Node& name : list->items) {
    if (name.is_scalar()) names.all.push_back(name.text);
  }
}

bool has(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

// Where attention's name in a path ends; npos: it has none, is a norm's, or an encoder's of images, which is no part of the model.
std::size_t after_attention(std::string_view name) {
  if (has(name, "norm") || has(name, "vis") || has(name, "indexer")) return std::string_view::npos;
  for (const std::string_view word : {"attn", "attention"}) {
    if (const std::size_t at = name.rfind(word); at != std::string_view::npos) {
      return at + word.size();
    }
  }
  return std::string_view::npos;
}

// All of its projections, or one of those that hold most of its weights.
bool names_attention(std::string_view name) {
  const std::size_t end = after_attention(name);
  if (end == std::string_view::npos) return false;
  const std::string_view part = name.substr(end);
  const bool letters = std::ranges::any_of(part, [](char c) { return c >= 'a' && c <= 'z'; });
  return !letters || has(part, "q_") || has(part, "qkv") || has(part, "o_proj") || has(part, "out");
}

// What every token visits beside routed experts. Their gates and routers have 16 bits anyway.
bool names_mlps(std::string_view name) {
  return (has(name, "shared_expert") && !has(name, "expert_gate")) || has(name, "shared_mlp");
}

// "model.layers.12.self_attn": 12; a pattern, or a name without a number: nothing.
std::optional<std::int64_t> layer_of(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  const std::size_t at = name.find(kLayers);
  if (at == std::string_view::npos) return std::nullopt;
  name.remove_prefix(at + kLayers.size());
  return parse_integer(std::string(name.substr(0, name.find('.'))));
}

// Whether attention of most layers is named. Some files name the first and the last layer alone, to leave them wide.
bool name_attention(const Names& names, std::int64_t layers) {
  std::vector<std::int64_t> named;
  for (const std::string_view name : names.all) {
    if (!names_attention(name)) continue;
    const auto layer = layer_of(name);
    if (!layer) return true;
    if (std::ranges::find(named, *layer) == named.end()) named.push_back(*layer);
  }
  return !named.empty() && 2 * std::int64_t(named.size()) >= layers;
}

// Which matrices are narrow by the lists of what is, and of what is not, whatever the format calls them.
QuantScope scope_of(const Node& map, std::int64_t layers) {
  Names spared;
  for (const std::string_view key : {"ignore", "modules_to_not_convert", "ignored_layers",
                                     "exclude_modules", "llm_int8_skip_modules"}) {
    add_names(map.find(key), spared);
  }
  Names chosen;
  if (const Node* groups = map.find("config_groups"); groups != nullptr && groups->is_map()) {
    for (const auto& group : groups->entries) add_names(group.value.find("targets"), chosen);
  }
  const auto is_expert = [](std::string_view name) {
    return has(name, "expert") && !has(name, "shared_expert");
  };
  const auto is_mlp = [](std::string_view name) {
    return has(name, "mlp") || has(name, "expert") || has(name, "feed_forward");
  };
  const bool listed = !chosen.all.empty();
  if (listed && std::ranges::all_of(chosen.all, is_expert)) return QuantScope::experts;
  const bool only_mlps = listed && std::ranges::all_of(chosen.all, is_mlp);
  if (!only_mlps && !name_attention(spared, layers)) return QuantScope::all;
  return spared.any(names_mlps) ? QuantScope::experts : QuantScope::mlps;
}

engine::Mistake not_understood(const Node& map, std::string_view method) {
  std::vector<std::string> names;
  for (const Method& known : kMethods) names.emplace_back(known.name);
  const bool known = std::ranges::find(names, method) != names.end();
  const std::string what =
      method.empty() ? std::string("quantization_config has no quant_method")
      : known        ? "quantization_config: these settings of '" + std::string(method) +
                    "' are not understood"
              : "quantization_config: quant_method '" + std::string(method) + "' is not understood";
  return {map.where, what,
          "state the formats in the sweep, as in 'quant: {weights: int4, activations: bf16}'" +
              (known ? std::string() : "; understood: " + listing(names, names.size()))};
}

}  // namespace

HfQuantization read_hf_quantization(const Node& config, std::int64_t layers) {
  const Node* map = config.find("quantization_config");
  if (map == nullptr || !map->is_map()) {
    // Multimodal files may keep it with the text model.
    const Node* text = config.find("text_config");
    map = text != nullptr && text->is_map() ? text->find("quantization_config") : nullptr;
  }
  HfQuantization found;
  if (map == nullptr || !map->is_map()) return found;
  std::string_view method = text_of(*map, "quant_method");
  if (method.empty() && !text_of(*map, "quant_algo").empty()) method = "modelopt";
  const auto known = std::ranges::find(kMethods, method, &Method::name);
  if (known != std::end(kMethods)) found.matrices = known->read(*map);
  if (found.matrices && found.matrices->scope == QuantScope::all) {
    found.matrices->scope = scope_of(*map, layers);
  }
  found.kv = read_kv(*map);
  if (!found.matrices) found.unknown = not_understood(*map, method);
  return found;
}

}  // namespace sweep
