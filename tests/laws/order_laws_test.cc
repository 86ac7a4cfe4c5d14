// Laws of operations that run beside one another: a step takes as long as the longest stream of each group, whatever
// runs in the others is hidden, and nothing is lost or counted twice.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "engine/base/random.h"
#include "engine/step/interval.h"
#include "engine/step/overlap.h"
#include "engine/step/step_time.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

struct Machine {
  Device device = toys::gpu();
  ModelSpec model = toys::model();
  Fabric fabric = fabric_of(Cluster{}, device);
  ModelShard shard = shard_of(model, {.tp = 8}, {});
  HostSettings host = toys::no_host();
  StepContext context() const { return {device, fabric, shard, host}; }
};

PlannedOp product(std::int64_t m, Beside beside) {
  return {.name = OpName::gate_up,
          .family = Family::gemm,
          .calls = 10,
          .grows = Grows::tokens,
          .beside = beside,
          .op = Gemm{.m = m, .n = 8192, .k = 4096}};
}
PlannedOp collective(double bytes, Beside beside) {
  return {.name = OpName::mlp_reduce,
          .family = Family::all_reduce,
          .calls = 10,
          .grows = Grows::tokens,
          .beside = beside,
          .op = Collective{.pattern = Pattern::all_reduce, .bytes = bytes, .ranks = 8}};
}

struct Timed {
  DeviceTime time;
  std::vector<KernelRow> rows;
};
Timed timed(std::initializer_list<PlannedOp> planned, const Machine& machine = {}) {
  OpList ops;
  for (const PlannedOp& op : planned) ops.add(op);
  Timed result;
  result.time = device_time(ops, machine.context(), Phase::prefill, &result.rows);
  return result;
}

Seconds alone(const PlannedOp& op) { return timed({op}).time.total(); }

// The message that takes as long as the product.
double equally_long(std::int64_t m) {
  const Seconds wanted = alone(product(m, {}));
  double low = 1, high = 1e12;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (alone(collective(middle, {})) < wanted ? low : high) = middle;
  }
  return low;
}

TEST(OrderLaws, ACollectiveBesideAProductOfEqualLengthIsHidden) {
  const std::int64_t m = 4096;
  const double bytes = equally_long(m);
  const Timed step = timed({product(m, {1, 0}), collective(bytes, {1, 1})});
  const Seconds one = alone(product(m, {}));
  EXPECT_NEAR(step.time.total() / one, 1, 1e-9);
  EXPECT_NEAR(step.time.communication.hidden / step.time.communication.time, 1, 1e-9);
  EXPECT_NEAR(step.time.communication.time / one, 1, 1e-6);
  EXPECT_EQ(step.time.compute.hidden.value, 0);
}

TEST(OrderLaws, AStepTakesAsLongAsTheLongestStreamOfEachGroup) {
  for (const std::int64_t m : {16, 1024, 16384}) {
    for (const double bytes : {1e3, 1e6, 1e8, 1e9}) {
      const Seconds compute = alone(product(m, {})), network = alone(collective(bytes, {}));
      // A product on its own, then two in a row beside a collective, then the same once more.
      const Timed step = timed({product(m, {}), product(m, {1, 0}), collective(bytes, {1, 1}),
                                product(m, {1, 0}), product(m, {2, 0}), collective(bytes, {2, 1})});
      const Seconds expected =
          compute + std::max(compute * 2, network) + std::max(compute, network);
      EXPECT_NEAR(step.time.total() / expected, 1, 1e-12) << m << " " << bytes;
      // What communication adds is what products do not cover.
      const Seconds uncovered =
          std::max(Seconds{0}, network - compute * 2) + std::max(Seconds{0}, network - compute);
      EXPECT_NEAR(step.time.communication.exposed().value, uncovered.value, 1e-12 * network.value);
    }
  }
}

TEST(OrderLaws, NothingBesideIsBitwiseASum) {
  const std::initializer_list<PlannedOp> ops = {product(64, {}), collective(1e6, {}),
                                                product(512, {})};
  Seconds sum;
  for (const PlannedOp& op : ops) sum += alone(op);
  const Timed step = timed(ops);
  EXPECT_EQ(step.time.compute.time + step.time.communication.time, step.time.total());
  EXPECT_NEAR(step.time.total() / sum, 1, 1e-15);
  for (std::size_t i = 0; i < step.rows.size(); ++i) {
    const Timed single = timed({*(ops.begin() + i)});
    EXPECT_EQ(step.rows[i], single.rows.front());
  }
}

// Arithmetic and traffic are of hidden work, too; of energy, what the board draws at rest meanwhile is counted once.
TEST(OrderLaws, HidingWorkMakesItNoLess) {
  Machine machine;
  machine.device.power_limit = Watts{500};
  machine.device.idle_power = Watts{50};
  machine.device.busy_power = machine.device.tensor_power = Watts{100};
  const Timed apart = timed({product(512, {}), collective(1e7, {})}, machine);
  const Timed beside = timed({product(512, {1, 0}), collective(1e7, {1, 1})}, machine);
  EXPECT_LT(beside.time.total(), apart.time.total());
  const auto same = [](const Work& a, const Work& b) {
    return a.calls == b.calls && a.time == b.time && a.flops == b.flops && a.bytes == b.bytes;
  };
  EXPECT_TRUE(same(apart.time.compute, beside.time.compute));
  EXPECT_TRUE(same(apart.time.communication, beside.time.communication));
  EXPECT_EQ(apart.time.compute.energy, beside.time.compute.energy);
  EXPECT_NEAR((apart.time.communication.energy - beside.time.communication.energy).value,
              (machine.device.idle_power * beside.time.communication.hidden).value, 1e-12);
  EXPECT_GT(beside.time.communication.hidden.value, 0);
}

