// A load of one request asks for the steps that the request alone asks for, whatever its length: times between the points
// of a table lie on the stairs that tiles make, not below them.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "tests/support/calibrations.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

TEST(ServedPrompts, TakeWhatTheyTakeAlone) {
  const Resources resources = toys::transfer_resources();
  for (const char* device : {"a100-80gb-sxm", "h100-sxm", "b200-sxm"}) {
    Scenario alone = toys::shipped("models", "llama-3.1-70b");
    alone.device = toys::shipped("devices", device).device;
    alone.host = toys::shipped("hosts", "none").host;
    alone.calibration.tier = TierChoice::transfer;
    alone.parallel.tp = 4;
    alone.task = Task::request;
    alone.request.output = 1;
    for (const std::int64_t prompt : {256, 257, 300, 321, 385, 513, 641, 900, 1025, 1281, 1800}) {
      alone.request.prompt = prompt;
      Scenario served = alone;
      served.task = Task::serve;
      served.load = {};
      served.load.arrivals = ArrivalKind::closed;
      served.load.clients = served.load.requests = 1;
      served.load.measure = MeasureKind::whole;
      served.load.lengths = {.prompt = prompt, .output = 1};
      const Outcome one = evaluate(alone, resources), other = evaluate(served, resources);
      ASSERT_EQ(one.status, Status::ok) << one.reason;
      ASSERT_EQ(other.status, Status::ok) << other.reason;
      EXPECT_NEAR(other.metrics.ttft / one.metrics.ttft, 1, 0.02) << device << ", " << prompt;
    }
  }
}

}  // namespace
}  // namespace engine
