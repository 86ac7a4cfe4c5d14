// Columns of deployments beside the main one: there where a sweep names one, null where a point lacks it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "results/parquet_sink.h"
#include "results/reader.h"
#include "tests/support/toy_rows.h"
#include "tests/sweep/sweep_fixture.h"

namespace results {
namespace {

// The points table of a toy sweep, with outcomes that do not matter.
ParquetReader points_table(const sweep::SweepSpec& spec, const std::filesystem::path& folder) {
  auto run = RunFolder::open(
      folder, {.run_yaml = "roles", .spec_hash = "roles", .positions = spec.space.size()});
  ParquetSink sink(*run, results::schema_inputs(spec.space));
  auto chunk = sink.start_chunk();
  sweep::Tally tally;
  for (const sweep::BuiltPoint& built : sweep::all_points(spec)) {
    const engine::Outcome outcome;
    chunk->add(built.point, outcome);
    tally.count(outcome);
  }
  sink.finish_chunk(std::move(chunk), {0, spec.space.size()}, tally);
  sink.flush();
  return ParquetReader(table_files(folder, "points").at(0));
}

const std::string kBase = "base: {task: request, device: toy, model: tiny}\n";

TEST(RoleColumns, AreOnlyWhereTheSweepNamesTheRole) {
  const tests::TemporaryFolder folder;
  const auto names = points_table(sweep::toy_sweep(kBase + "axes: [{request.batch: [1, 2]}]\n"),
                                  folder.path() / "r")
                         .column_names();
  EXPECT_TRUE(std::ranges::none_of(
      names, [](const std::string& name) { return name.starts_with("prefill."); }));
}

TEST(RoleColumns, AreNullWhereThePointHasNoSuchDeployment) {
  const tests::TemporaryFolder folder;
  const ParquetReader table = points_table(
      sweep::toy_sweep(kBase + "axes:\n  - parallel.tp: [1, 2]\n"
                               "  - prefill: [none, {parallel: {pp: 2}, quant: {kv: fp8}}]\n"),
      folder.path() / "r");
  EXPECT_EQ(table.booleans("prefill.present"), (std::vector<std::uint8_t>{0, 1, 0, 1}));
  EXPECT_EQ(table.integers("prefill.parallel.tp"),
            (std::vector<std::int64_t>{kNullInteger, 1, kNullInteger, 2}));
  EXPECT_EQ(table.integers("prefill.parallel.pp"),
            (std::vector<std::int64_t>{kNullInteger, 2, kNullInteger, 2}));
  const auto device = table.texts("prefill.device");
  EXPECT_FALSE(device[0].has_value());
  EXPECT_EQ(device[1], "toy");
  const auto kv = table.texts("prefill.quant.kv");
  EXPECT_FALSE(kv[2].has_value());
  EXPECT_EQ(kv[3], "fp8");
  EXPECT_EQ(table.booleans("prefill.model.qk_norm"),
            (std::vector<std::uint8_t>{kNullBoolean, 0, kNullBoolean, 0}));
  const auto clock = table.numbers("prefill.device.clock");
  EXPECT_TRUE(std::isnan(clock[0]));
  EXPECT_EQ(clock[1], table.numbers("device.clock")[1]);
  EXPECT_EQ(table.texts("axis.prefill")[0], "none");
}

TEST(RoleColumns, OfARoleThatIsAlwaysThereAreFull) {
  const tests::TemporaryFolder folder;
  const ParquetReader table = points_table(
      sweep::toy_sweep("base: {task: request, device: toy, model: tiny, prefill: {parallel: {pp: "
                       "2}}}\naxes: [{parallel: [{tp: 1}, {tp: 2}]}]\n"),
      folder.path() / "r");
  for (const Column& column : table.columns()) {
    EXPECT_FALSE(column.name.starts_with("prefill.") && column.nullable) << column.name;
  }
  EXPECT_EQ(table.integers("prefill.parallel.tp"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(table.integers("prefill.parallel.pp"), (std::vector<std::int64_t>{2, 2}));
}

}  // namespace
}  // namespace results
