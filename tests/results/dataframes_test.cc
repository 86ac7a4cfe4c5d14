// pandas, Polars and DuckDB, the real ones, read a run folder with one line each.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "results/parquet_sink.h"
#include "results/run_folder.h"
#include "tests/support/paths.h"
#include "tests/support/toy_rows.h"

namespace results {
namespace {

TEST(Dataframes, ReadARunFolder) {
  const char* python = std::getenv("LLMSWEEP_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "LLMSWEEP_PYTHON names no Python with pandas";
  const tests::TemporaryFolder temporary;
  const auto run = temporary.path() / "run";
  const tests::ToySweep toy{.positions = 1000, .requests = 4};
  RunFolder folder = RunFolder::open(run, toy.identity()).value();
  ParquetSink sink(folder, toy.schema(), {.points_per_part = 200});
  tests::run_toy(toy, sink, sweep::IndexSet(sweep::IndexRange{0, toy.positions}));
  const std::string command = std::string(python) + " " + paths::source() +
                              "/tests/results/read_with_dataframes.py " + run.string();
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

}  // namespace
}  // namespace results
