#include "tools/calibrate/tables/profile_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sweep/language/sweep_spec.h"
#include "tools/calibrate/tables/table_row.h"

namespace tools {
namespace {

namespace fs = std::filesystem;

// A kernel table under construction: cells that a row does not name stay empty.
class TableBuilder {
 public:
  using Cell = std::pair<std::string_view, std::int64_t>;

  TableBuilder() {
    table_.file = "profile";
    for (const std::string_view name : kColumns) table_.columns.emplace_back(std::string(name));
  }

  // `impl` tells whether operands were in the cache; times are in microseconds.
  void add(std::string_view family, std::string_view impl, std::initializer_list<Cell> sizes,
           double microseconds) {
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      table_.columns[i].append(cell(kColumns[i], family, impl, sizes, microseconds));
    }
    table_.lines.push_back(std::uint32_t(table_.lines.size() + 2));
  }
  results::TextTable take() { return std::move(table_); }

 private:
  static constexpr std::array<std::string_view, 16> kColumns = {
      "family",    "impl",        "dtype",   "kv_dtype", "m",        "n",      "k",      "batch",
      "query_len", "context_len", "q_heads", "kv_heads", "head_dim", "tokens", "hidden", "seconds"};

  static std::string cell(std::string_view column, std::string_view family, std::string_view impl,
                          std::initializer_list<Cell> sizes, double microseconds) {
    if (column == "family") return std::string(family);
    if (column == "impl") return std::string(impl);
    if (column == "dtype" || column == "kv_dtype") return "bf16";
    if (column == "seconds") return fmt::format("{:.9g}", microseconds * 1e-6);
    const auto found = std::ranges::find(sizes, column, &Cell::first);
    return found == sizes.end() ? std::string() : std::to_string(found->second);
  }

  results::TextTable table_;
};

constexpr std::string_view kCold = "vllm:profile";
constexpr std::string_view kWarm =
    "vllm:profile:warm";  // a pass finds what the kernel before wrote

// One device's part of the model.
struct Shape {
  std::int64_t hidden, heads, kv_heads, head_dim, intermediate, vocabulary;
};

Shape shape_of(const engine::ModelSpec& model, std::int64_t tp) {
  return {.hidden = model.hidden,
          .heads = model.heads / tp,
          .kv_heads = std::max<std::int64_t>(1, model.kv_heads / tp),
          .head_dim = model.head_dim,
          .intermediate = model.intermediate / tp,
          .vocabulary = model.vocabulary / tp};
}

void add_layer(std::string_view layer, std::int64_t rows, double time, const Shape& shape,
               TableBuilder& out) {
  const std::int64_t query = shape.heads * shape.head_dim;
  const auto product = [&](std::int64_t n, std::int64_t k) {
    out.add("gemm", kCold, {{"m", rows}, {"n", n}, {"k", k}}, time);
  };
  const auto pass = [&](std::string_view family, std::int64_t width) {
    out.add(family, kWarm, {{"tokens", rows}, {"hidden", width}}, time);
  };
  if (layer == "qkv_proj") product(query + 2 * shape.kv_heads * shape.head_dim, shape.hidden);
  if (layer == "o_proj") product(shape.hidden, query);
  if (layer == "gate_up_proj") product(2 * shape.intermediate, shape.hidden);
  if (layer == "down_proj") product(shape.hidden, shape.intermediate);
  if (layer == "lm_head") product(shape.vocabulary, shape.hidden);
  if (layer == "layernorm") pass("norm", shape.hidden);
  if (layer == "act_fn") pass("act", shape.intermediate);
  if (layer == "embedding") pass("embed", shape.hidden);
  if (layer == "sampler") pass("sample", shape.vocabulary);
  if (layer == "rotary_emb") {
    out.add("rope", kWarm,
            {{"tokens", rows},
             {"q_heads", shape.heads},
             {"kv_heads", shape.kv_heads},
             {"head_dim", shape.head_dim}},
            time);
  }
}

// Decodes beside a prompt of this many tokens stand for decodes beside any prompt.
constexpr std::int64_t kTypicalChunk = 512;

// Attention calls are prompts, decodes, or both. What decodes add to a prompt is a call of its own: the
// engine gave them to the kernel for prompts.
void add_attention(const results::TextTable& table, const Shape& shape, TableBuilder& out) {
  const auto add = [&](std::string_view family, std::int64_t batch, std::int64_t query,
                       std::int64_t context, double time) {
    out.add(family, kCold,
            {{"batch", batch},
             {"query_len", query},
             {"context_len", context},
             {"q_heads", shape.heads},
             {"kv_heads", shape.kv_heads},
             {"head_dim", shape.head_dim}},
            time);
  };
  double typical_alone = 0;
  for (const bool mixed : {false, true}) {
    for (std::size_t i = 0; i < table.rows(); ++i) {
      const TableRow row(table, i);
      const std::int64_t chunk = row.count("prefill_chunk"), cached = row.count("kv_prefill");
      const std::int64_t decodes = row.count("n_decode"), context = row.count("kv_decode");
      const double time = row.number("time_us");
      if ((chunk > 0 && decodes > 0) != mixed) continue;
      const bool typical = chunk == kTypicalChunk && cached == 0;
      if (mixed) {
        if (typical && context > 1 && time > typical_alone) {
          add("attn_prefill", decodes, 1, context, time - typical_alone);
        }
      } else if (chunk > 0) {
        add("attn_prefill", 1, chunk, cached + chunk, time);
        if (typical) typical_alone = time;
      } else {
        add("attn_decode", decodes, 1, std::max<std::int64_t>(1, context), time);
      }
    }
  }
}

}  // namespace

