#include "results/run_manifests.h"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <vector>

#include "results/run_folder.h"
#include "sweep/space/shard.h"
#include "tests/support/temporary_folder.h"

namespace results {
namespace {

TEST(Manifest, LinesReadBackAsTheyWereWritten) {
  const tests::TemporaryFolder folder;
  const ManifestHeader header{.spec_hash = "abc",
                              .program_version = "0.1.0",
                              .program_commit = "8d535a7c01f2",
                              .model_version = 4,
                              .shard = {2, 3},
                              .positions = 1'000'000'000'000};
  PartRecord part{.sequence = 12,
                  .positions = {{0, 10}, {20, 999'999'999'999}},
                  .files = {},
                  .tally = {.by_status = {1, 2, 3}, .rejected = {4, 5}, .not_applicable = 6}};
  part.files[Table::points] = {"points/a.parquet", 5, 6, 0xfedcba9876543210u};
  part.files[table_named("requests")] = {"requests/a.parquet", 7, 8, 9};
  part.tally.reused = 1;
  part.tally.by_class[std::size_t(engine::ReasonClass::memory)] = 2;
  std::ofstream(folder.path() / "m") << to_line(header) << to_line(part) << "{\"part\":13,\"pos";
  const auto manifest = inspect_manifest(folder.path() / "m");
  ASSERT_TRUE(manifest.has_value());
  EXPECT_EQ(manifest->header, header);
  EXPECT_EQ(manifest->parts, std::vector<PartRecord>{part});
  EXPECT_TRUE(manifest->damage.empty());
  EXPECT_TRUE(manifest->torn);
  EXPECT_EQ(manifest->intact_bytes, to_line(header).size() + to_line(part).size());
}

TEST(Manifest, ShardsHaveNames) {
  EXPECT_EQ(to_text(Shard{2, 3}), "2of3");
  EXPECT_EQ(shard_from_text("2of3"), (Shard{2, 3}));
  for (const char* text : {"", "2", "2of", "of3", "0of3", "4of3", "2of3x", "x"}) {
    EXPECT_EQ(shard_from_text(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace results
