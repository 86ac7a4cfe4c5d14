#include "engine/host/host_time.h"

#include <gtest/gtest.h>

namespace engine {
namespace {

HostSettings round_host() {
  HostSettings host;
  host.launch_cost = Seconds{10e-6};
  host.graph_launch = Seconds{20e-6};
  host.kernel_gap = Seconds{1e-6};
  host.step_overhead = Seconds{100e-6};
  host.step_per_sequence = Seconds{1e-6};
  host.asynchronous = false;
  return host;
}

TEST(HostTime, EagerShortKernelsWaitForTheirLaunches) {
  // 100 launches of 10 us take a millisecond; the kernels only 0.4 ms of it.
  const HostTime time = host_time(Seconds{400e-6}, {.launches = 100, .sequences = 0},
                                  LaunchMode::eager, round_host());
  // ... and the 99 gaps between them 99 us.
  EXPECT_NEAR(time.gap.value, 99e-6, 1e-12);
  EXPECT_NEAR(time.launch.value, 10e-6 + 501e-6, 1e-12);
}

TEST(HostTime, EagerLongKernelsHideAllLaunchesButTheFirst) {
  const HostTime time =
      host_time(Seconds{5e-3}, {.launches = 100, .sequences = 0}, LaunchMode::eager, round_host());
  EXPECT_NEAR(time.launch.value, 10e-6, 1e-15);
}

TEST(HostTime, ReplayPaysOneLaunchAndAGapBetweenKernels) {
  const HostTime time = host_time(Seconds{400e-6}, {.launches = 100, .sequences = 0},
                                  LaunchMode::replay, round_host());
  EXPECT_NEAR(time.launch.value, 20e-6, 1e-15);
  EXPECT_NEAR(time.gap.value, 99e-6, 1e-15);
}

TEST(HostTime, WorkBetweenStepsCountsSequences) {
  const HostTime time =
      host_time(Seconds{1e-3}, {.launches = 1, .sequences = 50}, LaunchMode::replay, round_host());
  EXPECT_NEAR(time.between.value, 150e-6, 1e-15);
}

// 64 sequences of 1,000 tokens at 17 ns each: 1.1 ms in which the device waits, unless the next step is prepared meanwhile.
TEST(HostTime, ListsOfCachesGrowWithWhatIsInThem) {
  HostSettings host = round_host();
  host.step_per_kv_token = Seconds{17e-9};
  const StepWork work{.launches = 1, .sequences = 64, .kv_tokens = 64e3};
  for (const LaunchMode mode : {LaunchMode::eager, LaunchMode::replay}) {
    EXPECT_NEAR(host_time(Seconds{1e-3}, work, mode, host).between.value, 164e-6 + 1088e-6, 1e-12);
  }
  host.asynchronous = true;
  EXPECT_EQ(host_time(Seconds{1e-3}, work, LaunchMode::replay, host).between.value, 0);
}

TEST(HostTime, AsynchronousWorkShowsOnlyBeyondTheDevice) {
  HostSettings host = round_host();
  host.asynchronous = true;
  EXPECT_EQ(host_time(Seconds{1e-3}, {.launches = 1, .sequences = 50}, LaunchMode::replay, host)
                .between.value,
            0);
  EXPECT_NEAR(host_time(Seconds{30e-6}, {.launches = 1, .sequences = 50}, LaunchMode::replay, host)
                  .between.value,
              100e-6, 1e-12);
}

TEST(CapturedBatch, IsTheNextCapturedSizeUpToTheLargest) {
  HostSettings host;
  host.largest_graph = 512;
  const std::int64_t expected[][2] = {{1, 1},     {2, 2},     {3, 4},     {5, 8},    {9, 16},
                                      {250, 256}, {257, 272}, {512, 512}, {513, 513}};
  for (const auto& [batch, captured] : expected)
    EXPECT_EQ(captured_tokens({batch}, host), captured);
  host.largest_graph = 20;
  EXPECT_EQ(captured_tokens({18}, host), 20);
  host.mode = HostMode::eager;
  EXPECT_EQ(captured_tokens({3}, host), 3);
}

// Eighteen sequences with four proposals each are 90 tokens: more than the largest graph of so many tokens, fewer than that of so many
// sequences.
TEST(CapturedBatch, CountsTokensOrSequences) {
  HostSettings host;
  host.largest_graph = 64;
  const DecodeSize drafted{.sequences = 18, .queries = 5};
  EXPECT_EQ(launch_mode(true, drafted, host), LaunchMode::eager);
  EXPECT_EQ(captured_tokens(drafted, host), 90);
  host.graph_sizes = GraphSizes::sequences;
  EXPECT_EQ(launch_mode(true, drafted, host), LaunchMode::replay);
  EXPECT_EQ(captured_tokens(drafted, host), 24 * 5);
  EXPECT_EQ(launch_mode(true, {65, 1}, host), LaunchMode::eager);
}

}  // namespace
}  // namespace engine
