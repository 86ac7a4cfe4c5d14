#include "tools/import/operator_shape.h"

#include <fmt/format.h>

#include <algorithm>

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

// An operator on nothing runs no kernel that its shape could explain.
bool is_empty(const std::vector<std::int64_t>& dims) {
  return std::ranges::find(dims, 0) != dims.end();
}

// No device holds so many values.
constexpr double kMostValues = 1e13;

std::string impossible_sizes(const std::vector<Argument>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    double values = 1;
    for (const std::int64_t dim : arguments[i].dims) {
      if (dim < 0) return fmt::format("input {} has a dimension of {}", i, dim);
      values *= double(dim);
    }
    if (values > kMostValues) return fmt::format("input {} has {:.3g} values", i, values);
  }
  return "";
}

// C[m,n] = A[m,k] W[k,n]; A is the argument of this number.
std::optional<KernelShape> product(const std::vector<Argument>& arguments, std::size_t first) {
  const auto* a = dims_of(arguments, first, 2);
  const auto* w = dims_of(arguments, first + 1, 2);
  const auto format = format_of(arguments, first);
  if (a == nullptr || w == nullptr || !format || is_empty(*a) || is_empty(*w)) return std::nullopt;
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
  if (query == nullptr || keys == nullptr || !format || is_empty(*query) || is_empty(*keys)) {
    return std::nullopt;
  }
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

// Why a product cannot have run; empty where it can.
std::string impossible_product(const std::vector<Argument>& arguments, std::size_t first) {
  const auto* a = dims_of(arguments, first, 2);
  const auto* w = dims_of(arguments, first + 1, 2);
  if (a == nullptr || w == nullptr || (*a)[1] == (*w)[0]) return "";
  return fmt::format("rows of {} values cannot be multiplied by columns of {}", (*a)[1], (*w)[0]);
}

std::string impossible_attention(const std::vector<Argument>& arguments, std::size_t heads) {
  const auto* query = dims_of(arguments, 0, 4);
  const auto* keys = dims_of(arguments, 1, 4);
  if (query == nullptr || keys == nullptr || is_empty(*query) || is_empty(*keys)) return "";
  const auto differ = [&](const char* what, std::size_t at) {
    return fmt::format("queries have {} {} and keys {}", what, (*query)[at], (*keys)[at]);
  };
  if ((*query)[0] != (*keys)[0]) return differ("batch", 0);
  if ((*query)[3] != (*keys)[3]) return differ("width", 3);
  if ((*query)[heads] % (*keys)[heads] == 0) return "";
  return fmt::format("{} heads of queries cannot share {} of keys", (*query)[heads],
                     (*keys)[heads]);
}

struct KnownOperator {
  std::string_view name;
  std::optional<KernelShape> (*shape)(const std::vector<Argument>&);
  std::string (*impossible)(const std::vector<Argument>&);
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
std::string misfit_of_first(const std::vector<Argument>& arguments) {
  return impossible_product(arguments, 0);
}
std::string misfit_after_bias(const std::vector<Argument>& arguments) {
  return impossible_product(arguments, 1);
}
std::string misfit_heads_first(const std::vector<Argument>& arguments) {
  return impossible_attention(arguments, 1);
}
std::string misfit_tokens_first(const std::vector<Argument>& arguments) {
  return impossible_attention(arguments, 2);
}

constexpr KnownOperator kKnownOperators[] = {
    {"aten::mm", product_of_first, misfit_of_first},
    {"aten::_scaled_mm", product_of_first, misfit_of_first},
    {"aten::addmm", product_after_bias, misfit_after_bias},
    {"aten::_scaled_dot_product_flash_attention", heads_first, misfit_heads_first},
    {"aten::_scaled_dot_product_cudnn_attention", heads_first, misfit_heads_first},
    {"aten::_scaled_dot_product_efficient_attention", heads_first, misfit_heads_first},
    {"aten::_cudnn_attention_forward", heads_first, misfit_heads_first},
    {"aten::_flash_attention_forward", tokens_first, misfit_tokens_first},
    {"flash_attn::_flash_attn_forward", tokens_first, misfit_tokens_first},
};

}  // namespace

std::string impossible_shape(std::string_view name, const std::vector<Argument>& arguments) {
  for (const KnownOperator& known : kKnownOperators) {
    if (known.name != name) continue;
    std::string sizes = impossible_sizes(arguments);
    return sizes.empty() ? known.impossible(arguments) : sizes;
  }
  return "";
}

std::optional<KernelShape> kernel_shape(std::string_view name,
                                        const std::vector<Argument>& arguments) {
  for (const KnownOperator& known : kKnownOperators) {
    if (known.name == name) return known.shape(arguments);
  }
  return std::nullopt;
}

}  // namespace tools
