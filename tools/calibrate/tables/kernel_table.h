// Kernel tables: one measured call a row, in the columns that shared/data/README.md describes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/result.h"
#include "engine/model/op.h"
#include "results/text_table.h"

namespace tools {

// What the columns `dtype` and `kv_dtype` may say.
enum class Format : std::uint8_t {
  bf16,
  fp16,
  fp32,
  tf32,
  fp8,
  fp8_block,
  nvfp4,
  int8,
  int8_wo,
  int4_wo,
  sq,
  w4a16_mxfp4,
  w4a8_mxfp4_mxfp8,
};
constexpr std::array<std::string_view, 13> enum_names(Format) {
  return {"bf16", "fp16",    "fp32",    "tf32", "fp8",         "fp8_block",       "nvfp4",
          "int8", "int8_wo", "int4_wo", "sq",   "w4a16_mxfp4", "w4a8_mxfp4_mxfp8"};
}

// Columns that hold a size.
enum class Size : std::uint8_t {
  m,
  n,
  k,
  batch,
  query_len,
  context_len,
  q_heads,
  kv_heads,
  head_dim,
  window,
  tokens,
  hidden,
  inter,
  topk,
  experts,
  tp,
  ep,
  bytes,
  ranks,
  nodes,
  sms,
};
constexpr std::array<std::string_view, 21> enum_names(Size) {
  return {"m",        "n",        "k",      "batch",  "query_len", "context_len", "q_heads",
          "kv_heads", "head_dim", "window", "tokens", "hidden",    "inter",       "topk",
          "experts",  "tp",       "ep",     "bytes",  "ranks",     "nodes",       "sms"};
}
constexpr std::size_t kSizes = enum_names(Size{}).size();

// What was called: two rows with equal calls measured the same thing.
struct KernelCall {
  engine::Family family = engine::Family::gemm;
  Format dtype = Format::bf16;
  Format kv_dtype = Format::bf16;
  bool warm = false;             // operands in the last-level cache: impl ends in ":warm"
  bool quantizes_input = false;  // a narrow product that starts from 16 bits, as engines time it
  bool stores_kv = false;        // attention that also stores its keys, as engines time it
  bool gated = true;             // moe: three matrices an expert
  engine::Library library = engine::Library::fastest;  // all_reduce
  engine::ExpertExchange::Kernels exchange = engine::ExpertExchange::Kernels::fastest;
  double skew = 0;  // moe: exponent of the power law of routing; 0: balanced
  std::array<double, kSizes> sizes{};

  double operator[](Size size) const { return sizes[static_cast<std::size_t>(size)]; }
  double& operator[](Size size) { return sizes[static_cast<std::size_t>(size)]; }
  auto operator<=>(const KernelCall&) const = default;
};

struct KernelRecord {
  KernelCall call;
  std::uint32_t impl = 0;  // into KernelTable::impls
  std::uint32_t row = 0;   // of the text table
  double seconds = 0;
};

// Rows that have no model here, by the family or format they name.
struct SkippedRows {
  std::string what;  // "family 'conv'"
  std::size_t rows = 0;
  engine::Location first;
};

struct KernelTable {
  results::TextTable text;
  std::vector<std::string> impls;
  std::vector<KernelRecord> records;
  std::vector<SkippedRows> skipped;
};

enum class Times : std::uint8_t { needed, ignored };

// A family's rows need the columns that describe its calls; others may be absent. Every mistake is
// returned (the first of each kind of many): a missing column, a cell that is no size, a time that
// is no positive number. Families and formats without a model are counted in `skipped`.
engine::Result<KernelTable> read_kernel_table(const std::filesystem::path& file, Times times);
engine::Result<KernelTable> kernel_table_of(results::TextTable text, Times times);

}  // namespace tools
