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

TEST(FollowedLayouts, AreNotedWhereAnAxisMakesThem) {
  const auto note_of = [](const std::string& main, const std::string& more,
                          const std::string& axes) {
    const auto notes = notes_of(base(main, more) + "axes: [" + axes + "]\n");
    return notes.size() == 1 ? notes[0] : std::to_string(notes.size()) + " notes";
  };
  const std::string rest = " of the main deployment; state what is to differ, also where that is 1";
  const std::string reads = ", prefill: {parallel: {tp: 8}}";
  // The layout of the main deployment is on an axis, in a zip or drawn.
  const auto ends_with = [&](const std::string& note, const std::string& end) {
    EXPECT_TRUE(note.ends_with("'prefill.parallel' states tp and no more, so it has " + end + rest))
        << note;
  };
  ends_with(note_of("{}", reads, "{parallel: [{dp: 16, ep: 4}, {dp: 32, ep: 4}]}"),
            "dp up to 32, ep 4");
  ends_with(note_of("{}", reads, "{parallel.dp: [16]}"), "dp 16");
  ends_with(note_of("{}", reads, "{zip: {parallel.dp: [8, 16], parallel.pp: [1, 2]}}"),
            "pp up to 2, dp up to 16");
  ends_with(note_of("{}", reads, "{sample: {random: 4, of: {parallel.dp: [1, 16]}}}"), "dp");
  // So is that of the readers, where one of its values states some.
  ends_with(note_of("{dp: 16}", "",
                    "{prefill: [none, {}, {parallel: {tp: 8}}, {parallel: {tp: 8, dp: 1}}]}"),
            "dp 16");
  // One sub-sweep says nothing of another one's points.
  const std::string one = "{name: one, base: {parallel: {dp: 16}}}";
  const std::string two = "{name: two, base: {prefill: {parallel: {tp: 8}}}}";
  EXPECT_EQ(note_of("{}", "", "{concat: [" + one + ", " + two + "]}"), "0 notes");
  const std::string both = "{name: both, base: {parallel: {dp: 4}, prefill: {parallel: {tp: 8}}}}";
  ends_with(note_of("{}", "", "{concat: [" + one + ", " + two + ", " + both + "]}"), "dp 4");
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
