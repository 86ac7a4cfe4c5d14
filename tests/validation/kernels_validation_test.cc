// Errors against measurements must stay below what was reached when the parameters were made. The
// ceilings are a little above the figures of the README; `llmsweep validate all` prints them in full.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "sweep/language/sweep_spec.h"
#include "tests/support/calibrations.h"
#include "tests/support/paths.h"
#include "tools/calibrate/errors/load_calibration.h"
#include "tools/calibrate/errors/step_errors.h"
#include "tools/calibrate/errors/validate_table.h"
#include "tools/calibrate/tables/trusted_rows.h"

namespace tools {
namespace {

const sweep::Library kLibrary({paths::specs()});

engine::Device device_named(const char* name) {
  auto spec = sweep::read_named(kLibrary, "devices", name);
  EXPECT_TRUE(spec) << name;
  return spec->scenario.device;
}

// "gemm bf16" to its errors.
std::map<std::string, ErrorSummary> errors_of(const std::vector<ErrorLine>& lines) {
  std::map<std::string, ErrorSummary> errors;
  for (const ErrorLine& line : lines) errors[line.family + " " + line.format] = line.errors;
  return errors;
}

class PublicTables : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(paths::shared()) / "data" / "kernels";
    if (!std::filesystem::is_directory(folder_)) {
      GTEST_SKIP() << folder_ << " is not here: nothing to validate against";
    }
  }

  std::map<std::string, ErrorSummary> transfer_errors(const char* name, const char* file) const {
    const engine::Device device = device_named(name);
    const auto table = read_kernel_table(folder_ / file, Times::needed);
    EXPECT_TRUE(table) << engine::to_text(table.mistakes());
    return errors_of(
        validate_calls(trusted_calls(*table, device.architecture), {device, &toys::transfer()}));
  }

  std::filesystem::path folder_;
};

TEST_F(PublicTables, TransferOnA100) {
  auto errors = transfer_errors("a100-80gb-sxm", "a100_sxm.csv.gz");
  EXPECT_LT(errors["gemm bf16"].mean, 0.10);
  EXPECT_LT(errors["attn_prefill bf16"].mean, 0.12);
  EXPECT_LT(errors["attn_decode bf16"].mean, 0.16);
  EXPECT_LT(errors["moe bf16"].mean, 0.18);
  EXPECT_GT(errors["gemm bf16"].rank_correlation, 0.99);
}

}  // namespace
}  // namespace tools
