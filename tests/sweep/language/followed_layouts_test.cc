// A note where a layout is stated in part, and the rest is the main deployment's.
#include <gtest/gtest.h>

#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

std::vector<std::string> notes_of(const std::string& text) {
  const auto spec = read_sweep_text(text, "toy.yaml", toy_library());
  EXPECT_TRUE(spec.ok()) << engine::to_text(spec.mistakes());
  return spec ? spec->notes : std::vector<std::string>{};
}

std::string base(const std::string& main, const std::string& more) {
  return "base: {task: serve, device: toy, model: tiny, load: {rate: 1 req/s}, parallel: " + main +
         more + "}\n";
}

TEST(FollowedLayouts, AreNotedWhereTheyWereStated) {
  const auto notes = notes_of(base("{tp: 2, dp: 16}", ", prefill: {parallel: {tp: 8}}"));
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0],
            "toy.yaml:1:118: 'prefill.parallel' states tp and no more, so it has dp 16 of the main "
            "deployment; state what is to differ, also where that is 1");
  const auto by_axis =
      notes_of(base("{dp: 16, pp: 2}", "") + "axes:\n  - prefill.parallel.tp: [2, 4]\n");
  ASSERT_EQ(by_axis.size(), 1U);
  EXPECT_NE(by_axis[0].find("toy.yaml:3:5: 'prefill.parallel' states tp and no more, so it has pp "
                            "2, dp 16 of the main deployment"),
            std::string::npos)
      << by_axis[0];
}

TEST(FollowedLayouts, NothingIsSaidWhereAllIsStatedOrNothing) {
  for (const char* more : {"", ", prefill: {}", ", prefill: {parallel: {tp: 8, dp: 1}}",
                           ", prefill: {parallel.dp: 4}", ", prefill: {serving.replicas: 3}"}) {
    EXPECT_TRUE(notes_of(base("{dp: 16}", more)).empty()) << more;
  }
  EXPECT_TRUE(notes_of(base("{tp: 4}", ", prefill: {parallel: {tp: 8}}")).empty());
}

}  // namespace
}  // namespace sweep
