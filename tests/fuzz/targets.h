// What reads bytes that others wrote, each as one function of those bytes: it may refuse them, but must
// neither crash, nor hang, nor break what it promises. Run by llmsweep_fuzz and, guided by coverage, by
// libFuzzer (tools/dev/fuzz).
#pragma once

#include <string_view>
#include <vector>

namespace fuzz {

struct Target {
  std::string_view name;
  void (*run)(std::string_view input);
  int runs;                               // inputs of the smoke test; together well below a minute
  std::vector<std::string_view> corpora;  // folders of seeds, from the root of the sources
  std::vector<std::string_view> words;    // what random letters would take long to hit upon
};

const std::vector<Target>& targets();

void fuzz_spec(std::string_view input);
void fuzz_expression(std::string_view input);
void fuzz_quantity(std::string_view input);
void fuzz_configuration(std::string_view input);
void fuzz_trace_csv(std::string_view input);
void fuzz_trace_json(std::string_view input);
void fuzz_kernel_table(std::string_view input);
void fuzz_calibration(std::string_view input);
void fuzz_manifest(std::string_view input);

}  // namespace fuzz
