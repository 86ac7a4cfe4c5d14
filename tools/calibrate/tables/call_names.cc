#include "tools/calibrate/tables/call_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace tools {
namespace {

using engine::Family;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

engine::ExpertExchange::Kernels exchange_kernels(std::string_view impl) {
  using Kernels = engine::ExpertExchange::Kernels;
  if (contains(impl, "low_latency") || contains(impl, "_ll")) return Kernels::low_latency;
  if (contains(impl, "normal") || contains(impl, "high_throughput")) return Kernels::normal;
  return Kernels::fastest;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The number or the text that `version` begins with, taken off it.
std::string_view next_part(std::string_view& version) {
  const bool digits = is_digit(version.front());
  std::size_t end = 0;
  while (end < version.size() && is_digit(version[end]) == digits) ++end;
  const std::string_view part = version.substr(0, end);
  version.remove_prefix(end);
  return part;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

std::optional<Family> family_named(std::string_view name) {
  if (const auto exact = engine::from_name<Family>(name)) return exact;
  return engine::from_name<Family>(lower_case(name));
}

std::optional<Format> format_named(std::string_view name) {
  if (const auto exact = engine::from_name<Format>(name)) return exact;
  static constexpr std::pair<std::string_view, Format> others[] = {
      {"bfloat16", Format::bf16},    {"float16", Format::fp16},  {"half", Format::fp16},
      {"float32", Format::fp32},     {"float", Format::fp32},    {"tf32", Format::tf32},
      {"float8", Format::fp8},       {"fp8_e4m3", Format::fp8},  {"float8_e4m3fn", Format::fp8},
      {"w8a8_fp8", Format::fp8},     {"fp4", Format::nvfp4},     {"w4a4_nvfp4", Format::nvfp4},
      {"w8a16", Format::int8_wo},    {"w4a16", Format::int4_wo}, {"int4", Format::int4_wo},
      {"awq", Format::int4_wo},      {"gptq", Format::int4_wo},  {"w8a8", Format::sq},
      {"mxfp4", Format::w4a16_mxfp4}};
  const std::string lower = lower_case(name);
  if (const auto known = engine::from_name<Format>(lower)) return known;
  const auto* found = std::ranges::find(others, std::string_view(lower),
                                        &std::pair<std::string_view, Format>::first);
  return found == std::end(others) ? std::nullopt : std::optional(found->second);
}

bool says_nothing(std::string_view cell) {
  if (cell.empty()) return true;
  const char first = cell.front();
  if (cell.size() > 4 || (first != 'n' && first != 'N')) return false;
  const std::string lower = lower_case(cell);
  return lower == "nan" || lower == "none" || lower == "null" || lower == "na";
}

bool is_kernel_library(std::string_view impl) {
  constexpr std::array libraries = {"torch",   "pytorch", "triton",   "cublas", "cudnn",
                                    "cutlass", "flash",   "deepgemm", "aiter"};
  const std::string lower = lower_case(impl);
  return std::ranges::any_of(libraries,
                             [&](std::string_view name) { return lower.starts_with(name); });
}

std::string_view engine_in(std::string_view impl) {
  const std::size_t colon = impl.find(':');
  if (colon == std::string_view::npos || is_kernel_library(impl)) return {};
  return impl.substr(0, colon);
}

bool older_version(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const std::string_view left = next_part(a), right = next_part(b);
    if (left == right) continue;
    if (!is_digit(left.front()) || !is_digit(right.front())) return left < right;
    return std::pair(left.size(), left) < std::pair(right.size(), right);
  }
  return a.empty() && !b.empty();
}

bool has_kv(Family family) {
  return family == Family::attn_prefill || family == Family::attn_decode ||
         family == Family::mla_prefill || family == Family::mla_decode;
}

void describe(std::string_view impl, KernelCall& call) {
  const std::string name = lower_case(impl);
  // A sweep of kernels alone (tools/gpu) gives every call cold operands unless it says so. Engines
  // replay one call around their kernel: they quantise the input of a product inside it, and store
  // the keys that attention reads. A table that names nobody is taken for an engine's where engines'
  // tables have the family, else for a sweep's.
  const bool alone = is_kernel_library(name);
  if (call.family != Family::gemm && call.family != Family::moe) {
    call.warm = name.ends_with(":warm") || (has_kv(call.family) && !alone);
  }
  call.stores_kv = has_kv(call.family) && !alone;
  if (call.family == Family::gemm) {
    const bool narrow = call.dtype == Format::fp8 || call.dtype == Format::fp8_block ||
                        call.dtype == Format::nvfp4 || call.dtype == Format::sq;
    call.quantizes_input = narrow && !alone;
  }
  if (call.family == Family::moe) call.gated = !contains(name, "nongated");
  // Nobody named: whichever is faster, as an engine would choose.
  if (call.family == Family::all_reduce && !name.empty()) {
    call.library = contains(name, "nccl") ? engine::Library::general : engine::Library::custom;
  }
  if (call.family == Family::expert_dispatch || call.family == Family::expert_combine) {
    call.exchange = exchange_kernels(name);
  }
}

}  // namespace tools
