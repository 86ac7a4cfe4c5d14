// Slips of the keyboard: whatever a valid spec is turned into, reading it gives either a space or
// mistakes with a place, and never a crash.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/base/random.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

const std::string kValid = R"(base:
  task: step
  device: {from: toy, l2_capacity: 33 MB, scale_up: {bandwidth: 1 TB/s}}
  model: tiny
  parallel: {tp: 8, pp: 1}
  quant: {weights: bf16, kv: fp8}
axes:
  - device: [toy, {value: {from: toy-wide, clock: 1.1 GHz}, label: fast}]
  - device.memory_bandwidth: {geometric: [2 TB/s, 16 TB/s], count: 4}
  - step.phase: [prefill, decode]
  - step.prompt: {values: [128, 256], when: "step.phase == 'prefill'"}
  - zip: {parallel.dp: [1, 2], step.context: [1024, 2048]}
  - concat:
      - {name: one, base: {model: small}, axes: [{step.cached: [1, 2]}], require: ["step.cached < 2"]}
      - [{host.mode: [eager, graph]}]
  - sample: {latin_hypercube: 3, of: {device.clock: [1 GHz, 2 GHz], request.batch: [1, 9]}}
  - step.batch: {powers_of_two: [1, 256]}
require: ["parallel.tp <= 8", {expr: "step.batch * step.context <= 1000000", reason: large}]
derive: {request.cached: "max(step.batch, 2) / 2", request.prompt: "step.context"}
seed: 42
replicates: 2
limit: 1_000_000
)";

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : seed_(seed) {}

  std::string run(std::string text) {
    for (std::uint64_t i = 0, count = 1 + below(4); i < count && !text.empty(); ++i) mutate(text);
    return text;
  }

 private:
  std::uint64_t below(std::uint64_t limit) {
    return engine::random_bits(seed_, engine::Stream::sampling, counter_++) % limit;
  }

  void mutate(std::string& text) {
    static const std::string odd = " :,-[]{}'\"#&*!|>%@`?\t\n0159.eEaz_$/\\<=+()\x80\xff";
    const std::size_t at = below(text.size());
    switch (below(6)) {
      case 0:
        text[at] = odd[below(odd.size())];
        return;
      case 1:
        text.erase(at, 1 + below(5));
        return;
      case 2:
        text.insert(at, 1, odd[below(odd.size())]);
        return;
      case 3: {  // one piece copied over another place
        const std::string piece = text.substr(at, 1 + below(20));
        text.insert(below(text.size()), piece);
        return;
      }
      case 4:  // a line lost
        text.erase(at, std::min(text.find('\n', at), text.size()) - at);
        return;
      case 5:  // cut short
        if (below(8) == 0) text.resize(at);
        return;
    }
  }

  std::uint64_t seed_;
  std::uint64_t counter_ = 0;
};

TEST(FuzzSpec, TheSeedIsValid) { EXPECT_EQ(mistakes_of(kValid), ""); }

TEST(FuzzSpec, AnySlipGivesASpaceOrMistakesWithAPlace) {
  int spaces = 0;
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const std::string text = Mutator(seed).run(kValid);
    SCOPED_TRACE(text);
    const auto spec = read_toy(text);
    if (!spec) {
      ++refused;
      ASSERT_FALSE(spec.mistakes().empty());
      for (const engine::Mistake& mistake : spec.mistakes()) {
        ASSERT_FALSE(mistake.where.file.empty());
        ASSERT_GT(mistake.where.line, 0) << mistake.what;
        ASSERT_GT(mistake.where.column, 0) << mistake.what;
        ASSERT_FALSE(mistake.what.empty());
      }
      continue;
    }
    ++spaces;
    PointBuilder builder(spec->space);
    Point point;
    const std::uint64_t step = spec->space.size() / 7 + 1;
    for (std::uint64_t i = 0; i < spec->space.size(); i += step) builder.build(i, point);
    // What was read can be written and read again.
    const auto again = read_sweep_text(spec->resolved, "run.yaml", Library(), InertAxes::allowed);
    ASSERT_TRUE(again.ok()) << engine::to_text(again.mistakes()) << spec->resolved;
    ASSERT_EQ(again->digest, spec->digest);
  }
  EXPECT_GT(spaces, 20);
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace sweep
