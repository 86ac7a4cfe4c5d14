// KV blocks from host memory to an H200, measured by tools/gpu/kv_copies.py. Nothing is fitted to these rows: what a copy takes
// is read off copies of one size at a time (kernels.csv.gz).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/kernels/copy.h"
#include "tests/support/csv_rows.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

TEST(MeasuredKvCopies, PiecesTakeTheirStartsAndTheLink) {
  const Device device = toys::shipped("devices", "h200-sxm").device;
  const MessageLine line =
      copies_over(rates_of(device.host_link), device,
                  toys::shipped_resources().calibrations.by_name.at("h200-sxm").get());
  std::vector<double> errors;
  for (const toys::CsvRow& row : toys::csv_rows("calibration/h200-sxm/kv_copies.csv")) {
    if (row.at("direction") != "host_to_device" || row.at("beside") != "nothing") continue;
    const bool whole = row.at("way") == "whole";
    if (!whole && row.at("way") != "copies") continue;
    const double piece = std::stod(row.at("piece_bytes")), pieces = std::stod(row.at("pieces"));
    const double predicted =
        whole ? line.of(Bytes{piece * pieces}).value : pieces * line.of(Bytes{piece}).value;
    errors.push_back(std::abs(predicted / std::stod(row.at("seconds")) - 1));
    EXPECT_LT(errors.back(), 0.2) << row.at("way") << ' ' << piece;
  }
  ASSERT_EQ(errors.size(), 22U);
  std::ranges::sort(errors);
  EXPECT_LT(errors[errors.size() / 2], 0.05);
}

}  // namespace
}  // namespace engine
