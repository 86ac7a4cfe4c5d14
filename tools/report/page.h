// A report as one file: the page of tools/report/page with its scripts, styles and data put into it.
#pragma once

#include <filesystem>
#include <string>

#include "engine/base/result.h"
#include "tools/report/page_data.h"

namespace tools {

struct Report {
  std::string html;
  std::size_t points = 0;          // in the page
  std::size_t asked_for = 0;       // more than that where they were thinned out
  std::vector<std::string> notes;  // about the runs
};

// Mistakes: folders that are no runs, an expression that is wrong, a part of the page that is not there.
// Files that cannot be read are a results::Failure.
engine::Result<Report> make_report(const ReportOptions& options);

// Puts files in the place of <script src="x.js"></script> and <link rel="stylesheet" href="x.css">; each is
// looked for in these folders.
engine::Result<std::string> with_files(std::string html,
                                       const std::vector<std::filesystem::path>& folders);

}  // namespace tools
