// Who is served when, over random policies and loads: nobody is forgotten, nobody overtakes who may not,
// and a session's requests follow one another.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/random_load.h"

namespace engine {
namespace {

// Two times closer than this are one moment (a boundary and an arrival may differ by rounding).
constexpr double kMoment = 2e-9;

bool is_refused(const RequestRow& row) { return row.end == RequestEnd::refused; }

toys::RandomCase with_ordering(std::uint64_t number, Ordering ordering) {
  toys::RandomCase made = toys::random_case(number);
  made.scenario.serving.ordering = ordering;
  made.scenario.output.requests = true;
  made.scenario.load.warmup = made.scenario.load.window = Seconds{0};
  return made;
}

std::vector<RequestRow> rows_of(const toys::RandomCase& made) {
  Outcome outcome = evaluate(made.scenario, made.resources);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  std::erase_if(outcome.requests, is_refused);
  return outcome.requests;
}

// `first` waited while `second`, of the same replica, was put into a step.
bool overtaken(const RequestRow& first, const RequestRow& second) {
  return first.replica == second.replica &&
         first.arrival.value < second.scheduled.value - kMoment &&
         second.scheduled.value < first.scheduled.value - kMoment;
}

TEST(ServingOrder, FirstComeIsFirstServed) {
  for (std::uint64_t number = 4000; number < 4200; ++number) {
    const std::vector<RequestRow> rows = rows_of(with_ordering(number, Ordering::fcfs));
    for (const RequestRow& first : rows) {
      for (const RequestRow& second : rows) {
        const bool earlier = first.arrival.value < second.arrival.value - kMoment;
        ASSERT_FALSE(earlier && overtaken(first, second))
            << "case " << number << ": " << second.number << " before " << first.number;
      }
    }
  }
}

TEST(ServingOrder, NobodyOvertakesTheMoreUrgent) {
  std::int64_t levels = 0;
  for (std::uint64_t number = 4200; number < 4400; ++number) {
    const std::vector<RequestRow> rows = rows_of(with_ordering(number, Ordering::priority));
    for (const RequestRow& first : rows) {
      levels = std::max(levels, first.priority);
      for (const RequestRow& second : rows) {
        const bool urgent = first.priority < second.priority;
        ASSERT_FALSE(urgent && overtaken(first, second))
            << "case " << number << ": " << second.number << " before " << first.number;
      }
    }
  }
  EXPECT_EQ(levels, 2);
}

// Whatever the order, every request of every session is answered or refused once, re-sends the history
// before it, and is sent only when the one before it was answered.
TEST(ServingOrder, SessionsGoOnToTheirEnd) {
  std::size_t longest = 0;
  for (std::uint64_t number = 4400; number < 4600; ++number) {
    toys::RandomCase made = toys::random_case(number);
    Scenario& scenario = made.scenario;
    if (scenario.load.arrivals == ArrivalKind::trace) continue;
    scenario.load.turns = 2 + std::int64_t(number % 3);
    scenario.output.requests = true;
    scenario.load.warmup = scenario.load.window = Seconds{0};
    const Outcome outcome = evaluate(scenario, made.resources);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;

    std::set<std::int64_t> numbers;
    std::map<std::int64_t, std::vector<RequestRow>> sessions;
    for (const RequestRow& row : outcome.requests) {
      numbers.insert(row.number);
      sessions[row.session].push_back(row);
    }
    const std::size_t total = std::size_t(scenario.load.requests);
    EXPECT_EQ(outcome.requests.size(), total) << "case " << number;
    EXPECT_EQ(numbers.size(), total) << "case " << number;
    // Clients of a closed loop are numbered side by side: a quick one is ahead of the others.
    if (scenario.load.arrivals != ArrivalKind::closed) {
      EXPECT_EQ(*numbers.rbegin(), scenario.load.requests - 1) << "case " << number;
    }
    EXPECT_EQ(outcome.metrics.requests_finished + outcome.metrics.requests_refused, double(total));
    for (auto& [session, turns] : sessions) {
      longest = std::max(longest, turns.size());
      EXPECT_LE(turns.size(), std::size_t(scenario.load.turns));
      std::stable_sort(turns.begin(), turns.end(),
                       [](const auto& a, const auto& b) { return a.number < b.number; });
      for (std::size_t i = 1; i < turns.size(); ++i) {
        const RequestRow& last = turns[i - 1];
        EXPECT_GE(turns[i].arrival, is_refused(last) ? last.arrival : last.finish);
        // What a refused request would have answered is not in its row.
        const std::int64_t before = last.prompt_tokens + last.output_tokens;
        EXPECT_GT(turns[i].prompt_tokens, before) << "case " << number;
      }
    }
  }
  EXPECT_EQ(longest, 4u);
}

}  // namespace
}  // namespace engine
