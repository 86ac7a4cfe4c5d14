// What the words of a kernel table mean: families, formats, implementations. Letters of either case are
// the same.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/calibrate/tables/kernel_table.h"

namespace tools {

std::string lower_case(std::string_view text);

// nullopt: not a family of kernel tables.
std::optional<engine::Family> family_named(std::string_view name);

// Also by the names frameworks use: "bfloat16", "float8_e4m3fn", "w4a16", ...
std::optional<Format> format_named(std::string_view name);

// Words that stand for an empty cell: "nan", "none", "null".
bool says_nothing(std::string_view cell);

// Whether a name is that of a library's kernel alone ("torch2.11:cublas", as tools/gpu writes them) and
// not of an engine's op ("vllm_0.24.0:...").
bool is_kernel_library(std::string_view impl);

// "vllm_0.24.0" of "vllm_0.24.0:vllm_flash_attn_fa3"; empty for a library's kernel.
std::string_view engine_in(std::string_view impl);

// Orders versions as people do: 0.9 before 0.14, a release candidate by its number.
bool older_version(std::string_view a, std::string_view b);

// Puts into `call`, whose family and formats are known, what the name of its implementation says.
void describe(std::string_view impl, KernelCall& call);

// Whether calls of the family read keys and values from a cache.
bool has_kv(engine::Family family);

}  // namespace tools
