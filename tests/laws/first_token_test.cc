// Where a prompt is read by one deployment and answered by another: which of them makes the first token that the client gets, and when.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/evaluate.h"
#include "tests/support/shipped.h"
#include "tests/support/speculation_toys.h"

namespace engine {
namespace {

using toys::expect_same_figures;
using toys::sound;

constexpr std::int64_t kPrompt = 700, kOutput = 9;

Scenario apart(FirstToken first) {
  Scenario scenario = toys::scenario();
  scenario.transfer.first_token = first;
  scenario.transfer.link = {.topology = Topology::fabric,
                            .bandwidth = BytesPerSecond{50e9},
                            .latency = Seconds{1e-4},
                            .devices = 1024};
  scenario.prefill.present = true;
  fill_roles(scenario);
  return scenario;
}

Scenario request(FirstToken first) {
  Scenario scenario = apart(first);
  scenario.task = Task::request;
  scenario.request = {.batch = 1, .prompt = kPrompt, .output = kOutput};
  return scenario;
}

// One client at a time.
Scenario served(FirstToken first) {
  Scenario scenario = apart(first);
  scenario.task = Task::serve;
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.clients = 1;
  scenario.load.requests = 20;
  scenario.load.lengths = {.prompt = kPrompt, .output = kOutput};
  scenario.load.measure = MeasureKind::whole;
  scenario.output.requests = true;
  return scenario;
}

// A decode whose token attends to as many as `context`, itself included.
Seconds step_at(std::int64_t context) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::step;
  scenario.step = {.phase = StepPhase::decode, .batch = 1, .context = context};
  return evaluate(scenario).metrics.step_time;
}

// The prompt's last token is the input of one step more, the only one that attends to no more than the prompt.
TEST(FirstToken, MadeAnewComesAStepAfterTheKvInSingleRequests) {
  const Metrics comes = sound(request(FirstToken::decode)).metrics;
  const Metrics anew = sound(request(FirstToken::remade)).metrics;
  const double step = step_at(kPrompt).value;
  EXPECT_NEAR(anew.ttft.value, comes.ttft.value + step, 1e-12);
  EXPECT_NEAR(anew.e2e.value, comes.e2e.value + step, 1e-12);
  EXPECT_NEAR(anew.tpot.value, comes.tpot.value, 1e-12);
  EXPECT_LE(anew.ttft_low, anew.ttft);
  EXPECT_GE(anew.ttft_high, anew.ttft);
}

TEST(FirstToken, MadeAnewComesAStepAfterTheKvInServedLoads) {
  for (const TransferInitiative initiative : {TransferInitiative::pull, TransferInitiative::push}) {
    for (const FirstToken first : {FirstToken::decode, FirstToken::remade}) {
      Scenario scenario = served(first);
      scenario.transfer.initiative = initiative;
      const Metrics load = sound(scenario).metrics, one = sound(request(first)).metrics;
      EXPECT_NEAR(load.ttft.value, one.ttft.value, 1e-8) << name_of(first);
      EXPECT_NEAR(load.e2e.value, one.e2e.value, 1e-8) << name_of(first);
      EXPECT_NEAR(load.tpot.value, one.tpot.value, 1e-8) << name_of(first);
    }
  }
}

// An answer of two tokens takes two steps where the first is made anew, and one where it comes with the KV.
TEST(FirstToken, EveryTokenOfAnAnswerIsThenMadeByTheMainDeployment) {
  for (const std::int64_t output : {2, 5, 40}) {
    for (const FirstToken first : {FirstToken::decode, FirstToken::remade}) {
      Scenario scenario = served(first);
      scenario.load.lengths.output = output;
      const Outcome outcome = sound(scenario);
      const double steps = outcome.metrics.steps / double(outcome.requests.size());
      const double reading = 1, later = double(output - 1);
      EXPECT_EQ(steps, reading + later + (first == FirstToken::remade ? 1 : 0));
      for (const RequestRow& row : outcome.requests) EXPECT_EQ(row.output_tokens, output);
    }
  }
}

// The reader's token is made and dropped: nobody counts it.
TEST(FirstToken, TheOneThatIsDroppedIsNobodys) {
  for (const FirstToken first : {FirstToken::decode, FirstToken::remade}) {
    Scenario scenario = served(first);
    scenario.output.timeline = Seconds{1e-3};
    const Outcome outcome = sound(scenario);
    double made = 0, last = 0;
    for (const TimelineRow& row : outcome.timeline) last = std::max(last, row.time.value);
    for (const TimelineRow& row : outcome.timeline) made += row.output.value * 1e-3;
    double told = 0;
    for (const RequestRow& row : outcome.requests) {
      if (row.finish.value <= last) told += double(row.output_tokens);
    }
    EXPECT_NEAR(made, told, double(kOutput)) << name_of(first);
  }
}

// Beside others, too, the time between the KV's arrival and the first token is that of whole steps: what was under way, and one of its own.
TEST(FirstToken, MadeAnewIsNeverThereBeforeAStepOfItsOwn) {
  Scenario scenario = served(FirstToken::remade);
  scenario.load.clients = 12;
  scenario.load.requests = 200;
  scenario.load.lengths = {.distribution = LengthKind::lognormal, .prompt = 500, .output = 30};
  const Outcome outcome = sound(scenario);
  const double least = step_at(1).value;
  for (const RequestRow& row : outcome.requests) {
    if (row.output_tokens == 1) continue;
    EXPECT_GE((row.first_token - row.received).value, least * (1 - 1e-9)) << row.number;
  }
}

// Prompts that are read where they are answered have one first token, however short they are.
TEST(FirstToken, OfPromptsThatStayIsMadeOnce) {
  for (const std::int64_t prompt : {1, 2, 40}) {
    Scenario scenario = served(FirstToken::decode);
    scenario.load.lengths = {.distribution = LengthKind::lognormal, .prompt = prompt, .output = 3};
    scenario.load.clients = 4;
    scenario.transfer.local_prompt = 1 << 20;
    const Outcome comes = sound(scenario);
    scenario.transfer.first_token = FirstToken::remade;
    expect_same_figures(comes, sound(scenario), 0);
  }
}

// vLLM reads the last token of a prompt again of which all KV came (Scheduler._update_waiting_for_remote_kv); SGLang and TensorRT-LLM
// hand the reader's token over.
TEST(FirstToken, TheEngineSaysWhoMakesIt) {
  for (const bool remakes : {false, true}) {
    Scenario left = served(FirstToken::automatic);
    left.serving.remakes_first_token = remakes;
    left.prefill.deployment.serving.remakes_first_token = !remakes;  // it is not asked
    Scenario stated = left;
    stated.transfer.first_token = remakes ? FirstToken::remade : FirstToken::decode;
    expect_same_figures(sound(left), sound(stated), 0);
  }
  for (const char* name : {"vllm-v1", "vllm-v1-2025", "vllm-v1-small"}) {
    EXPECT_TRUE(toys::shipped("serving", name).serving.remakes_first_token) << name;
  }
  for (const char* name : {"sglang", "tensorrt-llm", "vllm-v0"}) {
    EXPECT_FALSE(toys::shipped("serving", name).serving.remakes_first_token) << name;
  }
}

}  // namespace
}  // namespace engine
