// Speculative decoding: nothing proposed is nothing changed, every figure is made of steps that can be asked for on their
// own, and the closed form equals single stepping.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>

#include "engine/evaluate.h"
#include "engine/speculation/acceptance.h"
#include "tests/support/random_load.h"
#include "tests/support/speculation_toys.h"

namespace engine {
namespace {

using toys::Dice;

using toys::expect_same_figures;
using toys::sound;
using toys::speculative;
using toys::with_draft;

TEST(Acceptance, AddsUpOverPositions) {
  const auto all = read_acceptance("0.8 0.5");
  ASSERT_TRUE(all);
  EXPECT_DOUBLE_EQ(expected_tokens(*all, 0), 1);
  EXPECT_DOUBLE_EQ(expected_tokens(*all, 1), 1.8);
  EXPECT_DOUBLE_EQ(expected_tokens(*all, 2), 2.2);
  EXPECT_DOUBLE_EQ(expected_tokens(*all, 4), 2.5);  // the last one counts for all that follow
  EXPECT_DOUBLE_EQ(expected_tokens(*read_acceptance("1"), 5), 6);
  EXPECT_DOUBLE_EQ(expected_tokens(*read_acceptance("0"), 5), 1);
  for (const char* wrong : {"", " ", "1.1", "-0.1", "nan", "x", "0.5,0.4", "0.5 y"}) {
    EXPECT_FALSE(read_acceptance(wrong)) << wrong;
  }
}

TEST(Acceptance, BecomesAPaceThatNeverFallsWhereItRises) {
  double before = 0;
  for (double expected = 1; expected <= 9; expected += 0.0007) {
    const Pace pace = expected_pace(expected, 8);
    const double rounded = double(pace.tokens) / double(pace.steps);
    EXPECT_NEAR(rounded, expected, 1.0 / 120 + 1e-12);
    EXPECT_GE(rounded, before);
    EXPECT_LE(pace.steps, 60);
    EXPECT_EQ(pace.queries, 9);
    before = rounded;
  }
  EXPECT_EQ(expected_pace(2.4, 4).tokens, 12);
  EXPECT_EQ(expected_pace(2.4, 4).steps, 5);
  EXPECT_EQ(expected_pace(5, 4).tokens, 5);
}

// Tokens that hold or do not, drawn for each request and step: on average an answer takes the steps that the pace says,
// within what chance brings and one step.
TEST(Acceptance, DrawnTakesTheStepsOfThePace) {
  for (const char* text : {"0.8 0.75 0.7 0.65", "0.9", "0.3", "0.6 0.2"}) {
    const Acceptance acceptance = *read_acceptance(text);
    for (const std::int64_t proposed : {2, 4}) {
      const Pace pace = expected_pace(expected_tokens(acceptance, proposed), proposed);
      for (const std::int64_t output : {5, 40, 300}) {
        constexpr int requests = 2000;
        double sum = 0, squares = 0;
        for (int request = 0; request < requests; ++request) {
          const std::uint64_t seed = mixed_seed(7, std::uint64_t(request));
          std::int64_t made = 0, steps = 0;
          for (; made < output; ++steps) {
            std::int64_t held = 0;
            while (held < proposed &&
                   uniform(seed, Stream::sampling, std::uint64_t(steps * 64 + held)) <
                       acceptance[std::size_t(held)]) {
              ++held;
            }
            made += held + 1;
          }
          sum += double(steps);
          squares += double(steps * steps);
        }
        const double mean = sum / requests;
        const double error = 3 * std::sqrt((squares / requests - mean * mean) / requests);
        // The pace is rounded by up to 1/120 of a token a step.
        const double rounding = mean / 120;
        EXPECT_NEAR(mean, double(pace.steps_for(0, output)), error + rounding + 1)
            << text << " " << proposed << " " << output;
      }
    }
  }
}

TEST(Speculation, NothingProposedIsAbsence) {
  Scenario request = toys::scenario();
  request.task = Task::request;
  Scenario serve = toys::scenario();
  serve.task = Task::serve;
  serve.load.requests = 50;
  serve.load.lengths.output = 20;
  for (const Scenario& plain : {toys::scenario(), request, serve}) {
    for (const SpeculationMethod method :
         {SpeculationMethod::none, SpeculationMethod::ngram, SpeculationMethod::draft_model}) {
      Scenario off = with_draft(plain);
      off.speculation = {.method = method, .acceptance = "0.7"};
      off.speculation.tokens = method == SpeculationMethod::none ? 4 : 0;
      const Outcome a = sound(plain), b = sound(off);
      expect_same_figures(a, b, 0);
      EXPECT_EQ(a.kernels, b.kernels);
    }
  }
}

// k steps of the draft, each as long as the middle one, and a step that works on k + 1 tokens a sequence.
TEST(Speculation, AStepIsItsDraftAndItsVerification) {
  for (const std::int64_t tokens : {1, 2, 4, 7}) {
    const Outcome verified = sound(speculative(SpeculationMethod::ngram, tokens, "0.5"));
    const Outcome whole =
        sound(with_draft(speculative(SpeculationMethod::draft_model, tokens, "0.5")));
    Scenario draft = toys::scenario();
    draft.model.layers = 2;
    draft.step.context += (tokens - 1) / 2;
    const Outcome once = sound(draft);
    const double expected =
        verified.metrics.step_time.value + double(tokens) * once.metrics.step_time.value;
    EXPECT_NEAR(whole.metrics.step_time.value, expected, 1e-12 * expected);
    EXPECT_NEAR(whole.metrics.draft_time.value, double(tokens) * once.metrics.step_time.value,
                1e-12 * expected);
    EXPECT_EQ(verified.metrics.draft_time.value, 0);
    // Weights and KV of the draft lie beside the main model's.
    EXPECT_GT(whole.metrics.weights, verified.metrics.weights);
    EXPECT_NEAR(whole.metrics.kv_per_token.value, 1.2 * verified.metrics.kv_per_token.value, 1);
    // Verification reads weights and keys once: wider than a plain step, and far cheaper than k + 1 of them.
    const double plain = sound(toys::scenario()).metrics.step_time.value;
    EXPECT_GT(verified.metrics.step_time.value, plain);
    EXPECT_LT(verified.metrics.step_time.value, 1.5 * plain);
  }
}

// Acceptance says how many tokens a step makes, and nothing about how long it takes.
TEST(Speculation, AcceptanceMovesTokensAndNotTimes) {
  for (const SpeculationMethod method : {SpeculationMethod::draft_model, SpeculationMethod::ngram,
                                         SpeculationMethod::heads, SpeculationMethod::mtp}) {
    const auto at = [method](const std::string& acceptance) {
      return sound(with_draft(speculative(method, 4, acceptance))).metrics;
    };
    const Metrics none = at("0"), some = at("0.8 0.5"), all = at("1");
    EXPECT_EQ(none.step_time, all.step_time);
    EXPECT_EQ(none.accepted_tokens_per_step, 1);
    EXPECT_EQ(all.accepted_tokens_per_step, 5);
    EXPECT_DOUBLE_EQ(some.accepted_tokens_per_step, 2.5);
    EXPECT_NEAR(all.output.value, 5 * none.output.value, 1e-9 * all.output.value);
    EXPECT_EQ(none.wasted_tokens, 8 * 4);
    EXPECT_EQ(all.wasted_tokens, 0);
    EXPECT_DOUBLE_EQ(some.wasted_tokens, 8 * 2.5);
  }
}

TEST(Speculation, ARequestTakesFewerStepsAndNeverLongerForMoreAcceptance) {
  Scenario scenario = speculative(SpeculationMethod::ngram, 4, "1");
  scenario.task = Task::request;
  scenario.request = {.batch = 2, .prompt = 100, .cached = 0, .output = 102};
  scenario.host.step_overhead = Seconds{1};  // sets the pace of every step
  const Outcome all = sound(scenario);
  // 101 tokens after the first, five a step.
  EXPECT_NEAR(all.metrics.e2e.value, 1 + 21, 1e-9);
  EXPECT_EQ(all.metrics.wasted_tokens, 2 * 4);
  double before = 1e9;
  for (const char* acceptance : {"0", "0.1", "0.3 0.2", "0.3", "0.6", "0.9", "0.99", "1"}) {
    scenario.speculation.acceptance = acceptance;
    const double e2e = sound(scenario).metrics.e2e.value;
    EXPECT_LE(e2e, before * (1 + 1e-12));
    before = e2e;
  }
}

TEST(Speculation, ARequestReadsItsPromptForTheDraftToo) {
  Scenario scenario = with_draft(speculative(SpeculationMethod::draft_model, 2, "0"));
  scenario.task = Task::request;
  scenario.request = {.batch = 1, .prompt = 2000, .cached = 0, .output = 2};
  Scenario alone = scenario;
  alone.speculation.tokens = 0;
  Scenario prompt = toys::scenario();
  prompt.step = {.phase = StepPhase::prefill, .batch = 1, .prompt = 2000};
  prompt.model.layers = 2;
  const Outcome both = sound(scenario), plain = sound(alone), draft = sound(prompt);
  // But for logits, of which a draft's prompt has none.
  const double more = both.metrics.ttft.value - plain.metrics.ttft.value;
  EXPECT_LT(more, draft.metrics.step_time.value);
  EXPECT_GT(more, 0.8 * draft.metrics.step_time.value);
}

TEST(Speculation, WhatCannotBeSaysWhy) {
  const auto reason = [](const Scenario& scenario) { return evaluate(scenario).reason; };
  EXPECT_NE(reason(speculative(SpeculationMethod::draft_model, 2, "0.5")).find("needs a draft"),
            std::string::npos);
  EXPECT_NE(reason(speculative(SpeculationMethod::mtp, 2, "")).find("is not stated"),
            std::string::npos);
  EXPECT_NE(reason(speculative(SpeculationMethod::mtp, 2, "2")).find("no list of numbers"),
            std::string::npos);
  Scenario foreign = with_draft(speculative(SpeculationMethod::draft_model, 2, "0.5"));
  foreign.draft.deployment.model.vocabulary = 50000;
  EXPECT_NE(reason(foreign).find("vocabulary"), std::string::npos);
  Scenario of_stages = with_draft(speculative(SpeculationMethod::draft_model, 2, "0.5"));
  of_stages.draft.deployment.parallel.pp = 2;
  EXPECT_NE(reason(of_stages).find("a draft in stages"), std::string::npos);
}

// A batch is followed by the next as soon as every stage has done with it: the last one proposes, too; a model that proposes
// for itself passes through all of them; a draft elsewhere is one stage more, for as many batches as there are stages.
TEST(SpeculationInPipelines, TheBusiestStageSetsTheRate) {
  for (const std::int64_t stages : {1, 2, 5}) {
    const auto step_of = [&](Scenario scenario) {
      scenario.parallel.pp = stages;
      return sound(scenario).metrics;
    };
    const double batch = double(toys::scenario().step.batch);
    const auto expect_rate = [&](const Metrics& figures, double seconds) {
      const double rate = batch * figures.accepted_tokens_per_step / seconds;
      EXPECT_NEAR(figures.output.value, rate, 1e-9 * rate) << stages;
    };
    const double all = double(stages);
    const Metrics last = step_of(with_draft(speculative(SpeculationMethod::draft_model, 3, "0.6")));
    const double drafting = last.draft_time.value, verified = last.step_time.value - drafting;
    expect_rate(last, verified / all + drafting);
    Scenario self = speculative(SpeculationMethod::self, 3, "0.6");
    self.speculation.draft_window = 64;
    const Metrics every = step_of(self);
    expect_rate(every, every.step_time.value / all);
    Scenario apart = with_draft(speculative(SpeculationMethod::draft_model, 3, "0.6"));
    apart.draft.deployment.device.memory_bandwidth = BytesPerSecond{1e11};
    const Metrics elsewhere = step_of(apart);
    const double proposing = elsewhere.draft_time.value;
    expect_rate(elsewhere, std::max(elsewhere.step_time.value / all, proposing));
  }
}

// Steps of a second, and lookups of a quarter that keep the last stage: a batch comes round in 1 + 1 / 4 seconds, or several of
// them, where they wait for one another, each in its turn, in so many times the time of the last stage.
TEST(SpeculationInPipelines, BatchesWaitForOneAnothersProposals) {
  for (const AcceptanceDraws draws : {AcceptanceDraws::expected, AcceptanceDraws::drawn}) {
    for (const std::int64_t stages : {1, 2, 5}) {
      for (const std::int64_t clients :
           {std::int64_t{1}, std::min<std::int64_t>(2, stages), stages}) {
        Scenario scenario = speculative(SpeculationMethod::ngram, 1, "1");
        scenario.task = Task::serve;
        scenario.parallel.pp = stages;
        scenario.host = toys::no_host();
        scenario.host.step_overhead = Seconds{1};
        scenario.speculation.lookup_time = Seconds{0.25};
        scenario.speculation.draws = draws;
        scenario.load.arrivals = ArrivalKind::closed;
        scenario.load.clients = clients;
        scenario.load.requests = clients;
        scenario.load.lengths = {.prompt = 8, .output = 401};
        scenario.load.measure = MeasureKind::whole;
        // Two tokens a step; lanes take some rounds to fall into step.
        const double round = std::max(1.25, double(clients) * (1 / double(stages) + 0.25));
        EXPECT_NEAR(sound(scenario).metrics.tpot.value, round / 2, 0.02 * round)
            << stages << " " << clients;
      }
    }
  }
}

TEST(Speculation, ADraftOnOtherDevicesCountsThem) {
  Scenario together = with_draft(speculative(SpeculationMethod::draft_model, 3, "0.5"));
  Scenario apart = together;
  apart.draft.deployment.device.memory_bandwidth = BytesPerSecond{2e12};
  const Outcome a = sound(together), b = sound(apart);
  EXPECT_EQ(b.metrics.devices, 2 * a.metrics.devices);
  EXPECT_LT(b.metrics.draft_time, a.metrics.draft_time);
  EXPECT_LT(b.metrics.weights, a.metrics.weights);
  // What something is called is no difference.
  together.draft.deployment.device.name = "another";
  EXPECT_EQ(sound(together).metrics.devices, a.metrics.devices);
}

// Random served loads, each with one of the methods.
toys::RandomCase random_speculation(std::uint64_t number) {
  toys::RandomCase made = toys::random_case(number);
  Dice dice(77'000'000 + number);
  Scenario& scenario = made.scenario;
  scenario.speculation.method = SpeculationMethod(dice.whole(1, 4));
  scenario.speculation.tokens = dice.whole(1, 6);
  scenario.speculation.acceptance = dice.chance(0.1)   ? "0"
                                    : dice.chance(0.1) ? "1"
                                                       : std::to_string(dice.unit());
  scenario.speculation.draft_overhead = Seconds{dice.chance(0.5) ? 0 : dice.between(0, 3e-4)};
  if (scenario.speculation.method == SpeculationMethod::draft_model) {
    scenario = with_draft(scenario);
    if (dice.chance(0.3)) scenario.draft.deployment.parallel.tp = 1;
    if (dice.chance(0.2)) {
      scenario.draft.deployment.device.clock = Hertz{2e9};
      scenario.draft.deployment.parallel.pp = 1;
    }
  }
  if (dice.chance(0.2)) {
    scenario.prefill.present = true;
    const Role drafted = scenario.draft;
    fill_roles(scenario);
    scenario.draft = drafted;
  }
  return made;
}

TEST(Speculation, TheClosedFormEqualsStepping) {
  int served = 0;
  double wasted = 0;
  for (std::uint64_t number = 0; number < 300; ++number) {
    toys::RandomCase made = random_speculation(number);
    const Outcome fast = evaluate(made.scenario, made.resources);
    made.scenario.serving.stepping = true;
    const Outcome slow = evaluate(made.scenario, made.resources);
    ASSERT_EQ(fast.status, slow.status) << fast.reason << slow.reason;
    expect_same_figures(fast, slow, 1e-9);
    ASSERT_EQ(fast.kernels.size(), slow.kernels.size());
    for (std::size_t i = 0; i < fast.kernels.size(); ++i) {
      const KernelRow &a = fast.kernels[i], &b = slow.kernels[i];
      EXPECT_EQ(a.op, b.op);
      EXPECT_EQ(a.role, b.role);
      EXPECT_NEAR(a.work.calls, b.work.calls, 1e-9 * a.work.calls);
      const double scale = std::max(a.work.time.value, fast.metrics.makespan.value);
      EXPECT_NEAR(a.work.time.value, b.work.time.value, 1e-9 * scale);
    }
    ASSERT_FALSE(HasFailure()) << "case " << number << ", method "
                               << name_of(made.scenario.speculation.method);
    if (fast.status != Status::ok) continue;
    ++served;
    wasted += fast.metrics.wasted_tokens;
  }
  EXPECT_GT(served, 200);
  EXPECT_GT(wasted, 10'000);
}

// All time of all steps is in some row.
TEST(Speculation, TheRowsAddUpToTheBusyTime) {
  for (std::uint64_t number = 0; number < 60; ++number) {
    toys::RandomCase made = random_speculation(number);
    made.scenario.serving.replicas = 1;
    made.scenario.parallel.dp = 1;
    made.scenario.draft.deployment.parallel.dp = 1;
    made.scenario.prefill.present = false;  // its rows are of other devices
    const Outcome outcome = evaluate(made.scenario, made.resources);
    if (outcome.status != Status::ok) continue;
    double rows = 0;
    for (const KernelRow& row : outcome.kernels) rows += row.work.exposed().value;
    const double stages = double(made.scenario.parallel.pp);
    const double busy = outcome.metrics.utilization * outcome.metrics.makespan.value * stages;
    if (std::isnan(busy)) continue;
    EXPECT_NEAR(rows, busy, 1e-6 * busy + 1e-9) << number;
  }
}

// Where luck decides nothing, drawing it changes nothing that is held: not even of prompts and answers of a few tokens.
TEST(Speculation, DrawsHoldWhatIsHeldWithoutThem) {
  for (const char* acceptance : {"0", "1"}) {
    for (const std::int64_t prompt : {1, 100}) {
      Scenario scenario = speculative(SpeculationMethod::ngram, 3, acceptance);
      scenario.task = Task::serve;
      scenario.load.arrivals = ArrivalKind::closed;
      scenario.load.clients = 3;
      scenario.load.requests = 30;
      scenario.load.lengths = {.prompt = prompt, .output = 9};
      const double expected = sound(scenario).metrics.kv_use;
      scenario.speculation.draws = AcceptanceDraws::drawn;
      EXPECT_NEAR(sound(scenario).metrics.kv_use / expected, 1, 1e-9)
          << acceptance << " " << prompt;
    }
  }
}

TEST(Speculation, NothingVerifiedHasNoMean) {
  for (const AcceptanceDraws draws : {AcceptanceDraws::expected, AcceptanceDraws::drawn}) {
    Scenario scenario = speculative(SpeculationMethod::ngram, 3, "0.5");
    scenario.task = Task::serve;
    scenario.load.requests = 30;
    scenario.load.lengths = {.prompt = 50, .output = 1};
    scenario.speculation.draws = draws;
    EXPECT_TRUE(std::isnan(sound(scenario).metrics.accepted_tokens_per_step));
    EXPECT_TRUE(std::isnan(sound(scenario).metrics.proposed_tokens_per_step));
    EXPECT_EQ(sound(scenario).metrics.wasted_tokens, 0);
  }
}

}  // namespace
}  // namespace engine
