// What the verb `validate kernels` does: errors of predictions, by family and format.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/calibrate/fit/error_summary.h"
#include "tools/calibrate/tables/measured_calls.h"
#include "tools/calibrate/tables/predict.h"

namespace tools {

struct ErrorLine {
  std::string family;
  std::string format;  // "bf16", or "bf16/fp8" where the KV cache has another one
  ErrorSummary errors;
};

// One line a family and format, in the order of the families, and a last one, "all".
using PredictCall = std::function<Prediction(const MeasuredCall&)>;
std::vector<ErrorLine> validate_calls(const std::vector<MeasuredCall>& calls,
                                      const PredictCall& predict);
std::vector<ErrorLine> validate_calls(const std::vector<MeasuredCall>& calls,
                                      const Predictor& predictor);

std::string error_table_text(const std::vector<ErrorLine>& lines);
results::TextTable error_table(const std::vector<ErrorLine>& lines);

}  // namespace tools
