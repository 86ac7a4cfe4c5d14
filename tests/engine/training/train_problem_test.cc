// A strategy that cannot be is a row with its reason.
#include "engine/training/train_problem.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/evaluate.h"
#include "tests/support/toys.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

using toys::training;

TEST(TrainProblem, IsARowWithAReason) {
  const auto reason = [](auto change) {
    Scenario scenario = training();
    change(scenario);
    const Outcome outcome = evaluate(scenario);
    EXPECT_NE(outcome.status, Status::ok);
    return std::string(name_of(outcome.reason_class)) + ": " + outcome.reason;
  };
  EXPECT_EQ(reason([](Scenario& s) { s.parallel.dp = 3; }),
            "divisibility: train.global_batch 16 is not a multiple of train.micro_batch x "
            "parallel.dp (3)");
  EXPECT_EQ(
      reason([](Scenario& s) {
        s.parallel.pp = 2;
        s.train.virtual_stages = 2;
      }),
      "divisibility: train.virtual_stages 2 needs train.schedule: interleaved; 1f1b has one chunk "
      "of layers on each stage");
  EXPECT_EQ(reason([](Scenario& s) {
              s.parallel.pp = 4;
              s.train.schedule = Schedule::interleaved;
              s.train.virtual_stages = 4;
            }),
            "divisibility: 16 chunks of layers (parallel.pp x train.virtual_stages) exceed "
            "model.layers 10 and its two ends");
  EXPECT_EQ(reason([](Scenario& s) {
              s.parallel.pp = 4;
              s.train.first_stage_layers = 7;
              s.train.last_stage_layers = 2;
            }),
            "divisibility: train.first_stage_layers 7 and train.last_stage_layers 2 leave 1 of 10 "
            "layers to 2 chunks of other stages");
  EXPECT_EQ(reason([](Scenario& s) {
              s.parallel.pp = 2;
              s.train.schedule = Schedule::interleaved;
              s.train.virtual_stages = 4;
              s.train.first_stage_layers = 2;
            }),
            "divisibility: 2 layers of the first or last stage leave one of its 4 chunks without "
            "layers (train.virtual_stages)");
  EXPECT_EQ(reason([](Scenario& s) {
              s.parallel.cp = 3;
              s.train.global_batch = 48;
            }),
            "divisibility: train.sequence 1024 cannot be split 6 ways (2 x parallel.cp)");
  EXPECT_EQ(
      reason([](Scenario& s) {
        s.parallel = {.tp = 8, .cp = 16};
        s.train.context = ContextExchange::all_to_all;
      }),
      "divisibility: model.heads 32 cannot be split 128 ways (parallel.tp x parallel.cp, which "
      "train.context: all_to_all splits heads over)");
  EXPECT_EQ(reason([](Scenario& s) {
              s.parallel.cp = 2;
              s.model.window = 256;
            }),
            "unsupported: a ring passes on all keys, of which model.window leaves few; "
            "train.context: all_gather or all_to_all works with windows");
  EXPECT_EQ(reason([](Scenario& s) {
              s.train.method = Method::last_layers;
              s.train.trained_layers = 11;
            }),
            "divisibility: train.trained_layers 11 exceed model.layers 10");
  EXPECT_EQ(reason([](Scenario& s) {
              s.parallel.dp = 16;
              s.device.scale_out.topology = Topology::none;
            }),
            "links: all replicas together are 16 devices; a node has 8 and no link joins nodes");
  EXPECT_NE(reason([](Scenario& s) {
              s.device.memory_capacity = Bytes{10e9};
            }).find("memory: stage 0 does not fit: weights"),
            std::string::npos);
}

}  // namespace
}  // namespace engine
