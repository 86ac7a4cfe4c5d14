// Fields of a base that count in no point: no mistake, since they may wait for another sweep, and told of.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "tests/sweep/inert_axes.h"

namespace sweep {
namespace {

using inert::axis, inert::base;

// Nor does a field of a sub-sweep's base count where only points of another sub-sweep would read it.
TEST(IdleFields, OverridesThatCountInNoPointOfTheirSubSweepAreNoted) {
  const auto notes_of = [](const std::string& branches) {
    const std::string text = base("task: serve") + axis("concat: [" + branches + "]");
    const auto spec = read_sweep_text(text, "toy.yaml", toy_library());
    EXPECT_TRUE(spec.ok()) << text << engine::to_text(spec.mistakes());
    if (!spec) return std::vector<std::string>{};
    EXPECT_TRUE(read_sweep_text(spec->resolved, "toy.yaml", toy_library())->notes.empty());
    return spec->notes;
  };
  const std::string plain = "{name: a, base: {load: {cv: 3}}}";
  EXPECT_EQ(notes_of(plain),
            std::vector<std::string>{"toy.yaml:3:38: 'load.cv' changes nothing here: it counts "
                                     "only where load.arrivals is gamma"});
  EXPECT_EQ(notes_of(plain + ", {name: b, base: {load: {arrivals: gamma}}}").size(), 1u);
  EXPECT_TRUE(notes_of("{name: a, base: {load: {arrivals: gamma, cv: 3}}}").empty());
  EXPECT_TRUE(notes_of("{name: a, base: {load.cv: 1}}").empty());  // as by default
  // An axis beside it, inside it, or a sub-sweep of it may bring what it needs; not one of another.
  const std::string brings = "axes: [{load.arrivals: [poisson, gamma]}]}";
  EXPECT_TRUE(notes_of("{name: a, base: {load.cv: 3}, " + brings).empty());
  EXPECT_EQ(notes_of(plain + ", {name: b, " + brings).size(), 1u);
  EXPECT_TRUE(notes_of("{name: a, base: {load.cv: 3}, axes: [{concat: [{name: c, base: "
                       "{load.arrivals: gamma}}, {name: d}]}]}")
                  .empty());
}

// A field of the base may wait for another sweep: it is no mistake, and is told of.
TEST(IdleFields, FieldsOfTheBaseThatCountNowhereAreNoted) {
  const auto notes_of = [](const std::string& text) {
    const auto spec = read_sweep_text(text, "toy.yaml", toy_library());
    EXPECT_TRUE(spec.ok()) << text << engine::to_text(spec.mistakes());
    return spec ? spec->notes : std::vector<std::string>{};
  };
  const std::string read = base("task: step, step: {phase: prefill, context: 64000}");
  EXPECT_EQ(notes_of(read), std::vector<std::string>{
                                "toy.yaml:1:69: 'step.context' changes nothing here: it counts "
                                "only where step.phase is decode"});
  // Some point reads it; it is as by default; the sweep was written out.
  EXPECT_TRUE(notes_of(read + axis("step.phase: [prefill, decode]")).empty());
  EXPECT_TRUE(notes_of(base("task: step, step: {phase: prefill, context: 1024}")).empty());
  const auto resolved = read_sweep_text(read, "toy.yaml", toy_library());
  EXPECT_TRUE(notes_of(resolved->resolved).empty());
  EXPECT_EQ(notes_of(base("task: serve, load: {cv: 3, turns: 2}")).size(), 1u);
  // A draft that no method asks is noted as one, until an axis may bring the method.
  const std::string drafted = base("task: serve, speculation: {draft: tiny}");
  EXPECT_EQ(notes_of(drafted),
            std::vector<std::string>{"toy.yaml:1:68: 'draft' changes nothing here: it counts only "
                                     "where speculation.method is draft_model"});
  EXPECT_TRUE(notes_of(drafted + axis("zip: {speculation.method: [none, draft_model], "
                                      "speculation.tokens: [0, 2]}"))
                  .empty());
  // One value of it is another one.
  const std::string chunks = base("task: train, parallel: {pp: 2}, train: {schedule: interleaved}");
  EXPECT_EQ(notes_of(chunks), std::vector<std::string>{
                                  "toy.yaml:1:74: 'train.schedule: interleaved' is 1f1b here: it "
                                  "differs only where train.virtual_stages is above 1"});
  EXPECT_TRUE(notes_of(chunks + axis("train.virtual_stages: [1, 2]")).empty());
}

// A trace is measured whole, also where somebody says that it is not.
TEST(IdleFields, AValueThatIsAnotherOneIsNotedThoughItIsTheUsualOne) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path() / "trace.csv";
  std::ofstream(path) << "arrival_s,prompt_tokens,output_tokens\n0,10,2\n1,10,2\n";
  const auto notes_of = [&](const std::string& load, const std::string& axes = "") {
    const auto spec = read_sweep_text(
        "base:\n  {device: toy, model: tiny, task: serve, load: {arrivals: trace, trace: " + path +
            ",\n  " + load + "}}\n" + axes,
        "toy.yaml", toy_library());
    EXPECT_TRUE(spec.ok()) << engine::to_text(spec.mistakes());
    return spec ? spec->notes : std::vector<std::string>{};
  };
  EXPECT_EQ(notes_of("measure: steady"),
            std::vector<std::string>{
                "toy.yaml:3:3: 'load.measure: steady' is whole here: it differs only where "
                "load.arrivals is poisson, gamma, deterministic or closed"});
  EXPECT_TRUE(notes_of("trace_speed: 1").empty());
  EXPECT_TRUE(
      notes_of("measure: steady, rate: 1 req/s", "axes:\n  - load.arrivals: [trace, poisson]\n")
          .empty());
}

}  // namespace
}  // namespace sweep
