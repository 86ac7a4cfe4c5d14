#include "engine/step/known_prompts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace engine {
namespace {

using Timed = KnownPrompts::Timed;
using Shape = KnownPrompts::Shape;

Shape shape_of(std::int64_t sequences, std::int64_t tokens, std::int64_t cached) {
  BatchShape batch;
  add_prefill(batch, sequences, tokens, cached, 0);
  return Shape::of(batch);
}

// Stands for a kernel model: another time for every shape.
void time_of(const Shape& shape, Timed& timed) {
  timed.sums.time = shape.pairs + 1e-3 * double(shape.sequences);
  timed.rows.push_back({.work = {.time = Seconds{timed.sums.time}}});
}

// Whatever was asked for before, and however many shapes there are: they share places.
TEST(KnownPrompts, SayWhatWasTimed) {
  KnownPrompts prompts;
  std::int64_t timed = 0, asked = 0;
  for (int round = 0; round < 3; ++round) {
    for (std::int64_t sequences = 1; sequences <= 4; ++sequences) {
      for (std::int64_t tokens = 1; tokens <= 16; ++tokens) {
        for (std::int64_t cached = 0; cached < 4096; cached += 16) {
          const Shape shape = shape_of(sequences, tokens, cached);
          // The first time it may not be kept, the second time it is, the third time it is known.
          for (int time = 0; time < 3; ++time) {
            const auto known = prompts.at(shape, [&](Timed& fresh) {
              ++timed;
              time_of(shape, fresh);
            });
            Timed expected;
            time_of(shape, expected);
            ASSERT_EQ(known.sums.time, expected.sums.time);
            ASSERT_TRUE(std::ranges::equal(known.rows, expected.rows));
            ++asked;
          }
        }
      }
    }
  }
  EXPECT_GT(timed, asked / 3);  // some were timed anew
}

struct Asker {
  KnownPrompts prompts;
  std::int64_t timed = 0;

  void ask(const Shape& shape) {
    prompts.at(shape, [&](Timed& fresh) {
      ++timed;
      time_of(shape, fresh);
    });
  }
};

// What one point of a sweep has met, the next one need not time.
TEST(KnownPrompts, KeepWhatComesAgain) {
  Asker asker;
  for (int i = 0; i < 5; ++i) asker.ask(shape_of(3, 5, 160));
  EXPECT_EQ(asker.timed, 1);
  asker.prompts.forget();
  for (int i = 0; i < 5; ++i) asker.ask(shape_of(3, 5, 160));
  EXPECT_EQ(asker.timed, 2);
}

// A thousand steps of a point: the last chunks of prompts, of any length after so many whole ones, and two prompts of one step.
// The next point knows nearly all of them: of a thousand that lie anywhere in four thousand places, one in nine shares its place.
TEST(KnownPrompts, KnowMostOfAPointAtTheNext) {
  std::vector<Shape> shapes;
  for (std::int64_t i = 1; i <= 250; ++i) {
    shapes.push_back(shape_of(1, i, 256));
    shapes.push_back(shape_of(1, i, 512));
    for (const std::int64_t other : {40, 170}) {
      BatchShape batch;
      add_prefill(batch, 1, i, 0, 0);
      add_prefill(batch, 1, other, 0, 0);
      shapes.push_back(Shape::of(batch));
    }
  }
  Asker asker;
  for (const Shape& shape : shapes) asker.ask(shape);
  const std::int64_t before = asker.timed;
  for (const Shape& shape : shapes) asker.ask(shape);
  EXPECT_LT(asker.timed - before, 200);
}

// Shapes that come once do not push out those that come again.
TEST(KnownPrompts, KeepWhatComesAgainThroughManyOthers) {
  Asker asker;
  for (std::int64_t i = 0; i < 100; ++i) asker.ask(shape_of(2, 16, 16 * i));
  for (std::int64_t i = 0; i < 100'000; ++i) asker.ask(shape_of(1, 7, 16 + i));
  const std::int64_t before = asker.timed;
  for (std::int64_t i = 0; i < 100; ++i) asker.ask(shape_of(2, 16, 16 * i));
  EXPECT_LT(asker.timed - before, 5);  // two shapes may share a place
}

// Two prompts of unequal length are not two equal ones of as many tokens.
TEST(KnownPrompts, TellPromptsApartByTheirPairs) {
  BatchShape unequal;
  add_prefill(unequal, 1, 10, 0, 0);
  add_prefill(unequal, 1, 30, 0, 0);
  EXPECT_NE(Shape::of(unequal), shape_of(2, 20, 0));
}

// Decodes of the same step are not part of it.
TEST(KnownPrompts, LeaveOutWhatIsBesideThem) {
  BatchShape batch;
  add_prefill(batch, 2, 20, 64, 0);
  add_decode(batch, 5, 300, 0);
  EXPECT_EQ(Shape::of(batch), shape_of(2, 20, 64));
  EXPECT_EQ(shape_of(2, 20, 64).batch().decode_sequences, 0);
}

}  // namespace
}  // namespace engine
