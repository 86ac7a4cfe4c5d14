#include "sweep/language/read_formula.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sweep/space/text_code.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

Node scalar(const std::string& text) {
  Node node;
  node.kind = Node::Kind::scalar;
  node.text = text;
  node.where = {"e.yaml", 1, 1};
  return node;
}

engine::Scenario toy_scenario() {
  engine::Scenario scenario;
  scenario.device.name = "toy";
  scenario.device.memory_capacity = engine::Bytes{100e9};
  scenario.parallel.tp = 8;
  scenario.step.batch = 64;
  scenario.step.context = 2048;
  scenario.step.phase = engine::StepPhase::decode;
  return scenario;
}

double value_of(const std::string& text) {
  Reading reading{Library()};
  const engine::LeafTable& table = engine::leaf_table();
  const auto formula =
      read_derivation(scalar(text), table.leaves[std::size_t(table.find_leaf("host.launch_cost"))],
                      "derive", reading);
  if (!formula) {
    ADD_FAILURE() << text << "\n" << engine::to_text(std::move(reading.mistakes).finish());
    return -1;
  }
  return Expression(*formula).value(toy_scenario());
}

std::string mistakes(const std::string& text) {
  Reading reading{Library()};
  EXPECT_FALSE(read_condition(scalar(text), "require", reading).has_value()) << text;
  return engine::to_text(std::move(reading.mistakes).finish());
}

TEST(Formula, ArithmeticAndFunctions) {
  EXPECT_EQ(value_of("step.batch * step.context + 1"), 64 * 2048 + 1);
  EXPECT_EQ(value_of("2 ^ 3 - -1"), 9);
  EXPECT_EQ(value_of("7 % 4"), 3);
  EXPECT_EQ(value_of("mod(7, 4)"), 3);
  EXPECT_EQ(value_of("min(3, 1, 2) + max(4, 9)"), 10);
  EXPECT_EQ(value_of("floor(2.7) + ceil(2.1) + round(2.5) + abs(-1)"), 2 + 3 + 3 + 1);
  EXPECT_EQ(value_of("sqrt(16) + log2(8) + log10(100) + ln(exp(1))"), 4 + 3 + 2 + 1);
  EXPECT_EQ(value_of("1_000 + 1e3"), 2000);
}

TEST(Formula, QuantitiesAreInBaseUnits) {
  EXPECT_EQ(value_of("device.memory_capacity / 1 GB"), 100);
  EXPECT_EQ(value_of("device.memory_capacity >= 80 GB"), 1);
  EXPECT_EQ(value_of("80 GB/step.batch"), 80e9 / 64);
  EXPECT_EQ(value_of("3.35 TB/s + 0"), 3.35e12);
}

TEST(Formula, NamesCompareWithTexts) {
  EXPECT_EQ(value_of("step.phase == 'decode'"), 1);
  EXPECT_EQ(value_of("\"prefill\" == step.phase"), 0);
  EXPECT_EQ(value_of("step.phase != 'prefill' && device == 'toy'"), 1);
  EXPECT_EQ(value_of("device.name == 'toyota'"), 0);
  EXPECT_EQ(value_of("quant.weights == quant.kv"), 1);
}

TEST(Formula, WordsAreOperators) {
  EXPECT_EQ(value_of("parallel.tp == 8 and not step.batch == 1"), 1);
  EXPECT_EQ(value_of("false or true"), 1);
  EXPECT_EQ(value_of("!(parallel.tp > 4)"), 0);
  // Both words for it deny what stands behind them, as `--where` reads them.
  for (const std::string no : {"!", "not "}) {
    EXPECT_EQ(value_of(no + "step.batch > 100"), 1) << no;
    EXPECT_EQ(value_of(no + "step.batch == 64 or parallel.tp == 8"), 1) << no;
    EXPECT_EQ(value_of(no + "step.batch > 100 and parallel.tp == 1"), 0) << no;
  }
  EXPECT_EQ(value_of("not parallel.tp > 4 or true"), 1);
  EXPECT_EQ(value_of("step.batch > 8 ? 1 : 2"), 1);
}

// 0 / 0 is not a number; neither is a field of a role that is not there.
TEST(Formula, WhatIsNotANumberIsFalseAndComparesWithNothing) {
  for (const std::string unknown : {"(0 / 0)", "prefill.parallel.tp", "mod(5, 0)"}) {
    for (const std::string compare : {" == 2", " != 2", " < 2", " <= 2", " > 2", " >= 2"}) {
      EXPECT_EQ(value_of(unknown + compare), 0) << unknown << compare;
    }
    EXPECT_EQ(value_of("2 != " + unknown), 0) << unknown;
    EXPECT_EQ(value_of("not " + unknown), 1) << unknown;
    EXPECT_EQ(value_of(unknown + " or false"), 0) << unknown;
    EXPECT_EQ(value_of("false or " + unknown), 0) << unknown;
    EXPECT_EQ(value_of(unknown + " and true"), 0) << unknown;
    EXPECT_EQ(value_of("true and " + unknown), 0) << unknown;
    EXPECT_EQ(value_of(unknown + " ? 1 : 2"), 2) << unknown;
    EXPECT_EQ(value_of("false or " + unknown + " ? 1 : " + unknown + " ? 3 : 4"), 4) << unknown;
    for (const std::string& call : {"min(1, " + unknown + ")", "min(" + unknown + ", 1)",
                                    "max(1, " + unknown + ")", "max(" + unknown + ", 1)"}) {
      EXPECT_TRUE(std::isnan(value_of(call))) << call;
    }
  }
  EXPECT_EQ(value_of("prefill.device != 'toy'"), 0);
  EXPECT_EQ(value_of("device != 'toy' or prefill.device == 'toy'"), 0);
}