// Rows of random lengths, intervals and savings, in random streams of two groups.
std::vector<StreamRow> drawn(std::uint64_t seed) {
  std::uint64_t next = 0;
  const auto draw = [&] { return uniform(seed, Stream::arrivals, next++); };
  std::vector<StreamRow> rows(2 + std::size_t(6 * draw()));
  for (StreamRow& row : rows) {
    row.beside = {.group = std::uint8_t(1 + int(2 * draw())), .stream = std::uint8_t(3 * draw())};
    Work& work = row.row.work;
    work.time = Seconds{draw() < 0.1 ? 0 : draw()};
    work.low = work.time * draw();
    work.high = work.time * (1 + draw());
    for (Seconds& saved : work.saved.by_part) saved = work.time * draw();
  }
  return rows;
}

TEST(OrderLaws, OfAnyStreamsTheLongestIsTheTimeAndTheInterval) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    std::vector<StreamRow> rows = drawn(seed);
    double time[2][kMostStreams] = {}, low[2][kMostStreams] = {}, high[2][kMostStreams] = {};
    for (const StreamRow& row : rows) {
      const int group = row.beside.group - 1;
      time[group][row.beside.stream] += row.row.work.time.value;
      low[group][row.beside.stream] += row.row.work.low.value;
      high[group][row.beside.stream] += row.row.work.high.value;
    }
    const std::vector<StreamRow> before = rows;
    overlap(rows, toys::gpu());
    Work sum;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Work& work = rows[i].row.work;
      EXPECT_EQ(work.time, before[i].row.work.time);
      EXPECT_GE(work.hidden.value, 0);
      EXPECT_LE(work.hidden, work.time);
      EXPECT_LE(work.low.value, work.exposed().value * (1 + 1e-12));
      EXPECT_GE(work.high.value, work.exposed().value * (1 - 1e-12));
      for (std::size_t part = 0; part < work.saved.by_part.size(); ++part) {
        EXPECT_GE(work.saved.by_part[part].value, -1e-12);
        EXPECT_LE(work.saved.by_part[part].value,
                  before[i].row.work.saved.by_part[part].value * (1 + 1e-12));
      }
      sum.add(work);
    }
    const auto longest = [](const double(&streams)[2][kMostStreams]) {
      return *std::ranges::max_element(streams[0]) + *std::ranges::max_element(streams[1]);
    };
    EXPECT_NEAR(sum.exposed().value, longest(time), 1e-12);
    EXPECT_NEAR(sum.low.value, longest(low), 1e-12);
    EXPECT_NEAR(sum.high.value, longest(high), 1e-12);
  }
}

// A part saves what shortens the longest stream, and no more than brings it down to the next.
TEST(OrderLaws, WhatIsHiddenSavesNothing) {
  const Timed step = timed({product(16384, {1, 0}), collective(1e6, {1, 1})});
  EXPECT_EQ(step.time.saved()[Bound::network].value, 0);
  EXPECT_GT(step.time.saved()[Bound::compute].value, 0);
  const Seconds network = alone(collective(1e6, {}));
  EXPECT_LE(step.time.saved()[Bound::compute], step.time.total() - network);
}

// Stages of a pipeline, however the layers are dealt out, do what the whole model does.
TEST(OrderLaws, StagesTogetherAreTheWholeModel) {
  for (const ModelSpec& model : {toys::model(), toys::mixture(), toys::latent()}) {
    const ModelShard shard = shard_of(model, {.tp = 2, .pp = 3}, {});
    BatchShape batch;
    add_prefill(batch, 2, 128, 0, 0);
    add_decode(batch, 3, 100, 0);
    batch.sampled = 5;
    OpList whole, parts;
    token_ops(shard, batch, whole);
    attention_ops(shard, batch, whole);
    StageSpan first{.layers = shard.layers, .last = false}, middle = first, last = first;
    first.layers.full = 1, middle.layers.full = 4, last.layers.full -= 5;
    auto& deal = model.is_moe() ? first.layers.mixture : first.layers.dense;
    const std::int64_t all = deal;
    deal = 1;
    (model.is_moe() ? middle.layers.mixture : middle.layers.dense) = 4;
    (model.is_moe() ? last.layers.mixture : last.layers.dense) = all - 5;
    middle.first = last.first = false;
    last.last = true;
    std::array<double, enum_names(OpName{}).size()> calls{};
    for (const PlannedOp& op : whole) calls[std::size_t(op.name)] += op.calls;
    for (const StageSpan& span : {first, middle, last}) {
      parts.clear();
      token_ops(shard, span, batch, parts);
      attention_ops(shard, span, batch, parts);
      for (const PlannedOp& op : parts) calls[std::size_t(op.name)] -= op.calls;
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(calls[i], 0) << model.name << " " << name_of(OpName(i));
    }
  }
}

// Whether collectives take multiprocessors is a matter of the device. Where a sweep makes it smaller or larger, more are never slower.
TEST(OrderLaws, MoreMultiprocessorsLeaveMoreBesideACollective) {
  for (const std::int64_t rated : {2, 8, 132}) {
    Device device = toys::gpu();
    device.rated_multiprocessors = rated;
    double before = std::numeric_limits<double>::infinity();
    for (const std::int64_t count : {1, 4, 15, 16, 17, 32, 64, 132, 264}) {
      device.multiprocessors = count;
      const double longer = longer_beside(Seconds{1}, Seconds{1}, taken_of(16, device)).value;
      EXPECT_LE(longer, before) << count << " of a device of " << rated;
      EXPECT_EQ(longer > 0, rated > 16) << count << " of a device of " << rated;
      before = longer;
    }
  }
}

}  // namespace
}  // namespace engine
