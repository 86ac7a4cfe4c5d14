// What a spec file may say for any leaf: it is read, or refused with its place, and what is read gives a row.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/leaves/leaves.h"
#include "tests/support/sensible_rows.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

TEST(HostileText, EveryLeafOfASpecIsReadOrRefusedWithItsPlace) {
  const std::vector<std::string> texts = {"0",
                                          "-1",
                                          "1e308",
                                          "1e999",
                                          "1e-320",
                                          "nan",
                                          "inf",
                                          "9223372036854775807",
                                          "18446744073709551616",
                                          "1e308 TiB",
                                          "-1 s",
                                          "1e300 s",
                                          "''",
                                          "~",
                                          "[1, 2]",
                                          "{a: 1}",
                                          "0x10",
                                          "true",
                                          "1_000",
                                          "\"\\0\""};
  for (const engine::Leaf& leaf : engine::leaf_table().leaves) {
    for (const std::string& text : texts) {
      const std::string yaml =
          "base: {device: toy, model: tiny, " + leaf.path + ": " + text + "}\n";
      const auto spec = read_toy(yaml);
      if (!spec) {
        for (const engine::Mistake& mistake : spec.mistakes()) {
          EXPECT_FALSE(mistake.what.empty()) << yaml;
          EXPECT_GT(mistake.where.line, 0) << yaml << mistake.what;
        }
        continue;
      }
      for (const engine::Scenario& scenario : admitted(*spec)) {
        toys::expect_sensible(toys::bounded(scenario), yaml);
      }
    }
  }
}

TEST(HostileText, WhatNoTypeCanHoldIsRefusedByRange) {
  for (const char* text :
       {"device.memory_capacity: 1e308 TiB", "request.prompt: 9223372036854775807",
        "serving.replicas: 1000000000000", "parallel.tp: 4294967296", "step.batch: 1e10"}) {
    const std::string mistakes =
        mistakes_of("base: {device: toy, model: tiny, " + std::string(text) + "}\n");
    EXPECT_FALSE(mistakes.empty()) << text;
  }
  EXPECT_EQ(mistakes_of("base: {device: toy, model: tiny, step.batch: 4294967296}\n"),
            "toy.yaml:1:46: error: step.batch: '4294967296' is out of range\n"
            "  hint: it must be at most 2147483647\n");
}

}  // namespace
}  // namespace sweep
