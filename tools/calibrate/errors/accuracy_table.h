// The short table of errors in README.md: one line a kind of kernel.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "tools/calibrate/errors/validate_table.h"
#include "tools/calibrate/fit/transfer_fit.h"

namespace tools {

struct AccuracyFigures {
  std::vector<LeftOut> left_out;
  std::vector<ErrorLine> trusted;  // public tables, one time a call
  std::vector<ErrorLine> between;  // network profiles, between nodes
  std::vector<ErrorLine> raw;      // every engine's row, by that engine's parameters
  std::vector<ErrorLine> own;      // our sweep, which is part of the fit
};

// Markdown, without a heading.
std::string accuracy_table(const AccuracyFigures& figures);

// Puts `table` between the lines "<!-- kernel errors -->" and "<!-- end of kernel errors -->" of a file.
engine::Result<bool> put_into(const std::filesystem::path& file, const std::string& table);

}  // namespace tools
