// What the verb `kernels` does: a table with the engine's prediction beside every row.
#pragma once

#include <cstddef>

#include "tools/calibrate/errors/engine_calibrations.h"
#include "tools/calibrate/tables/kernel_table.h"

namespace tools {

struct PredictedTable {
  results::TextTable table;  // all columns of the input, then ours
  std::size_t predicted = 0;
  std::size_t extrapolated = 0;
};

// Adds predicted_s, tier, bound, extrapolated, lo_s and hi_s; empty in rows that have no model.
// Columns of these names that the table had already are replaced.
PredictedTable predict_table(KernelTable table, TablePredictor& predictors);

}  // namespace tools
