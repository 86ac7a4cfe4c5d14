// Laws of routers: who is chosen of two, and where sessions stay while replicas come and go.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

#include "tests/support/serving_toys.h"

namespace engine {
namespace {

using toys::served_at;

// With two replicas the two that are compared are both there are: the choice is that of the router that compares all.
TEST(Routers, TheLighterOfTwoIsTheLightestWhereThereAreTwo) {
  Scenario scenario = served_at(8);
  scenario.serving.max_num_seqs = 1;  // 0.2 s each: ten a second
  scenario.serving.replicas = 2;
  scenario.load.requests = 20'000;
  scenario.serving.router = router_named("least_outstanding");
  const double lightest = evaluate(scenario).metrics.queue.value;
  scenario.serving.router = router_named("power_of_two");
  EXPECT_NEAR(evaluate(scenario).metrics.queue.value / lightest, 1, 0.05);
}

// Requests of one session, by where they were served: while all replicas took requests, and while the last of them did not.
struct Places {
  std::set<std::int32_t> with_all, without_one;
};

}  // namespace
}  // namespace engine
