#include "tools/import/operator_shape.h"

#include <array>

namespace tools {
namespace {

std::optional<std::string> format_of(const std::vector<Argument>& arguments, std::size_t at) {
  static const std::map<std::string_view, std::string> formats{{"c10::BFloat16", "bf16"},
                                                               {"c10::Half", "fp16"},
                                                               {"float", "fp32"},
                                                               {"c10::Float8_e4m3fn", "fp8"}};
  if (at >= arguments.size()) return std::nullopt;
  const auto found = formats.find(arguments[at].type);
  return found == formats.end() ? std::nullopt : std::optional(found->second);
}

const std::vector<std::int64_t>* dims_of(const std::vector<Argument>& arguments, std::size_t at,
                                         std::size_t rank) {
  if (at >= arguments.size() || arguments[at].dims.size() != rank) return nullptr;
  return &arguments[at].dims;
}

// C[m,n] = A[m,k] W[k,n]; A is the argument of this number.
std::optional<KernelShape> product(const std::vector<Argument>& arguments, std::size_t first) {
  const auto* a = dims_of(arguments, first, 2);
  const auto* w = dims_of(arguments, first + 1, 2);
  const auto format = format_of(arguments, first);
  if (a == nullptr || w == nullptr || !format || (*a)[1] != (*w)[0]) return std::nullopt;
  return KernelShape{{"family", "gemm"},
                     {"dtype", *format},
                     {"m", std::to_string((*a)[0])},
                     {"n", std::to_string((*w)[1])},
                     {"k", std::to_string((*a)[1])}};
}

// Queries, keys and values are [batch, heads, tokens, width], or have heads and tokens the other way round.
std::optional<KernelShape> attention(const std::vector<Argument>& arguments, std::size_t heads,
                                     std::size_t tokens) {
  const auto* query = dims_of(arguments, 0, 4);
  const auto* keys = dims_of(arguments, 1, 4);
  const auto format = format_of(arguments, 0);
  if (query == nullptr || keys == nullptr || !format) return std::nullopt;
  const std::int64_t length = (*query)[tokens];
  return KernelShape{{"family", length > 1 ? "attn_prefill" : "attn_decode"},
                     {"dtype", *format},
                     {"kv_dtype", *format},
                     {"batch", std::to_string((*query)[0])},
                     {"query_len", std::to_string(length)},
                     {"context_len", std::to_string((*keys)[tokens])},
                     {"q_heads", std::to_string((*query)[heads])},
                     {"kv_heads", std::to_string((*keys)[heads])},
                     {"head_dim", std::to_string((*query)[3])},
                     {"window", "0"}};
}

struct KnownOperator {
  std::string_view name;
  std::optional<KernelShape> (*shape)(const std::vector<Argument>&);
};

std::optional<KernelShape> product_of_first(const std::vector<Argument>& arguments) {
  return product(arguments, 0);
}
std::optional<KernelShape> product_after_bias(const std::vector<Argument>& arguments) {
  return product(arguments, 1);
}
std::optional<KernelShape> heads_first(const std::vector<Argument>& arguments) {
  return attention(arguments, 1, 2);
}
std::optional<KernelShape> tokens_first(const std::vector<Argument>& arguments) {
  return attention(arguments, 2, 1);
}

constexpr KnownOperator kKnownOperators[] = {
    {"aten::mm", product_of_first},
    {"aten::_scaled_mm", product_of_first},
    {"aten::addmm", product_after_bias},
    {"aten::_scaled_dot_product_flash_attention", heads_first},
    {"aten::_scaled_dot_product_cudnn_attention", heads_first},
    {"aten::_scaled_dot_product_efficient_attention", heads_first},
    {"aten::_cudnn_attention_forward", heads_first},
    {"aten::_flash_attention_forward", tokens_first},
    {"flash_attn::_flash_attn_forward", tokens_first},
};

}  // namespace

std::optional<KernelShape> kernel_shape(std::string_view name,
                                        const std::vector<Argument>& arguments) {
  for (const KnownOperator& known : kKnownOperators) {
    if (known.name == name) return known.shape(arguments);
  }
  return std::nullopt;
}

}  // namespace tools
