#include "results/archive.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "results/parquet_sink.h"
#include "results/run_folder.h"
#include "results/schema.h"
#include "tests/support/toy_rows.h"

namespace results {
namespace {

using tests::ToySweep;

// Every field exactly, null as null.
std::string field_texts(const engine::RequestRow& row) {
  std::string text;
  engine::RequestRow::fields(row, [&text](std::string_view, const auto& value, std::string_view) {
    if constexpr (engine::IsQuantity<std::decay_t<decltype(value)>>) {
      text += fmt::format("{} ", value.value);
    } else {
      text += fmt::format("{} ", std::int64_t(value));
    }
  });
  return text;
}

void expect_same(const engine::Outcome& a, const engine::Outcome& b) {
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.reason, b.reason);
  EXPECT_EQ(a.reason_class, b.reason_class);
  EXPECT_EQ(a.bound, b.bound);
  EXPECT_EQ(a.tier, b.tier);
  EXPECT_EQ(a.extrapolated, b.extrapolated);
  EXPECT_EQ(a.saturation, b.saturation);
  for (std::size_t i = 0; i < kMetrics; ++i) {
    const double x = metric_values(a.metrics)[i];
    const double y = metric_values(b.metrics)[i];
    EXPECT_TRUE(x == y || (std::isnan(x) && std::isnan(y))) << metric_table()[i].column;
  }
  ASSERT_EQ(a.kernels.size(), b.kernels.size());
  for (std::size_t i = 0; i < a.kernels.size(); ++i) {
    const engine::KernelRow& x = a.kernels[i];
    const engine::KernelRow& y = b.kernels[i];
    EXPECT_TRUE(x.phase == y.phase && x.op == y.op && x.family == y.family && x.bound == y.bound &&
                x.tier == y.tier && x.algorithm == y.algorithm &&
                x.extrapolated == y.extrapolated && x.work.calls == y.work.calls &&
                x.work.time == y.work.time && x.work.hidden == y.work.hidden &&
                x.work.flops == y.work.flops && x.work.bytes == y.work.bytes &&
                x.work.energy == y.work.energy)
        << "kernel " << i;
    // Written beside the time, in single precision.
    EXPECT_NEAR(x.work.low.value, y.work.low.value, 1e-6 * y.work.low.value) << "kernel " << i;
    EXPECT_NEAR(x.work.high.value, y.work.high.value, 1e-6 * y.work.high.value) << "kernel " << i;
  }
  ASSERT_EQ(a.requests.size(), b.requests.size());
  for (std::size_t i = 0; i < a.requests.size(); ++i) {
    EXPECT_EQ(field_texts(a.requests[i]), field_texts(b.requests[i])) << "request " << i;
  }
  EXPECT_EQ(a.timeline, b.timeline);
}

class ArchiveTest : public testing::Test {
 protected:
  const tests::TemporaryFolder temporary;
  const std::filesystem::path run = temporary.path() / "run";
  const ToySweep toy{.positions = 2000, .requests = 5};

  void SetUp() override {
    RunFolder folder = RunFolder::open(run, toy.identity()).value();
    ParquetSink sink(folder, toy.schema(), {.points_per_part = 300});
    tests::run_toy(toy, sink, sweep::IndexSet(sweep::IndexRange{0, toy.positions}));
  }
  void expect_all_found(Archive& archive) {
    sweep::Point point;
    engine::Outcome expected;
    for (std::uint64_t i = 0; i < toy.positions; i += 3) {
      toy.point(i, point);
      toy.outcome(i, expected);
      engine::Outcome found;
      ASSERT_EQ(archive.find(point.key, found), !toy.rejected(i)) << i;
      if (!toy.rejected(i)) expect_same(found, expected);
    }
  }
};

TEST_F(ArchiveTest, GivesBackTheVeryOutcomes) {
  auto archive = Archive::open(run);
  ASSERT_TRUE(archive.ok());
  EXPECT_EQ((*archive)->size(), 1800u);
  expect_all_found(**archive);
}

TEST_F(ArchiveTest, KeepsFewPartsButFindsAll) {
  auto archive = Archive::open(run, {.memory_bytes = 1});
  expect_all_found(**archive);
}

TEST_F(ArchiveTest, IsAskedFromManyThreads) {
  auto archive = Archive::open(run, {.memory_bytes = 400'000});
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([&] { expect_all_found(**archive); });
}

TEST_F(ArchiveTest, AnUnknownKeyIsNotFound) {
  auto archive = Archive::open(run);
  sweep::Point point;
  toy.point(1, point);
  engine::Outcome outcome;
  EXPECT_FALSE((*archive)->find({1, 2}, outcome));
  EXPECT_FALSE((*archive)->find({point.key.high + 1, point.key.low}, outcome));
}

TEST_F(ArchiveTest, APartThatCannotBeReadIsLeftOut) {
  std::filesystem::resize_file(run / "points/part-1of1-000000.parquet", 100);
  auto archive = Archive::open(run);
  ASSERT_TRUE(archive.ok());
  EXPECT_LT((*archive)->size(), 1800u);
  EXPECT_THAT((*archive)->notices(),
              testing::ElementsAre(testing::HasSubstr("its points are computed again")));
  sweep::Point point;
  engine::Outcome outcome;
  toy.point(0, point);
  EXPECT_FALSE((*archive)->find(point.key, outcome));
  toy.point(1999, point);
  EXPECT_TRUE((*archive)->find(point.key, outcome));
}

TEST_F(ArchiveTest, AFolderThatIsNoRunIsAMistake) {
  EXPECT_FALSE(Archive::open(temporary.path()).ok());
}

}  // namespace
}  // namespace results