TEST(Formula, ConditionsOfAChoiceAreWhole) {
  EXPECT_EQ(value_of("parallel.tp == 1 or step.batch == 64 ? 5 : 6"), 5);
  EXPECT_EQ(value_of("parallel.tp == 1 ? 5 : step.batch == 64 and parallel.tp == 8 ? 7 : 8"), 7);
  EXPECT_EQ(value_of("(2 > 1 ? 3 : 4) + (1 > 2 ? 30 : 40)"), 43);
  EXPECT_EQ(value_of("1 + 1 ? 0 : 1"), 0);
}

TEST(Formula, MistakesPointAtTheCharacter) {
  EXPECT_EQ(mistakes("step.bach <= 8"),
            "e.yaml:1:1: error: unknown name 'step.bach'\n  hint: did you mean 'step.batch'?\n");
  EXPECT_EQ(mistakes("step.batch <= "),
            "e.yaml:1:15: error: require: the expression ends too soon\n"
            "  hint: in \"step.batch <= \"\n");
  EXPECT_EQ(mistakes("(step.batch <= 8"),
            "e.yaml:1:17: error: require: a ')' is missing\n  hint: in \"(step.batch <= 8\"\n");
  EXPECT_EQ(mistakes("step.batch 8"),
            "e.yaml:1:12: error: require: an operator is missing before this\n"
            "  hint: in \"step.batch 8\"\n");
  EXPECT_EQ(mistakes("maxx(step.batch, 2) < 3"),
            "e.yaml:1:1: error: unknown function 'maxx'\n  hint: did you mean 'max'?\n");
  EXPECT_EQ(mistakes("step.phase == 'prefil'"),
            "e.yaml:1:15: error: 'step.phase' is never 'prefil'\n"
            "  hint: did you mean 'prefill'? one of: prefill, decode\n");
  EXPECT_EQ(mistakes("step.phase > 3"),
            "e.yaml:1:1: error: 'step.phase' is a name, not a number\n"
            "  hint: compare it with == or !=\n");
  EXPECT_EQ(mistakes("1 <= step.batch <= 8"),
            "e.yaml:1:17: error: comparisons cannot be chained\n  hint: write 'a < b && b < c'\n");
  EXPECT_EQ(mistakes("step.batch == 64 == true"),
            "e.yaml:1:18: error: comparisons cannot be chained\n  hint: write 'a < b && b < c'\n");
  EXPECT_EQ(mistakes("step.batch > 1 and and true"),
            "e.yaml:1:20: error: require: unexpected operator '&&'\n"
            "  hint: in \"step.batch > 1 and and true\"\n");
  EXPECT_EQ(
      mistakes("device.memory_capacity >= 80"),
      "e.yaml:1:27: error: '80' is not a quantity in B\n"
      "  hint: 'device.memory_capacity' is compared with a number and its unit, as in '80 GB'\n");
  EXPECT_EQ(mistakes("device.memory_capacity >= 80 GX"),
            "e.yaml:1:30: error: 'GX' is not a unit\n"
            "  hint: units are like GB, TB/s, TFLOP/s, ms, GHz, W, USD/h\n");
  EXPECT_EQ(mistakes("step == 3"),
            "e.yaml:1:1: error: 'step' has many fields\n"
            "  hint: name one of them, as in 'step.phase'\n");
}

TEST(Formula, OddTextsAreRefusedNotCompiled) {
  for (const char* text : {"",
                           " ",
                           "()",
                           "1,2",
                           "min()",
                           "&&",
                           "a=1",
                           "?:",
                           "1 ?",
                           "1 : 2",
                           "'x",
                           "@",
                           "step.batch = 8",
                           "step.batch & 8",
                           "min(1",
                           "1)",
                           "step.batch()",
                           "v0",
                           "_pi",
                           "sin(1)",
                           "2 GB 3 GB",
                           "step.phase",
                           "'decode'",
                           "not",
                           "..",
                           "1 2"}) {
    EXPECT_NE(mistakes(text), "") << text;
  }
}

TEST(TextCode, DiffersByText) {
  EXPECT_NE(text_code("prefill"), text_code("decode"));
  EXPECT_EQ(text_code("a"), text_code("a"));
  EXPECT_EQ(text_code("x"), double(std::uint64_t(text_code("x"))));
}

}  // namespace
}  // namespace sweep
