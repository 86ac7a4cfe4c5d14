// The clock of decode steps, chosen by a limit on their time: what it may cost, and what it must save.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/evaluate.h"
#include "engine/step/clock_levels.h"
#include "engine/step/step_table.h"
#include "tests/support/calibrations.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// A toy that is slow enough for its clock to matter, and says what it draws.
Device powered() {
  Device device = toys::gpu();
  device.peak.bf16 = FlopsPerSecond{5e12};
  device.idle_power = Watts{100};
  device.busy_power = Watts{150};
  device.tensor_power = Watts{300};
  device.memory_power = Watts{150};
  device.power_limit = Watts{900};
  return device;
}

Scenario clocked(ClockMode mode, double limit) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.device = powered();
  scenario.host = toys::no_host();
  scenario.load.rate = RequestsPerSecond{2};
  scenario.load.requests = 300;
  scenario.load.lengths = {.prompt = 100, .output = 60};
  scenario.slo.tpot.p99 = Seconds{limit};
  scenario.serving.clock.mode = mode;
  return scenario;
}

Metrics figures(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

// A processor that is set to a lower clock than the one its powers are stated for draws less while it waits for memory, and never
// more for the same work than at a higher clock and what rests draw meanwhile.
TEST(SetClock, LowerOnesDrawLess) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.device = powered();
  scenario.device.peak.bf16 = FlopsPerSecond{1e15};
  scenario.device.rated_clock = scenario.device.clock;
  scenario.load.rate = RequestsPerSecond{2};
  scenario.load.requests = 300;
  scenario.load.lengths = {.prompt = 100, .output = 60};
  const Hertz full = scenario.device.clock;
  double before = 0, power_before = 0;
  for (const double share : {0.3, 0.5, 0.7, 1.0, 1.2}) {
    scenario.device.clock = full * share;
    const Metrics at = figures(scenario);
    const double power = at.energy.value / at.makespan.value;
    EXPECT_GT(at.energy.value, before) << share;
    EXPECT_GT(power, power_before) << share;
    before = at.energy.value;
    power_before = power;
  }
}

// An H200 under 200 W runs at less than half of its clock where it computes: setting it to 0.6 of that, or to 1.2, changes nothing there,
// and under 700 W a clock of half leaves prompts as they are without a limit.
TEST(SetClock, UnderATightLimitItIsTheLimitThatCounts) {
  Scenario scenario = toys::shipped("models", "llama-3.1-8b");
  scenario.device = toys::shipped("devices", "h200-sxm").device;
  scenario.task = Task::step;
  scenario.step = {.phase = StepPhase::prefill, .batch = 8, .prompt = 1000};
  const auto time = [&](double clock, double watts) {
    Scenario set = scenario;
    set.device.clock = scenario.device.clock * clock;
    set.device.power_limit = Watts{watts};
    const Outcome outcome = evaluate(set, toys::transfer_resources());
    EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
    return outcome.metrics.step_time.value;
  };
  EXPECT_NEAR(time(0.6, 200) / time(1, 200), 1, 0.01);
  EXPECT_NEAR(time(1.2, 200) / time(1, 200), 1, 0.01);
  EXPECT_NEAR(time(0.5, 700), time(0.5, 1e5), 1e-9 * time(0.5, 1e5));
}

TEST(ClockBySlo, DrawsNoMoreAndKeepsALimitWithRoomForPrompts) {
  const double full_tpot = figures(clocked(ClockMode::full, 1)).tpot_p99.value;
  for (const double slack : {1.0, 1.2, 1.5, 2.0, 4.0}) {
    const double limit = full_tpot * slack;
    const Metrics full = figures(clocked(ClockMode::full, limit));
    const Metrics slo = figures(clocked(ClockMode::slo, limit));
    EXPECT_TRUE(std::isnan(full.clock_mean));
    EXPECT_LE(slo.clock_mean, 1);
    EXPECT_GE(slo.clock_mean, 0.5);
    EXPECT_LE(slo.energy.value, full.energy.value * (1 + 1e-9)) << slack;
    // Prompts that are read between steps take from the margin of a request, which a lower clock uses up.
    if (slack >= 2) {
      EXPECT_GE(slo.slo_attainment, full.slo_attainment - 0.02) << slack;
      EXPECT_LT(slo.energy.value, 0.95 * full.energy.value) << slack;
      EXPECT_LT(slo.clock_mean, 0.95) << slack;
    }
  }
}

