// What a thread keeps of a training point for the next one changes no figure, whichever setting the two differ in.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/base/work_meter.h"
#include "engine/evaluate.h"
#include "engine/scratch.h"
#include "tests/support/toys.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

struct Change {
  std::string name;
  std::function<void(TrainSettings&)> make;
};

// Every other value of each switch and each choice, and some of each number that says how much.
std::vector<Change> changes() {
  std::vector<Change> all;
  TrainSettings base;
  TrainSettings::fields(base, [&](std::string_view name, auto& member, auto&&...) {
    using Member = std::remove_reference_t<decltype(member)>;
    const auto offset = reinterpret_cast<char*>(&member) - reinterpret_cast<char*>(&base);
    const auto set = [&](Member value) {
      all.push_back({std::string(name), [offset, value](TrainSettings& train) {
                       *reinterpret_cast<Member*>(reinterpret_cast<char*>(&train) + offset) = value;
                     }});
    };
    if constexpr (std::is_same_v<Member, bool>) {
      set(!member);
    } else if constexpr (std::is_enum_v<Member>) {
      for (std::size_t i = 0; i < enum_names(Member{}).size(); ++i) set(Member(i));
    } else if constexpr (std::is_same_v<Member, std::int64_t>) {
      for (const std::int64_t value : {1, 2}) set(value);
    }
  });
  return all;
}

Scenario trained(const ModelSpec& model, Dtype format, const Parallelism& parallel) {
  Scenario scenario = toys::training();
  scenario.model = model;
  scenario.quant = {.weights = format, .activations = format, .group = 1 << 20};
  scenario.parallel = parallel;
  scenario.parallel.dp = 4;
  scenario.parallel.ep = model.is_moe() ? 4 : 1;
  scenario.train.sequence_parallel = parallel.tp > 1;
  scenario.train.zero = 1;
  scenario.host.launch_cost = Seconds{1e-5};
  return scenario;
}

TEST(RememberedPoints, ChangeNoFigure) {
  int compared = 0;
  for (const ModelSpec& model : {toys::model(), toys::mixture()}) {
    for (const Dtype format : {Dtype::bf16, Dtype::fp8}) {
      for (const Parallelism& parallel : {Parallelism{}, Parallelism{.pp = 2}, Parallelism{.tp = 2},
                                          Parallelism{.tp = 2, .pp = 2}, Parallelism{.cp = 2}}) {
        const Scenario base = trained(model, format, parallel);
        for (const Change& change : changes()) {
          Scenario changed = base;
          change.make(changed.train);
          Scratch scratch;
          for (const Scenario& next : {base, changed, base}) {
            Outcome after;
            WorkMeter work;
            evaluate_into(next, {}, after, work, scratch);
            const Outcome alone = evaluate(next);
            ASSERT_EQ(after.status, alone.status) << change.name;
            if (alone.status != Status::ok) continue;
            EXPECT_EQ(after.metrics.iteration_time, alone.metrics.iteration_time)
                << change.name << " " << model.name << " " << parallel.tp << " " << parallel.pp;
            EXPECT_EQ(after.metrics.tensor_exchange_time, alone.metrics.tensor_exchange_time)
                << change.name;
            EXPECT_EQ(after.metrics.cast_time, alone.metrics.cast_time) << change.name;
            EXPECT_EQ(after.metrics.backward_time, alone.metrics.backward_time) << change.name;
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 1000);
}

}  // namespace
}  // namespace engine
