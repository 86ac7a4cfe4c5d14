// Parameters that ship: what one generation's kernels did is never passed off as what a class of devices has.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/calibration/calibration.h"
#include "engine/calibration/parameter_set.h"
#include "tests/support/calibrations.h"

namespace engine {
namespace {

constexpr ParameterSet kGenerations[] = {ParameterSet::ampere, ParameterSet::hopper,
                                         ParameterSet::blackwell, ParameterSet::cdna};

using Numbers = std::vector<double>;
using SectionSets = std::map<ParameterSet, Numbers>;

// The numbers of each set, section by section.
std::map<std::string, SectionSets> sections_of(const Calibration& calibration) {
  std::map<std::string, SectionSets> sections;
  Calibration::sections(calibration, [&](const std::string& name, const auto& sets) {
    sets.each([&](ParameterSet which, const auto& set) {
      Numbers& numbers = sections[name][which];
      each_parameter(set.fit, [&](const auto&, double value) { numbers.push_back(value); });
    });
  });
  return sections;
}

// A class without numbers of its own is spoken for by all devices together (`wider_set`).
TEST(ShippedSets, NoClassIsOneGenerationsCopy) {
  const auto sections = sections_of(toys::transfer());
  ASSERT_GT(sections.size(), 40u);
  for (const auto& [name, sets] : sections) {
    for (const ParameterSet wide : {ParameterSet::synchronous, ParameterSet::asynchronous}) {
      const auto found = sets.find(wide);
      if (found == sets.end()) continue;
      for (const ParameterSet generation : kGenerations) {
        const auto other = sets.find(generation);
        if (other == sets.end()) continue;
        // Calls of one model: all devices speak for its generation, too.
        if (other->second == sets.at(ParameterSet::pooled)) continue;
        EXPECT_NE(found->second, other->second)
            << name << ": " << name_of(wide) << " is " << name_of(generation);
      }
    }
  }
}

// Nor is one generation another's, but where all devices speak for both.
TEST(ShippedSets, NoGenerationIsAnothersCopy) {
  for (const auto& [name, sets] : sections_of(toys::transfer())) {
    for (const ParameterSet one : kGenerations) {
      for (const ParameterSet other : kGenerations) {
        if (one >= other || !sets.contains(one) || !sets.contains(other)) continue;
        if (sets.at(one) == sets.at(ParameterSet::pooled)) continue;
        EXPECT_NE(sets.at(one), sets.at(other))
            << name << ": " << name_of(other) << " is " << name_of(one);
      }
    }
  }
}

// An RTX card runs the experts of today's engines, whose calls begin sooner than those of engines that an A100 was measured with.
TEST(ShippedSets, AStrangersExpertsBeginAsTodaysEnginesLetThem) {
  const auto& bf16 = toys::transfer().moe[static_cast<std::size_t>(MoeFormat::bf16)];
  const auto* stranger = find_shared_set(bf16, ParameterSet::synchronous);
  ASSERT_NE(stranger, nullptr);
  EXPECT_LT(stranger->fit.floor, bf16.find(ParameterSet::ampere)->fit.floor / 1.5);
  EXPECT_GE(stranger->high / stranger->low,
            bf16.find(ParameterSet::ampere)->high / bf16.find(ParameterSet::ampere)->low);
}

}  // namespace
}  // namespace engine
