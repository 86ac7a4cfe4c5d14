// What a load's requests are like on average.
#include <gtest/gtest.h>

#include <limits>

#include "engine/workload/request_source.h"

namespace engine {
namespace {

constexpr double kNeverEnds = std::numeric_limits<double>::infinity();

// What estimates start from are means of what comes, classes and all.
TEST(MeanLengths, OfClassesAreThoseOfTheRequests) {
  Trace recorded;
  for (int i = 0; i < 50; ++i) {
    recorded.prompt.push_back(1000 + 20 * i);
    recorded.output.push_back(100 + i);
  }
  for (const LengthKind kind : {LengthKind::fixed, LengthKind::uniform, LengthKind::lognormal,
                                LengthKind::zipf, LengthKind::empirical}) {
    for (const double share : {0.5, 1.0}) {
      Load load;
      load.requests = 20'000;
      load.lengths.distribution = kind;
      load.lengths.prompt = 100;
      load.lengths.output = 20;
      load.classes.high = {.share = share, .prompt = 700, .output = 60};
      RequestMemory memory;
      const DrawnLoad drawn{.load = load, .trace = &recorded, .seed = 3, .memory = memory};
      const MeanLengths mean = mean_lengths(drawn), inside = lengths_inside(drawn);
      RequestSource source(load, &recorded, memory, {.level = {.rate = 1}, .seed = 3});
      MeanLengths sum{0, 0}, by_output{0, 0};
      Request request;
      while (source.next_arrival() < kNeverEnds) {
        source.take(request);
        sum.prompt += double(request.prompt) / 20'000;
        sum.output += double(request.output) / 20'000;
        by_output.prompt += double(request.prompt) * double(request.output) / 20'000;
        by_output.output += double(request.output) * double(request.output) / 20'000;
      }
      // Some distributions are estimated from their first few hundred requests.
      EXPECT_NEAR(mean.prompt / sum.prompt, 1, 0.12) << name_of(kind) << " " << share;
      EXPECT_NEAR(mean.output / sum.output, 1, 0.12) << name_of(kind) << " " << share;
      // One that writes more is there for longer.
      EXPECT_NEAR(inside.prompt * sum.output / by_output.prompt, 1, 0.12)
          << name_of(kind) << " " << share;
      EXPECT_NEAR(inside.output * sum.output / by_output.output, 1, 0.12)
          << name_of(kind) << " " << share;
    }
  }
}

}  // namespace
}  // namespace engine
