// The answer to a question as a table: for eyes, for a spreadsheet, for a pull request, for a program.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/result.h"
#include "results/text_table.h"
#include "tools/query/question.h"
#include "tools/query/sensitivity.h"

namespace tools {

enum class AnswerFormat : std::uint8_t { text, csv, markdown };
constexpr std::array<std::string_view, 3> enum_names(AnswerFormat) {
  return {"text", "csv", "markdown"};
}

// The rows with their axes, the figures asked for and the columns in `show`; with several runs, which.
// `behind` adds how much worse than the first each row is in the first objective, in percent.
enum class Behind : std::uint8_t { no, yes };
results::TextTable rows_answer(const RunRows& rows, const std::vector<std::uint32_t>& chosen,
                               const Candidates& candidates, const Question& question,
                               const std::vector<std::string>& show, Behind behind);
results::TextTable effects_answer(const std::vector<AxisEffect>& effects);

// Texts and markdown show numbers with six digits; files for programs have all of them.
std::string to_text(const results::TextTable& table, AnswerFormat format);

// By the end of the name: .csv, .csv.gz, .parquet, .md or .txt. Any other is a mistake.
std::vector<engine::Mistake> check_answer_file(const std::string& file);
void write_answer(const std::string& file, const results::TextTable& table);

}  // namespace tools
