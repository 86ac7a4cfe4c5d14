// A field of the main deployment counts where a role has it from there and reads it; what no deployment reads is a mistake.
#include <gtest/gtest.h>

#include <string>

#include "tests/sweep/inert_axes.h"

namespace sweep {
namespace {

using inert::axis, inert::base, inert::said_of;

bool changes_nothing(const std::string& fields, const std::string& text) {
  return said_of(base("task: serve, load: {rate: 1 req/s}, " + fields) + axis(text))
             .find("changes nothing here") != std::string::npos;
}

TEST(InertAxesOfRoles, AFieldCountsWhereARoleReadsIt) {
  const std::string text = "serving.chunk: [256, 512]";
  const std::string main = "serving: {policy: vllm_v1}";
  EXPECT_TRUE(changes_nothing(main, text));
  EXPECT_TRUE(changes_nothing(main + ", prefill: {}", text));
  EXPECT_FALSE(changes_nothing(main + ", prefill: {serving: {policy: sarathi}}", text));
  // It is the reader's own.
  EXPECT_TRUE(changes_nothing(main + ", prefill: {serving: {policy: sarathi, chunk: 128}}", text));
}

const std::string kMixture = "model: {from: tiny, moe: {experts: 8}}, ";

std::string mixture(const std::string& fields) {
  return "base: {task: serve, device: toy, load: {rate: 1 req/s}, " + kMixture + fields + "}\n";
}

// Experts inside a replica are exchanged with nobody; those of a pool that reads prompts may be.
TEST(InertAxesOfRoles, TokensTravelWhereReplicasShareExperts) {
  const auto inert = [](const std::string& fields, const std::string& text) {
    return said_of(mixture(fields) + axis(text)).find("changes nothing here") != std::string::npos;
  };
  for (const char* text : {"serving.two_batch_overlap: [false, true]",
                           "serving.expert_exchange: [normal, gathered]"}) {
    EXPECT_TRUE(inert("parallel: {ep: 1}", text)) << text;
    EXPECT_TRUE(inert("parallel: {tp: 2, ep: 2}", text)) << text;
    EXPECT_TRUE(inert("parallel: {tp: 2, ep: 2, dp: 4}", text)) << text;
    EXPECT_FALSE(inert("parallel: {ep: 2, dp: 2}", text)) << text;
    EXPECT_FALSE(inert("parallel: {tp: 2, ep: 4, dp: 2}", text)) << text;
    EXPECT_FALSE(inert("prefill: {parallel: {ep: 2, dp: 2}}", text)) << text;
  }
}

}  // namespace
}  // namespace sweep
