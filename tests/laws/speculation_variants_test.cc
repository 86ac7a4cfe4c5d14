// Speculation beyond a chain of fixed length: trees, lengths that follow the load, drafts that keep few tokens, and
// proposals that hold by chance. Each has a limit in which it is what was there before.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/speculation/acceptance.h"
#include "tests/support/random_load.h"
#include "tests/support/serving_laboratory.h"
#include "tests/support/speculation_toys.h"

namespace engine {
namespace {

using toys::Dice;
using toys::expect_same_figures;
using toys::Laboratory;
using toys::sound;
using toys::speculative;
using toys::with_draft;

constexpr SpeculationMethod kWithModel[] = {SpeculationMethod::draft_model, SpeculationMethod::mtp};

TEST(DraftTree, CountsCandidatesBehindEveryToken) {
  const DraftTree tree = *read_tree("4 2 1");
  EXPECT_EQ(tree.width(0), 4);
  EXPECT_EQ(tree.width(1), 8);
  EXPECT_EQ(tree.width(5), 8);  // one each beyond the list
  EXPECT_EQ(tree.tokens(0), 0);
  EXPECT_EQ(tree.tokens(3), 20);
  EXPECT_FALSE(tree.chain());
  EXPECT_TRUE(read_tree("")->chain());
  EXPECT_TRUE(read_tree("1 1")->chain());
  for (const char* wrong : {"0", "65", "1.5", "x", "2,2"}) EXPECT_FALSE(read_tree(wrong)) << wrong;
}

TEST(DraftTree, ACandidateMoreNeverHoldsLess) {
  const Acceptance given = *read_acceptance("0.6 0.3");
  // 1 - 0.4 * 0.4, and 1 - 0.7 * 0.85 * 0.85 where further ones are half as likely.
  EXPECT_DOUBLE_EQ(with_candidates(given, *read_tree("2"), 1)[0], 0.84);
  EXPECT_DOUBLE_EQ(with_candidates(given, *read_tree("1 3"), 0.5)[1], 1 - 0.7 * 0.85 * 0.85);
  EXPECT_EQ(with_candidates(given, *read_tree("1"), 1), given);
  double before = 0;
  for (const char* tree : {"1", "2", "2 2", "4 2", "4 4 2"}) {
    const double now = expected_tokens(with_candidates(given, *read_tree(tree), 0.7), 3);
    EXPECT_GT(now, before);
    before = now;
    EXPECT_NEAR(expected_tokens(with_candidates(given, *read_tree(tree), 0), 3),
                expected_tokens(given, 3), 1e-12);
  }
}

TEST(DraftTree, OfWidthOneIsAChain) {
  for (const SpeculationMethod method :
       {SpeculationMethod::draft_model, SpeculationMethod::heads, SpeculationMethod::mtp}) {
    for (const Task task : {Task::step, Task::request, Task::serve}) {
      Scenario chain = with_draft(speculative(method, 3, "0.7 0.6"));
      chain.task = task;
      chain.load.requests = 40;
      chain.load.lengths.output = 30;
      Scenario tree = chain;
      tree.speculation.tree = "1 1";
      const Outcome a = sound(chain), b = sound(tree);
      expect_same_figures(a, b, 0);
      EXPECT_EQ(a.kernels, b.kernels);
    }
  }
}

// Positions one after the other, each with all tokens of the one before it; then all of the tree at once.
TEST(DraftTree, AStepIsItsRoundsAndItsVerification) {
  Scenario tree = with_draft(speculative(SpeculationMethod::draft_model, 2, "0.5"));
  tree.speculation.tree = "4 2";
  const auto verified = [](std::int64_t layers, std::int64_t tokens, std::int64_t later) {
    Scenario scenario = speculative(SpeculationMethod::ngram, tokens - 1, "0.5");
    if (tokens == 1) scenario.speculation.tokens = 0;
    scenario.model.layers = layers;
    scenario.step.context += later;
    return sound(scenario).metrics.step_time.value;
  };
  const double drafts = verified(2, 1, 0) + verified(2, 4, 4);
  const Outcome whole = sound(tree);
  EXPECT_NEAR(whole.metrics.draft_time.value, drafts, 1e-12 * drafts);
  const double all = drafts + verified(toys::scenario().model.layers, 13, 0);
  EXPECT_NEAR(whole.metrics.step_time.value, all, 1e-12 * all);
  EXPECT_EQ(whole.metrics.proposed_tokens_per_step, 12);
}

// Output heads name their candidates at once.
TEST(DraftTree, OfHeadsCostsOnlyItsVerification) {
  Scenario chain = speculative(SpeculationMethod::heads, 3, "0.5");
  Scenario tree = chain;
  tree.speculation.tree = "3 2";
  const Metrics a = sound(chain).metrics, b = sound(tree).metrics;
  EXPECT_EQ(a.draft_time, b.draft_time);
  EXPECT_GT(b.step_time, a.step_time);
  EXPECT_GT(b.accepted_tokens_per_step, a.accepted_tokens_per_step);
}

TEST(SparseDraft, WithRoomForEverythingIsAFullDraft) {
  for (const SpeculationMethod method : kWithModel) {
    Scenario full = with_draft(speculative(method, 3, "0.7"));
    full.step.context = 1000;
    double before = 0;
    const double whole = sound(full).metrics.draft_time.value;
    for (const std::int64_t window : {10, 100, 400, 1001, 5000}) {
      Scenario sparse = full;
      sparse.speculation.draft_window = window;
      const double time = sound(sparse).metrics.draft_time.value;
      EXPECT_GE(time, before);
      if (window > 1001) {
        EXPECT_NEAR(time, whole, 1e-9 * whole);
      } else {
        EXPECT_LE(time, whole * (1 + 1e-9));
      }
      before = time;
    }
  }
}

// Proposing for itself, the model needs neither weights nor KV of its own, and reads no prompt twice.
TEST(SparseDraft, OfTheMainModelTakesNoMemory) {
  Scenario self = speculative(SpeculationMethod::self, 3, "0.9");
  self.speculation.draft_window = 64;
  Scenario plain = self;
  plain.speculation.tokens = 0;
  EXPECT_EQ(sound(self).metrics.weights, sound(plain).metrics.weights);
  EXPECT_EQ(sound(self).metrics.kv_per_token, sound(plain).metrics.kv_per_token);
  for (Scenario* scenario : {&self, &plain}) {
    scenario->task = Task::request;
    scenario->request = {.batch = 1, .prompt = 2000, .cached = 0, .output = 2};
  }
  EXPECT_EQ(sound(self).metrics.ttft, sound(plain).metrics.ttft);
  self.speculation.draft_window = 0;
  EXPECT_NE(evaluate(self).reason.find("needs speculation.draft_window"), std::string::npos);
}

// A closed loop that decodes most of its time, unless prompts are long.
Scenario busy(std::int64_t clients, std::int64_t tokens, const std::string& acceptance,
              std::int64_t prompt = 8) {
  Scenario scenario = with_draft(speculative(SpeculationMethod::draft_model, tokens, acceptance));
  scenario.task = Task::serve;
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.clients = clients;
  scenario.load.requests = 4 * clients + 8;
  scenario.load.lengths = {.prompt = prompt, .output = 400};
  scenario.load.measure = MeasureKind::whole;
  scenario.serving.max_num_seqs = 4096;
  scenario.serving.kv_blocks = 1 << 16;
  scenario.host = {};
  return scenario;
}

// A draft that does not pay reads no prompts, and proposes nothing where prompts fill a step.
TEST(DynamicLength, IsNeverWorseThanAnyFixedOneWithLongPrompts) {
  for (const char* acceptance : {"0.9", "0.5"}) {
    for (const std::int64_t clients : {16, 512}) {
      Scenario dynamic = busy(clients, 3, acceptance, 800);
      dynamic.speculation.dynamic = true;
      const double chosen = sound(dynamic).metrics.output.value;
      for (const std::int64_t tokens : {0, 1, 3}) {
        const double fixed = sound(busy(clients, tokens, acceptance, 800)).metrics.output.value;
        EXPECT_GE(chosen, fixed * (1 - 0.004)) << acceptance << " " << clients << " " << tokens;
      }
    }
  }
}

TEST(DynamicLength, IsNeverWorseThanAnyFixedOne) {
  std::int64_t shorter = 0;
  for (const char* acceptance : {"0.9", "0.6 0.4", "0.1"}) {
    double last = 1e9;
    for (const std::int64_t clients : {1, 32, 256, 2048}) {
      Scenario dynamic = busy(clients, 5, acceptance);
      dynamic.speculation.dynamic = true;
      const Metrics chosen = sound(dynamic).metrics;
      for (const std::int64_t tokens : {0, 1, 3, 5}) {
        const double fixed = sound(busy(clients, tokens, acceptance)).metrics.output.value;
        // The mean pace is rounded, and the last answers are alone.
        EXPECT_GE(chosen.output.value, fixed * (1 - 0.004))
            << acceptance << " " << clients << " " << tokens;
      }
      // Verification is the dearer the more there are.
      EXPECT_LE(chosen.proposed_tokens_per_step, last + 0.1) << acceptance << " " << clients;
      last = chosen.proposed_tokens_per_step;
      if (last < 4.5) ++shorter;
    }
  }
  EXPECT_GT(shorter, 4);
}

// Near the load at which a draft just pays, and whatever a round of requests does to the batch: what the draft reads comes
// back, or it reads nothing.
TEST(DynamicLength, LosesLittleWhereADraftHardlyPays) {
  for (const LengthKind distribution : {LengthKind::fixed, LengthKind::lognormal}) {
    for (const char* acceptance : {"0.8", "0.6 0.5", "0.4"}) {
      for (const std::int64_t prompt : {1000, 4000}) {
        for (const std::int64_t clients : {1, 8, 32, 64, 128, 512}) {
          const auto output = [&](std::int64_t tokens, bool dynamic) {
            Scenario scenario = busy(clients, tokens, acceptance, prompt);
            scenario.speculation.dynamic = dynamic;
            scenario.load.lengths.distribution = distribution;
            scenario.load.lengths.output = 100;
            return sound(scenario).metrics.output.value;
          };
          const double chosen = output(3, true), none = output(0, false);
          const double best = std::max({none, output(1, false), output(3, false)});
          EXPECT_GE(chosen, none * (1 - 0.02))
              << name_of(distribution) << " " << acceptance << " " << prompt << " " << clients;
          EXPECT_GE(chosen, best * (1 - 0.04))
              << name_of(distribution) << " " << acceptance << " " << prompt << " " << clients;
        }
      }
    }
  }
}

TEST(DynamicLength, WithoutHopeIsPlainDecoding) {
  Scenario off = busy(16, 0, "0");
  off.speculation.method = SpeculationMethod::ngram;
  Scenario dynamic = off;
  dynamic.speculation.tokens = 4;
  dynamic.speculation.dynamic = true;
  dynamic.speculation.lookup_time = Seconds{1e-4};
  const Metrics a = sound(off).metrics, b = sound(dynamic).metrics;
  EXPECT_EQ(b.proposed_tokens_per_step, 0);
  EXPECT_NEAR(a.e2e.value, b.e2e.value, 1e-9 * a.e2e.value);
  EXPECT_NEAR(a.makespan.value, b.makespan.value, 1e-9 * a.makespan.value);
}

// Served loads of all kinds, with a method, a tree and a choice of the rest.
toys::RandomCase random_variant(std::uint64_t number) {
  toys::RandomCase made = toys::random_case(number);
  Dice dice(91'000'000 + number);
  Scenario& scenario = made.scenario;
  Speculation& settings = scenario.speculation;
  settings.method = SpeculationMethod(dice.whole(1, 5));
  settings.tokens = dice.whole(1, 5);
  settings.acceptance = std::to_string(dice.unit());
  settings.dynamic = dice.chance(0.5);
  settings.draws = dice.chance(0.4) ? AcceptanceDraws::drawn : AcceptanceDraws::expected;
  if (settings.method != SpeculationMethod::ngram && dice.chance(0.5)) {
    settings.tree = dice.chance(0.5) ? "2 2" : "3 1 2";
  }
  if (settings.method == SpeculationMethod::draft_model) scenario = with_draft(scenario);
  if (settings.method == SpeculationMethod::self || dice.chance(0.3)) {
    settings.draft_window = scenario.model.window > 0 ? scenario.model.window : dice.whole(8, 90);
  }
  if (dice.chance(0.2)) {
    scenario.prefill.present = true;
    const Role drafted = scenario.draft;
    fill_roles(scenario);
    scenario.draft = drafted;
  }
  return made;
}

TEST(SpeculationVariants, TheClosedFormEqualsStepping) {
  int served = 0, dynamic = 0, drawn = 0;
  for (std::uint64_t number = 0; number < 240; ++number) {
    toys::RandomCase made = random_variant(number);
    const Outcome fast = evaluate(made.scenario, made.resources);
    made.scenario.serving.stepping = true;
    const Outcome slow = evaluate(made.scenario, made.resources);
    ASSERT_EQ(fast.status, slow.status) << fast.reason << slow.reason;
    ASSERT_NE(fast.status, Status::failed) << fast.reason << " " << number;
    expect_same_figures(fast, slow, 1e-9);
    ASSERT_FALSE(HasFailure()) << "case " << number;
    if (fast.status != Status::ok) continue;
    ++served;
    dynamic += made.scenario.speculation.dynamic;
    drawn += made.scenario.speculation.draws == AcceptanceDraws::drawn;
  }
  EXPECT_GT(served, 160);
  EXPECT_GT(dynamic, 50);
  EXPECT_GT(drawn, 40);
}

// Below the front door, with every sum recounted at every step.
TEST(SpeculationVariants, DrawsLoseNothing) {
  const Acceptance chances = reached(*read_acceptance("0.7 0.5 0.4"));
  SequencePaces paces{.drawn = true};
  for (SequencePaces::OfClass& of : paces.classes)
    of.chances.assign(chances.begin(), chances.end());
  double wasted = 0, preempted = 0;
  for (std::uint64_t number = 0; number < 200; ++number) {
    toys::RandomCase made = toys::random_case(number);
    made.scenario.parallel.pp = 1;
    Laboratory lab(std::move(made));
    PoolSetup pool = lab.pool();
    pool.pace = {.tokens = 4, .steps = 1, .queries = 4};
    pool.expected = 2.19;
    pool.own_paces = &paces;
    const ServingStats::Summary summary = lab.run({&pool, 1}, {});
    EXPECT_EQ(summary.tokens_in + summary.tokens_out + summary.tokens_refused, lab.offered_tokens())
        << number;
    for (const Replica& replica : lab.sim.replicas()) {
      EXPECT_EQ(replica.pool().free(), replica.pool().total()) << number;
    }
    ASSERT_FALSE(HasFailure()) << number;
    wasted += summary.wasted_tokens;
    preempted += summary.preemptions;
  }
  EXPECT_GT(wasted, 500);
  EXPECT_GT(preempted, 50);
}

// One client after the other, steps of one length: drawn and expected differ by chance, and by a step a request.
TEST(SpeculationVariants, DrawnIsExpectedWithinChanceAndAStep) {
  for (const char* acceptance : {"0.8 0.75 0.7 0.65", "0.3", "0.95"}) {
    for (const std::int64_t output : {7, 60, 300}) {
      Scenario scenario = speculative(SpeculationMethod::ngram, 4, acceptance);
      scenario.task = Task::serve;
      scenario.host.step_overhead = Seconds{1};  // sets the pace of every step
      scenario.load.arrivals = ArrivalKind::closed;
      scenario.load.clients = 1;
      scenario.load.requests = 600;
      scenario.load.lengths = {.prompt = 10, .output = output};
      scenario.load.measure = MeasureKind::whole;
      scenario.output.requests = true;
      const Outcome expected = sound(scenario);
      scenario.speculation.draws = AcceptanceDraws::drawn;
      const Outcome drawn = sound(scenario);
      double sum = 0, squares = 0;
      for (const RequestRow& row : drawn.requests) {
        const double seconds = (row.finish - row.arrival).value;
        sum += seconds;
        squares += seconds * seconds;
      }
      const double count = double(drawn.requests.size());
      const double mean = sum / count;
      const double chance = 3 * std::sqrt((squares / count - mean * mean) / count);
      // The expected pace is rounded by up to 1/120 of a token a step.
      const double rounding = mean / 120;
      EXPECT_NEAR(mean, expected.metrics.e2e.value, chance + rounding + 1.01)
          << acceptance << " " << output;
      EXPECT_NEAR(drawn.metrics.accepted_tokens_per_step, expected.metrics.accepted_tokens_per_step,
                  0.12);
    }
  }
}

TEST(SpeculationVariants, SayWhatCannotBe) {
  const auto reason = [](const Scenario& scenario) { return evaluate(scenario).reason; };
  Scenario lookup = speculative(SpeculationMethod::ngram, 3, "0.5");
  lookup.speculation.tree = "2";
  EXPECT_NE(reason(lookup).find("one continuation"), std::string::npos);
  Scenario large = speculative(SpeculationMethod::heads, 8, "0.5");
  large.speculation.tree = "8 8 8 8";
  EXPECT_NE(reason(large).find("1024 at most"), std::string::npos);
  Scenario file = speculative(SpeculationMethod::heads, 2, "");
  file.speculation.acceptance_file = "nowhere.csv";
  EXPECT_NE(reason(file).find("was not loaded"), std::string::npos);
  // A file's workloads are named where the one that was asked for is not among them.
  Resources resources;
  resources.acceptances["nowhere.csv"].by_workload["code"] = *read_acceptance("0.5");
  EXPECT_NE(evaluate(file, resources).reason.find("one of code"), std::string::npos);
  file.speculation.workload = "code";
  EXPECT_EQ(evaluate(file, resources).metrics.accepted_tokens_per_step, 1.75);
}

}  // namespace
}  // namespace engine