std::vector<ProfileDegree> profile_degrees(const fs::path& folder) {
  std::vector<ProfileDegree> degrees;
  if (!fs::is_directory(folder)) return degrees;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    std::int64_t tp = 0;
    if (name.starts_with("tp")) std::from_chars(name.data() + 2, name.data() + name.size(), tp);
    if (entry.is_directory() && tp > 0) degrees.push_back({tp, entry.path()});
  }
  std::ranges::sort(degrees, {}, &ProfileDegree::tp);
  return degrees;
}

engine::Result<results::TextTable> profile_table(const fs::path& folder,
                                                 const engine::ModelSpec& model) {
  TableBuilder out;
  for (const ProfileDegree& degree : profile_degrees(folder)) {
    const Shape shape = shape_of(model, degree.tp);
    for (const auto& [file, rows] :
         {std::pair{"dense.csv", "tokens"}, {"per_sequence.csv", "sequences"}}) {
      const auto table = results::read_table(degree.folder / file);
      if (!table) return table.mistakes();
      for (std::size_t i = 0; i < table->rows(); ++i) {
        const TableRow row(*table, i);
        add_layer(row.text("layer"), row.count(rows), row.number("time_us"), shape, out);
      }
    }
    const auto attention = results::read_table(degree.folder / "attention.csv.gz");
    if (!attention) return attention.mistakes();
    add_attention(*attention, shape, out);
  }
  return out.take();
}

engine::Result<engine::ModelSpec> profiled_model(const fs::path& folder,
                                                 const sweep::Library& library) {
  // "…/meta-llama/Llama-3.1-8B/bf16", with or without a slash at its end.
  const fs::path format = folder.has_filename() ? folder : folder.parent_path();
  std::string name = format.parent_path().filename().string();
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  auto spec = sweep::read_named(library, "models", name);
  if (!spec) return spec.mistakes();
  return std::move(spec->scenario.model);
}

void keep_shared_kernels(KernelTable& table) {
  std::erase_if(table.records, [](const KernelRecord& record) {
    using engine::Family;
    const KernelCall& call = record.call;
    if (call.family == Family::attn_prefill) {
      return call[Size::query_len] == 1 && call[Size::context_len] > 1;
    }
    return call.family != Family::gemm && call.family != Family::attn_decode;
  });
}

}  // namespace tools
