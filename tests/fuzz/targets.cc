#include "tests/fuzz/targets.h"

#include <cmath>
#include <fstream>
#include <string>

#include "engine/base/check.h"
#include "engine/calibration/calibration.h"
#include "engine/calibration/calibration_format.h"
#include "results/manifest.h"
#include "results/text_table.h"
#include "sweep/input/utf8.h"
#include "sweep/language/hf_config.h"
#include "sweep/language/library.h"
#include "sweep/language/parse_quantity.h"
#include "sweep/language/read_formula.h"
#include "sweep/language/sweep_spec.h"
#include "sweep/space/expression.h"
#include "sweep/space/space.h"
#include "sweep/workload/trace_file.h"
#include "tests/support/paths.h"
#include "tests/support/toy_rows.h"
#include "tools/calibrate/tables/kernel_table.h"

namespace fuzz {
namespace {

using engine::check;

// A small library: reading all that is shipped would take most of the time.
sweep::Library toy_library() {
  return sweep::Library({paths::source("tests/sweep/fixtures/specs")});
}

// Every refusal has something to say, and not without end.
void check_mistakes(const std::vector<engine::Mistake>& mistakes) {
  check(!mistakes.empty(), "what is refused has a reason");
  check(mistakes.size() <= 51, "at most fifty mistakes and the count of the rest");
  check(engine::to_text(mistakes).size() < (std::size_t{1} << 23), "messages are short");
}

}  // namespace

void fuzz_spec(std::string_view input) {
  if (!sweep::is_utf8(input)) return;  // as files are, once they are read
  // An axis may have a million values, and takes its second: not to be tried over and over.
  if (input.find("1000000") != input.npos) return;
  static const sweep::Library library = toy_library();
  const auto spec = sweep::read_sweep_text(input, "fuzz.yaml", library);
  if (!spec) return check_mistakes(spec.mistakes());
  sweep::PointBuilder builder(spec->space);
  sweep::Point point;
  const std::uint64_t size = spec->space.size();
  for (const std::uint64_t index : {std::uint64_t{0}, size / 2, size - 1}) {
    if (index < size) builder.build(index, point);
  }
  // run.yaml stands for the sweep: what we write we can read, and it is the same space.
  const auto again = sweep::read_sweep_text(spec->resolved, "fuzz.yaml", library);
  check(again.ok(), "a resolved sweep can be read");
  check(again->digest == spec->digest, "a resolved sweep is the same sweep");
}

void fuzz_expression(std::string_view input) {
  if (!sweep::is_utf8(input)) return;
  sweep::Reading reading(toy_library());
  sweep::Node node;
  node.kind = sweep::Node::Kind::scalar;
  node.text = input;
  node.where = {"fuzz.yaml", 1, 1};
  if (const auto formula = sweep::read_condition(node, "require", reading)) {
    sweep::Expression(*formula).value(engine::Scenario{});
  } else {
    check_mistakes(std::move(reading.mistakes).finish());
  }
}

void fuzz_quantity(std::string_view input) {
  sweep::parse_integer(input);
  if (const auto number = sweep::parse_number(input)) {
    check(std::isfinite(*number), "a number is finite");
    check(sweep::parse_number(sweep::format_number(*number)) == *number, "a number reads back");
  }
  if (const auto quantity = sweep::parse_quantity(input)) {
    check(std::isfinite(quantity->value), "a quantity is finite");
    // Symbols are literals, so they end in a zero.
    const double per_base = quantity->unit.symbol == "USD/h" ? 3600 : 1;
    const engine::Unit unit{quantity->unit.symbol.data(), "", per_base};
    const auto again = sweep::parse_quantity(sweep::format_quantity(quantity->value, unit));
    check(again && again->value == quantity->value, "a quantity reads back");
  }
}

void fuzz_configuration(std::string_view input) {
  if (!sweep::is_utf8(input)) return;
  const auto model = sweep::parse_hf_config(input, "model/config.json");
  if (!model) check_mistakes(model.mistakes());
}

void fuzz_trace_csv(std::string_view input) {
  const auto trace = sweep::parse_trace(input, "fuzz.csv");
  if (!trace) check_mistakes(trace.mistakes());
}

void fuzz_trace_json(std::string_view input) {
  const auto trace = sweep::parse_trace(input, "fuzz.jsonl");
  if (!trace) check_mistakes(trace.mistakes());
}

void fuzz_kernel_table(std::string_view input) {
  auto text = results::parse_csv(input, "fuzz.csv");
  if (!text) return check_mistakes(text.mistakes());
  const auto table = tools::kernel_table_of(std::move(text).value(), tools::Times::needed);
  if (!table) check_mistakes(table.mistakes());
}

void fuzz_calibration(std::string_view input) {
  // A wrong checksum ends the reading at once; put the right one in, so that the rest is tried too.
  std::string text(input);
  constexpr std::string_view key = "checksum: ";
  if (const std::size_t at = text.find(key); at != std::string::npos) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view whole = text;
    const std::string seal = engine::calibration_format::fingerprint(
        whole.substr(0, at), whole.substr(std::min(end + 1, text.size())));
    text.replace(at + key.size(), end - std::min(end, at + key.size()), seal);
  }
  for (const std::string_view part : engine::calibrations_in(text)) {
    const auto calibration = engine::parse_calibration(part, "fuzz.calibration");
    if (!calibration) check(!calibration.mistakes().empty(), "what is refused has a reason");
  }
}