// Steps on a line never take longer than the limit where the full clock keeps it.
TEST(ClockBySlo, NoStepIsLaterThanTheLimitUnlessEveryClockIs) {
  const Scenario scenario = clocked(ClockMode::slo, 1);
  const Fabric fabric = fabric_of(scenario.cluster, scenario.device);
  const ModelShard shard = shard_of(scenario.model, scenario.parallel, scenario.quant);
  const StepContext context{scenario.device, fabric, shard, scenario.host};
  StepTable full;
  full.reset(context);
  for (const double limit : {2e-3, 5e-3, 2e-2, 1e-1}) {
    StepTable table;
    table.reset(context, kAsPredicted, {}, {.lowest = 0.3, .limit = limit});
    for (std::int64_t sequences = 1; sequences <= 256; sequences *= 2) {
      for (const double tokens : {100.0, 1000.0, 9000.0}) {
        const Decodes decodes{.sequences = sequences, .context = tokens * double(sequences)};
        DecodeLine chosen, fastest;
        table.decode_line(decodes, chosen);
        full.decode_line(decodes, fastest);
        const double time = chosen.step(decodes.context, 0);
        const double least = fastest.step(decodes.context, 0);
        EXPECT_GE(time, least * (1 - 1e-12));
        EXPECT_LE(time, std::max(limit, least * (1 + 1e-12)));
      }
    }
  }
}

// Wherever a line begins, every step on it has the clock that it would have alone, and keeps the limit where a clock does. All
// layers have a window here: it is the host whose time grows with the caches.
TEST(ClockBySlo, AStepHasOneClockOnAnyLine) {
  Scenario scenario = clocked(ClockMode::slo, 1);
  scenario.model.window = 32;
  scenario.model.full_attention_every = 0;
  scenario.host.asynchronous = false;
  scenario.host.step_per_kv_token = Seconds{1e-5};
  const Fabric fabric = fabric_of(scenario.cluster, scenario.device);
  const ModelShard shard = shard_of(scenario.model, scenario.parallel, scenario.quant);
  const StepContext context{scenario.device, fabric, shard, scenario.host};
  const auto at = [](double tokens) {
    return Decodes{.sequences = 1, .context = tokens, .window = std::min(tokens, 32.0)};
  };
  StepTable plain;
  plain.reset(context);
  DecodeLine line, alone;
  plain.decode_line(at(300), line);
  const double limit = line.step(300, 32) * 1.05;
  StepTable table;
  table.reset(context, kAsPredicted, {}, {.lowest = 0.5, .limit = limit});
  bool lower = false, own = false;
  for (double begin = 40; begin < 600; begin += 7) {
    table.decode_line(at(begin), line);
    (line.clock_level < 0 ? own : lower) = true;
    for (double tokens = begin; tokens < std::min(line.context_end, 600.0); ++tokens) {
      table.decode_line(at(tokens), alone);
      EXPECT_EQ(alone.clock_level, line.clock_level) << begin << " " << tokens;
      const double most = line.clock_level < 0 ? std::numeric_limits<double>::infinity() : limit;
      EXPECT_LE(line.step(tokens, 32), most) << begin << " " << tokens;
    }
  }
  EXPECT_TRUE(lower && own);
}

TEST(ClockBySlo, WithoutALimitThereIsNothingToKeep) {
  Scenario scenario = clocked(ClockMode::slo, 1);
  scenario.slo = {};
  EXPECT_EQ(evaluate(scenario).reason,
            "serving.clock.mode slo needs a limit to keep: slo on tpot or itl, or tpot of a class "
            "in load.classes");
}

// What is promised to a class holds as what is promised to all: any batch may have somebody of it.
TEST(ClockBySlo, KeepsWhatIsPromisedToAClass) {
  const double fast = figures(clocked(ClockMode::full, 1)).tpot_p99.value;
  Scenario all = clocked(ClockMode::slo, fast * 1.3);
  all.load.classes.high = {.share = 0.5};
  Scenario by_class = all;
  by_class.slo.tpot.p99 = Seconds{fast * 100};
  const double loose = figures(by_class).clock_mean;
  by_class.load.classes.high.tpot = Seconds{fast * 1.3};
  const Metrics kept = figures(by_class);
  EXPECT_EQ(kept.clock_mean, figures(all).clock_mean);
  EXPECT_EQ(kept.tpot_p99, figures(all).tpot_p99);
  EXPECT_GT(kept.clock_mean, loose);
  // No other limit is needed; a class that nobody is of promises nothing.
  by_class.slo = {};
  EXPECT_EQ(figures(by_class).clock_mean, kept.clock_mean);
  by_class.load.classes.high.share = 0;
  EXPECT_EQ(evaluate(by_class).status, Status::infeasible);
}

