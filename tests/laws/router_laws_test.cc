// Laws of routers: who is chosen of two, and where sessions stay while replicas come and go.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "engine/base/random.h"
#include "engine/serving/fleet/router.h"
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

// Whatever classes have to do: no other way to share replicas out leaves the busiest class with less for each of its own.
TEST(Routers, TheBusiestClassHasAsLittleToDoAsItCanHave) {
  for (std::uint64_t draw = 0; draw < 300; ++draw) {
    ClassWork work;
    for (std::uint32_t i = 0; i < work.size(); ++i) {
      const double u = uniform(7, Stream::classes, draw, i);
      work[i] = u < 0.2 ? 0 : std::pow(10, 3 * u);
    }
    const auto busiest = [&](const ClassReplicas& replicas) {
      double most = 0;
      for (std::size_t i = 0; i < work.size(); ++i) {
        if (work[i] > 0) most = std::max(most, work[i] / double(replicas[i]));
      }
      return most;
    };
    for (const std::int64_t count : {3, 4, 7, 20}) {
      const ClassReplicas found = replicas_of_classes(work, count);
      const bool any = work[0] + work[1] + work[2] > 0;
      ASSERT_EQ(found[0] + found[1] + found[2], count);
      double least = busiest(found);
      for (std::int64_t high = 0; any && high <= count; ++high) {
        for (std::int64_t low = 0; high + low <= count; ++low) {
          least = std::min(least, busiest({high, count - high - low, low}));
        }
      }
      ASSERT_EQ(busiest(found), least) << draw << " " << count;
    }
  }
  EXPECT_EQ(replicas_of_classes({1, 1, 1}, 2), ClassReplicas{});
}

// Replicas that each class was served by.
std::map<RequestClass, std::size_t> replicas_by_class(const Scenario& scenario) {
  std::map<RequestClass, std::set<std::int32_t>> seen;
  for (const RequestRow& row : evaluate(scenario).requests) {
    seen[row.service_class].insert(row.replica);
  }
  std::map<RequestClass, std::size_t> counts;
  for (const auto& [which, replicas] : seen) counts[which] = replicas.size();
  return counts;
}

// Prompts of 64 tokens are read in steps of 16, answers are one token: a request of one class takes four steps, one of the other a single
// one. With as many of either, the former have four of five replicas; by requests they would have two or three.
TEST(Routers, ClassesHaveReplicasByTheWorkOfTheirRequests) {
  Scenario scenario = served_at(20);
  scenario.serving.replicas = 5;
  scenario.serving.router = router_named("by_class");
  scenario.serving.max_num_batched_tokens = 16;
  scenario.load.requests = 2000;
  scenario.load.lengths = {.prompt = 16, .output = 1};
  scenario.load.classes.high = {.share = 0.5, .prompt = 64};
  scenario.output.requests = true;
  std::map<RequestClass, std::size_t> counts = replicas_by_class(scenario);
  EXPECT_EQ(counts[RequestClass::high], 4U);
  EXPECT_EQ(counts[RequestClass::normal], 1U);
  // Where others read the prompts, those who write have as much to do for either.
  scenario.load.lengths.output = 20;
  scenario.serving.replicas = 4;
  scenario.prefill.present = true;
  scenario.prefill.deployment = scenario;
  counts = replicas_by_class(scenario);
  EXPECT_EQ(counts[RequestClass::high], 2U);
  EXPECT_EQ(counts[RequestClass::normal], 2U);
}

// Twelve system prompts, of which a replica's cache holds four: three replicas keep all of them if each keeps its own. At a load at which
// nobody waits they are to be spread all the same.
TEST(Routers, PromptsThatNobodyKnowsAreSpreadOverAllCaches) {
  Scenario scenario = served_at(3);
  scenario.serving.replicas = 3;
  scenario.serving.prefix_caching = true;
  scenario.serving.kv_blocks = 4 * 50 + 60;
  scenario.load.requests = 6000;
  scenario.load.lengths = {.prompt = 208, .output = 4};
  scenario.load.shared_prefix = 200;
  scenario.load.prefix_groups = 12;
  const auto hits = [&](const char* router) {
    scenario.serving.router = *from_name<RouterName>(router);
    return evaluate(scenario).metrics.prefix_hit_rate;
  };
  // By turns each replica meets all twelve.
  const double by_turns = hits("round_robin"), aware = hits("prefix_aware");
  EXPECT_LT(by_turns, 0.45);
  EXPECT_GT(aware, by_turns + 0.25);
  // All that can be found is found where one cache holds everything.
  scenario.serving.kv_blocks = 1000;
  EXPECT_NEAR(hits("prefix_aware"), 200.0 / 208, 0.01);
}

}  // namespace
}  // namespace engine
