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

TEST(Routers, SessionsStayWhereTheyAreWhileOtherReplicasComeAndGo) {
  Scenario scenario = served_at(2);
  scenario.serving.replicas = 4;
  scenario.serving.router = router_named("sticky");
  scenario.serving.scaling.policy = ScalingPolicy::scheduled;
  scenario.serving.scaling.schedule = "0:4, 60:3, 120:4";
  scenario.serving.scaling.cold_start = Seconds{0};
  scenario.model.max_context = 1 << 20;
  scenario.load.turns = 20;
  scenario.load.think_time = Seconds{2};
  scenario.load.requests = 6000;
  scenario.load.measure = MeasureKind::whole;
  scenario.output.requests = true;
  const Outcome outcome = evaluate(scenario);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;

  std::map<std::int64_t, Places> sessions;
  for (const RequestRow& row : outcome.requests) {
    const bool without = row.arrival.value >= 60 && row.arrival.value < 120;
    Places& places = sessions[row.session];
    (without ? places.without_one : places.with_all).insert(row.replica);
  }
  std::set<std::int32_t> refuges;  // of those whose replica went
  for (const auto& [session, places] : sessions) {
    EXPECT_LE(places.with_all.size(), 1U) << session;
    EXPECT_LE(places.without_one.size(), 1U) << session;
    if (places.with_all.empty() || places.without_one.empty()) continue;
    if (places.with_all.contains(3)) {
      refuges.insert(*places.without_one.begin());
    } else {
      EXPECT_EQ(places.with_all, places.without_one) << session;
    }
  }
  EXPECT_EQ(refuges, (std::set<std::int32_t>{0, 1, 2}));
}

// Whoever reads a prompt, any replica may write the answer.
TEST(Routers, ThoseOfTwoPoolsChooseIndependently) {
  for (const char* name : {"random", "power_of_two", "sticky"}) {
    Scenario scenario = served_at(20);
    scenario.serving.replicas = 4;
    scenario.serving.router = *from_name<RouterName>(name);
    scenario.prefill.present = true;
    scenario.prefill.deployment = scenario;
    scenario.load.requests = 4000;
    scenario.output.requests = true;
    const Outcome outcome = evaluate(scenario);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    std::map<std::pair<std::int32_t, std::int32_t>, int> pairs;
    for (const RequestRow& row : outcome.requests) ++pairs[{row.reader, row.replica}];
    EXPECT_EQ(pairs.size(), 16U) << name;
    for (const auto& [pair, count] : pairs) {
      EXPECT_NEAR(count, 250, 100) << name << ": " << pair.first << ", " << pair.second;
    }
  }
}

}  // namespace
}  // namespace engine
