// What a report's page knows of the runs: which columns there are, as JSON, and their values, as blobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "tools/query/points.h"
#include "tools/report/blob.h"

namespace tools {

// How far the runs of a page are that go on while it is looked at.
struct RunProgress {
  std::uint64_t done = 0, positions = 0;
};

struct ReportOptions {
  std::vector<std::string> folders;
  std::string where;                 // empty: every point
  std::size_t most_points = 250000;  // more are thinned out evenly
  std::size_t most_kernels = 400000;
  std::optional<RunProgress> going_on;  // the page is written again, and reads itself again
};

// The rows of the points table that the page has, ascending.
struct PageRows {
  std::vector<std::uint32_t> rows;
  std::size_t asked_for = 0;       // before thinning out
  std::vector<std::string> notes;  // about what was asked for

  template <class T>
  std::vector<T> of(const std::vector<T>& all) const {
    std::vector<T> some;
    some.reserve(rows.size());
    for (const std::uint32_t row : rows) some.push_back(all[row]);
    return some;
  }
};
engine::Result<PageRows> page_rows(const RunRows& points, const ReportOptions& options);

// The axes, figures and results of the points, the facts of the runs, and which two figures to show first.
nlohmann::json points_data(const RunRows& points, const PageRows& rows, Blobs& blobs);

// Seconds of each point by family of kernels, and the kernels of as many points as there is room for.
// Null where the runs have no such table.
nlohmann::json kernels_data(const RunRows& points, const PageRows& rows,
                            const ReportOptions& options, Blobs& blobs);

// Quantiles of the requests' latencies of each point that has rows of requests. Null where none has.
nlohmann::json latency_data(const RunRows& points, const PageRows& rows, Blobs& blobs);

// Requests, cache and rate over time of each point that has a timeline. Null where none has.
nlohmann::json timeline_data(const RunRows& points, const PageRows& rows, Blobs& blobs);

// Finds the row of a page by run and index of the point, for tables that have a row for each part of a point.
class PageRowFinder {
 public:
  PageRowFinder(const RunRows& points, const PageRows& rows);
  static constexpr std::uint32_t kNotThere = ~std::uint32_t{0};
  // `run` is the number of the run's folder among those of the points.
  std::uint32_t find(std::size_t run, double index) const;

 private:
  struct Entry {
    double index;
    std::uint32_t row;
  };
  std::vector<std::vector<Entry>> entries_;  // of each run, by index
};

// The rows of a table of details with the page's row of each, for those runs that have the table.
struct DetailRows {
  RunRows table;
  std::vector<std::uint32_t> page_row;  // kNotThere: the page leaves this point out
};
// Nothing where no run has the table.
std::optional<DetailRows> detail_rows(const RunRows& points, const PageRows& rows,
                                      const std::string& table);

}  // namespace tools