// A step makes several tokens of a sequence where they are proposed, so a limit on the time per token leaves it as many times that.
TEST(ClockBySlo, AStepMayTakeTheTimeOfAllTokensThatItMakes) {
  const auto proposed = [](const char* acceptance, double step, bool dynamic) {
    Scenario scenario = clocked(ClockMode::slo, step);
    scenario.load.lengths.output = 61;  // fifteen steps of four tokens after the first one
    scenario.speculation = {.method = SpeculationMethod::ngram,
                            .tokens = 3,
                            .acceptance = acceptance,
                            .dynamic = dynamic,
                            .lookup_time = Seconds{0}};
    return scenario;
  };
  const double step = figures(proposed("0", 1e-9, false)).itl.value;
  for (const double slack : {1.2, 1.5, 2.0}) {
    Scenario by_gap = proposed("1", 1, false);
    by_gap.slo.tpot = {};
    by_gap.slo.itl.p99 = Seconds{4 * slack * step};
    const Metrics gap = figures(by_gap), all = figures(proposed("1", slack * step, false));
    EXPECT_EQ(all.clock_mean, gap.clock_mean) << slack;
    EXPECT_LT(all.clock_mean, 1) << slack;
    // Where nothing holds a step makes one token.
    EXPECT_GT(figures(proposed("0", slack * step, false)).clock_mean, all.clock_mean) << slack;
    EXPECT_LT(figures(proposed("1", slack * step, true)).clock_mean, 1) << slack;
  }
  // Whoever is guessed least often is promised as much.
  Scenario classes = proposed("1", 1.2 * step, false);
  const double before = figures(classes).clock_mean;
  classes.load.classes.low = {.share = 0.5, .acceptance = "0"};
  EXPECT_GT(figures(classes).clock_mean, before);
}

// Where the power limit leaves less than the clocks there are to choose from, none of them is slower than another, nor draws more.
TEST(ClockBySlo, NoClockIsSlowerThanTheOneThatTheLimitLeaves) {
  Scenario scenario = clocked(ClockMode::slo, 10);
  scenario.device.peak.bf16 = FlopsPerSecond{2e11};
  scenario.device.rated_clock = scenario.device.clock;
  scenario.device.power_limit = Watts{125};
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.clients = 4;
  scenario.serving.clock.lowest = 0.8;
  const Metrics slo = figures(scenario);
  scenario.serving.clock.mode = ClockMode::full;
  const Metrics full = figures(scenario);
  EXPECT_LT(slo.clock_mean, 0.9);
  EXPECT_NEAR(slo.tpot / full.tpot, 1, 1e-6);
  EXPECT_NEAR(slo.energy / full.energy, 1, 1e-6);
}

// A draft on the same devices has their clock: its steps take as long as on a device that is set to it.
TEST(ClockBySlo, ADraftBesideTheModelHasItsClock) {
  for (const SpeculationMethod method : {SpeculationMethod::draft_model, SpeculationMethod::mtp,
                                         SpeculationMethod::heads, SpeculationMethod::self}) {
    Scenario scenario = clocked(ClockMode::slo, 10);
    scenario.device.rated_clock = scenario.device.clock;
    scenario.device.peak.bf16 = FlopsPerSecond{2e11};  // arithmetic is what a draft takes, too
    scenario.load.arrivals = ArrivalKind::closed;
    scenario.load.clients = 1;
    scenario.load.requests = 20;
    scenario.load.measure = MeasureKind::whole;
    scenario.serving.clock.lowest = 0.5;
    scenario.speculation = {.method = method,
                            .tokens = 3,
                            .acceptance = "0.5",
                            .draft_window = method == SpeculationMethod::self ? 64 : 0,
                            .draft_overhead = Seconds{0}};
    scenario.draft.present = method == SpeculationMethod::draft_model;
    fill_roles(scenario);
    const Metrics slow = figures(scenario);
    Scenario set = scenario;
    set.serving.clock.mode = ClockMode::full;
    const Metrics full = figures(set);
    for (Device* device : {&set.device, &set.draft.deployment.device}) {
      device->clock = device->clock * 0.5;
    }
    const Metrics half = figures(set);
    EXPECT_NEAR(slow.draft_time / half.draft_time, 1, 1e-9) << name_of(method);
    EXPECT_NEAR(slow.tpot / half.tpot, 1, 1e-9) << name_of(method);
    EXPECT_GT(slow.draft_time, full.draft_time) << name_of(method);
  }
}

}  // namespace
}  // namespace engine
