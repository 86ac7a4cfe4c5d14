#include "tools/calibrate/errors/accuracy_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "results/durable_file.h"

namespace tools {
namespace {

// Families, and sections of the calibration, that one line of the table is about.
struct Kind {
  const char* title;
  double relative_goal;  // mean %, predicting a close relative
  std::vector<std::string_view> families;
  std::string_view format;  // only this one; empty: all but 16-bit products, which have a line
};

const std::array kKinds = {
    Kind{"GEMM, 16 bits", 5, {"gemm"}, "bf16"},
    Kind{"GEMM, narrower", 8, {"gemm"}, ""},
    Kind{"grouped GEMM", 8, {"grouped_gemm"}, ""},
    Kind{"experts, fused (MoE)", 8, {"moe"}, ""},
    Kind{"attention, prompts", 8, {"attn_prefill"}, ""},
    Kind{"attention, decode", 8, {"attn_decode"}, ""},
    Kind{"latent attention and its products",
         8,
         {"mla_prefill", "mla_decode", "mla_gen_pre", "mla_gen_post"},
         ""},
    Kind{"norm, rope, activation, embedding, sampling, quantise",
         8,
         {"pass", "norm", "rope", "act", "embed", "sample", "quantize"},
         ""},
    Kind{"copies", 8, {"copy", "copy_h2d", "copy_d2h"}, ""},
    Kind{"collectives in a node",
         6,
         {"collective", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"},
         ""},
    Kind{"expert exchange in a node", 8, {"exchange", "expert_dispatch", "expert_combine"}, ""},
};

bool belongs(const Kind& kind, std::string_view family, std::string_view format) {
  if (std::ranges::find(kind.families, family) == kind.families.end()) return false;
  if (!kind.format.empty()) return format == kind.format;
  return family != "gemm" || format != "bf16";
}

bool belongs(const Kind& kind, const LeftOut& row) {
  const std::string_view section = row.section;
  const std::size_t slash = section.find('/');
  return belongs(kind, section.substr(0, slash), section.substr(slash + 1));
}

// "12.3 (88)": mean error and coverage, over the rows of all errors taken together; "-" for none.
class Mean {
 public:
  void add(const ErrorSummary& errors) {
    const double rows = double(errors.rows);
    rows_ += rows;
    error_ += rows * errors.mean;
    inside_ += rows * errors.coverage;
  }
  std::string text() const {
    if (rows_ == 0) return "-";
    return fmt::format("{:.1f} ({:.0f})", 100 * error_ / rows_, 100 * inside_ / rows_);
  }

 private:
  double rows_ = 0, error_ = 0, inside_ = 0;
};

std::string mean_of(const Kind& kind, const std::vector<ErrorLine>& lines) {
  Mean mean;
  for (const ErrorLine& line : lines) {
    if (belongs(kind, line.family, line.format)) mean.add(line.errors);
  }
  return mean.text();
}

// Lines of several tables, each of which ends in a line for all its rows.
std::string mean_of_all(const std::vector<ErrorLine>& lines) {
  Mean mean;
  for (const ErrorLine& line : lines) {
    if (line.family == "all") mean.add(line.errors);
  }
  return mean.text();
}

std::string mean_of(const Kind& kind, const std::vector<LeftOut>& rows, Without without) {
  Mean mean;
  for (const LeftOut& row : rows) {
    // A relative is predicted by its generation; where that has no rows alike, nothing is said.
    if (row.without != without || !belongs(kind, row)) continue;
    if (without == Without::device && row.set == "pooled") continue;
    mean.add(row.errors);
  }
  return mean.text();
}

constexpr std::string_view kBegin = "<!-- kernel errors -->\n";
constexpr std::string_view kEnd = "<!-- end of kernel errors -->";

}  // namespace

std::string accuracy_table(const AccuracyFigures& figures) {
  static const Kind between{"collectives between nodes", 8, {"between"}, ""};
  std::string text =
      "| mean error % (share of rows in the 90% interval) | goal, relative | relative left out | "
      "generation left out | fitted devices | every engine's row | our H200 sweep |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const Kind& kind : kKinds) {
    text += fmt::format("| {} | {:.0f} | {} | {} | {} | {} | {} |\n", kind.title,
                        kind.relative_goal, mean_of(kind, figures.left_out, Without::device),
                        mean_of(kind, figures.left_out, Without::generation),
                        mean_of(kind, figures.trusted), mean_of(kind, figures.raw),
                        mean_of(kind, figures.own));
  }
  text += fmt::format("| {} | - | - | {} | {} | - | - |\n", between.title,
                      mean_of(between, figures.left_out, Without::generation),
                      mean_of_all(figures.between));
  return text;
}

engine::Result<bool> put_into(const std::filesystem::path& file, const std::string& table) {
  auto text = results::read_file(file);
  if (!text) return engine::Mistake{{file.string()}, "there is no such file", "check its name"};
  const std::size_t begin = text->find(kBegin), end = text->find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    return engine::Mistake{{file.string()},
                           "the file has no place for the table",
                           "give it the lines '<!-- kernel errors -->' and '<!-- end of kernel "
                           "errors -->'"};
  }
  text->replace(begin + kBegin.size(), end - begin - kBegin.size(), table);
  results::write_durably(file, *text);
  return true;
}

}  // namespace tools