void fuzz_manifest(std::string_view input) {
  static const tests::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "manifest";
  std::ofstream(file, std::ios::binary | std::ios::trunc) << input;
  const auto manifest = results::inspect_manifest(file);
  if (!manifest) return;
  check(manifest->intact_bytes <= input.size(), "what is intact is part of the file");
  check(manifest->lines.size() == manifest->parts.size(), "every part has its line");
  // What was believed can be written and is then the same.
  for (const results::PartRecord& part : manifest->parts) results::to_line(part);
  if (manifest->header) results::to_line(*manifest->header);
}

const std::vector<Target>& targets() {
  static const std::vector<Target> all{
      {"spec",
       fuzz_spec,
       400,
       {"tests/fuzz/corpus/spec", "tests/sweep/broken"},
       {"base:",
        "axes:",
        "\n  - ",
        "{",
        "}",
        "[",
        "]",
        "&a ",
        "*a",
        "<<: *a",
        "sample:",
        "zip:",
        "concat:",
        "when:",
        "linear:",
        "geometric:",
        "powers_of_two:",
        "count:",
        "values:",
        "derive:",
        "require:",
        "replicates:",
        "device: toy",
        "model: tiny",
        "step.batch",
        "1e308",
        "9223372036854775807",
        "-1"}},
      {"expression",
       fuzz_expression,
       5000,
       {"tests/fuzz/corpus/expression"},
       {"step.batch", "step.phase", "device", "'decode'", "min(", "max(",  "mod(",
        " ? ",        " : ",        "&&",     "||",       "not ", "80 GB", "1e308",
        "e",          "^",          "%",      "(",        ")",    ","}},
      {"quantity",
       fuzz_quantity,
       50000,
       {"tests/fuzz/corpus/quantity"},
       {"e308", "e-308", "E2147483647", "TiB", "GB/s", "_", "USD/h", "$", "req/min", "us", "Gb/s",
        "-", "."}},
      {"configuration",
       fuzz_configuration,
       500,
       {"tests/fuzz/corpus/configuration", "tests/sweep/fixtures/hf"},
       {"\"architectures\"", "LlamaForCausalLM", "null", "[", "]", "{", "}", "9223372036854775807",
        "-1", "0", "1e308",
        "\"num_hidden_layers\": ", "\"hidden_size\": ", "\"quantization_config\": ", "\\u0000"}},
      {"trace_csv",
       fuzz_trace_csv,
       10000,
       {"tests/fuzz/corpus/trace_csv"},
       {"arrival_s", "prompt_tokens", "output_tokens", "hash_ids", "request_id", "session",
        "TIMESTAMP", "2023-11-16 18:15:46.68", ",", "\n", "\r", "1e8", "1e999", "nan", "inf",
        "-0"}},
      {"trace_json",
       fuzz_trace_json,
       10000,
       {"tests/fuzz/corpus/trace_json"},
       {"\"arrival_s\": ", "\"prompt_tokens\": ", "\"output_tokens\": ", "\"hash_ids\": [", "]",
        "{", "}", "\n", "null", "18446744073709551615", "-1", "1e999", "\\ud800", "\"model\": "}},
      {"kernel_table",
       fuzz_kernel_table,
       5000,
       {"tests/fuzz/corpus/kernel_table"},
       {"family", "gemm",  "moe",   "attn_decode", "all_reduce", "seconds",       "dtype",
        "fp8",    "m",     "ranks", "nodes",       "\"",         "\"\"",          ",",
        "\n",     "1e308", "nan",   "inf",         "-1",         "power_law_1.2", ":warm"}},
      {"calibration",
       fuzz_calibration,
       1000,
       {"tests/fuzz/corpus/calibration", "specs/calibration/engines"},
       {"checksum: ", "section: ", "set: ", "point: ", "line: ", "tree: ", "trees: ", "nan", "inf",
        "1e308", "-1", "0", ": ", "\n"}},
      {"manifest",
       fuzz_manifest,
       3000,
       {"tests/fuzz/corpus/manifest"},
       {"\"part\":", "\"positions\":", "\"tally\":", "\"xxh3\":", "\"shard\":", "1of1", "2of3",
        "null", "[", "]", "{", "}", "18446744073709551615", "-1", "1e308", "\n"}},
  };
  return all;
}

}  // namespace fuzz
