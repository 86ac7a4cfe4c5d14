// Proposals of models with scans: a state is kept after every token that may not hold, so that the last one that did is there.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "engine/memory/footprint.h"
#include "tests/support/calibrations.h"
#include "tests/support/hybrid_toy.h"

namespace engine {
namespace {

Scenario hybrid() {
  Scenario point = toys::hybrid();
  point.step.context = 1000;
  return point;
}

Scenario proposing(std::int64_t tokens, const char* acceptance = "0.8") {
  Scenario point = hybrid();
  point.speculation.method = SpeculationMethod::ngram;
  point.speculation.tokens = tokens;
  point.speculation.acceptance = acceptance;
  return point;
}

Outcome outcome_of(const Scenario& point) {
  Outcome outcome = evaluate(point, toys::transfer_resources());
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome;
}

double kept(const Scenario& point, double context) {
  return kv_bytes(shard_of(point.model, point.parallel, point.quant), context).value;
}

double scanned_bytes(const Outcome& outcome) {
  double bytes = 0;
  for (const KernelRow& row : outcome.kernels) {
    if (row.op == OpName::scan) bytes += row.work.bytes.value;
  }
  return bytes;
}

TEST(ScanSpeculation, AStateIsKeptForEveryProposal) {
  for (const std::int64_t tokens : {1, 3, 7}) {
    const Scenario point = proposing(tokens);
    const double sequence = kept(point, double(1000 + tokens)) + double(tokens) * kept(point, 0);
    EXPECT_DOUBLE_EQ(outcome_of(point).metrics.kv_cache.value, 8 * sequence) << tokens;
  }
}

// 29 layers of 128 heads with 64 x 128 numbers in 32 bits: read once, written after every token.
TEST(ScanSpeculation, VerificationWritesAllStates) {
  const double states = 8 * 29 * 128.0 * 64 * 128 * 4;
  const double plain = scanned_bytes(outcome_of(hybrid()));
  for (const std::int64_t tokens : {1, 3, 7}) {
    const double more = scanned_bytes(outcome_of(proposing(tokens))) - plain;
    EXPECT_GT(more, double(tokens) * states);
    EXPECT_LT(more, double(tokens) * states * 1.05);
  }
}

TEST(ScanSpeculation, WithoutLuckItIsSlowerAndWithLuckFaster) {
  const auto tpot = [](Scenario point) {
    point.task = Task::request;
    point.request = {.batch = 1, .prompt = 1000, .output = 200};
    return outcome_of(point).metrics.tpot;
  };
  const Seconds plain = tpot(hybrid());
  EXPECT_GT(tpot(proposing(4, "0")), plain);
  EXPECT_LT(tpot(proposing(4, "0.9")), plain);
}

TEST(ScanSpeculation, NoMoreSequencesRunThanHaveRoomForTheirStates) {
  for (const bool dynamic : {false, true}) {
    Scenario point = proposing(3);
    point.speculation.dynamic = dynamic;
    point.step.context = 72;
    const double fit = outcome_of(point).metrics.max_batch;
    point.task = Task::serve;
    point.serving.max_num_seqs = 4096;
    point.load.arrivals = ArrivalKind::closed;
    point.load.clients = std::int64_t(2 * fit);
    point.load.requests = std::int64_t(6 * fit);
    point.load.lengths = {.prompt = 32, .output = 40};
    const Metrics served = outcome_of(point).metrics;
    EXPECT_LE(served.batch_mean, fit * 1.01) << dynamic;
    EXPECT_GT(served.batch_mean, 0.8 * fit) << dynamic;
  }
}

// The layer that a hybrid proposes with attends; so do published ones.
TEST(ScanSpeculation, AnAddedLayerAttends) {
  Scenario point = proposing(2);
  point.speculation.method = SpeculationMethod::mtp;
  double attended = 0;
  for (const KernelRow& row : outcome_of(point).kernels) {
    if (row.role != DeploymentRole::draft) continue;
    EXPECT_NE(row.op, OpName::scan);
    if (is_attention(row.family)) attended += row.work.calls;
  }
  EXPECT_GT(attended, 0);
}

// A draft that scans goes back, too: it keeps as many states.
TEST(ScanSpeculation, ADraftKeepsItsStates) {
  Scenario point = proposing(3);
  point.speculation.method = SpeculationMethod::draft_model;
  point.draft.present = true;
  point.draft.deployment = point;
  ModelSpec& small = point.draft.deployment.model;
  small.layers = 4;
  small.scan.attention_layers = 1;
  Scenario draft = point;
  draft.model = small;
  const auto both = [&](double context) { return kept(point, context) + kept(draft, context); };
  EXPECT_DOUBLE_EQ(outcome_of(point).metrics.kv_cache.value, 8 * (both(1003) + 3 * both(0)));
}

// Twice as many clients as fit fill as much of the cache, however many states each of them has.
TEST(ScanSpeculation, AllStatesOfASequenceAreInUse) {
  double plain = 0;
  for (const std::int64_t tokens : {0, 1, 3}) {
    Scenario point = proposing(tokens);
    point.step.context = 72;
    const double fit = outcome_of(point).metrics.max_batch;
    point.task = Task::serve;
    point.serving.max_num_seqs = 4096;
    point.load.arrivals = ArrivalKind::closed;
    point.load.measure = MeasureKind::whole;
    point.load.clients = std::int64_t(2 * fit);
    point.load.requests = std::int64_t(6 * fit);
    point.load.lengths = {.prompt = 32, .output = 40};
    const Metrics served = outcome_of(point).metrics;
    const double used = served.kv_use / (served.batch_mean / fit);
    if (tokens == 0) plain = used;
    EXPECT_NEAR(used / plain, 1, 0.02) << tokens;
    EXPECT_LE(served.kv_use, served.kv_peak) << tokens;
  }
}

}  // namespace
}  // namespace engine
