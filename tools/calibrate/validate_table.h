// What the verb `validate kernels` does: errors of predictions, by family and format.
#pragma once

#include <string>
#include <vector>

#include "tools/calibrate/error_summary.h"
#include "tools/calibrate/measured_calls.h"
#include "tools/calibrate/predict.h"

namespace tools {

struct ErrorLine {
  std::string family;
  std::string format;  // "bf16", or "bf16/fp8" where the KV cache has another one
  ErrorSummary errors;
};

// One line a family and format, in the order of the families, and a last one, "all".
std::vector<ErrorLine> validate_calls(const std::vector<MeasuredCall>& calls,
                                      const Predictor& predictor);

std::string error_table_text(const std::vector<ErrorLine>& lines);
results::TextTable error_table(const std::vector<ErrorLine>& lines);

}  // namespace tools
