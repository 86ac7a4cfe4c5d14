#include "engine/calibration/parameter_set.h"

#include <gtest/gtest.h>

#include "tests/support/toys.h"

namespace engine {
namespace {

Device built(const char* architecture) {
  Device device = toys::gpu();
  device.architecture = architecture;
  return device;
}

TEST(ParameterSet, FollowsTheGeneration) {
  EXPECT_EQ(choose_set(built("Hopper")), ParameterSet::hopper);
  EXPECT_EQ(choose_set(built("Blackwell")), ParameterSet::blackwell);
  EXPECT_EQ(choose_set(built("Blackwell Ultra")), ParameterSet::blackwell);
  EXPECT_EQ(choose_set(built("Ampere")), ParameterSet::ampere);           // A100
  EXPECT_EQ(choose_set(built("Ampere RTX")), ParameterSet::synchronous);  // A40
  EXPECT_EQ(choose_set(built("Ada")), ParameterSet::synchronous);
  EXPECT_EQ(choose_set(built("Blackwell RTX")), ParameterSet::synchronous);
  for (const char* amd : {"CDNA 3", "cdna 3", "CDNA 4"}) {
    EXPECT_EQ(choose_set(built(amd)), ParameterSet::cdna) << amd;
  }
  for (const char* hopper : {"hopper", "HOPPER", "NVIDIA Hopper", "nvidia hopper"}) {
    EXPECT_EQ(choose_set(built(hopper)), ParameterSet::hopper) << hopper;
  }
}

TEST(ParameterSet, GenerationsWithoutATableAreFlagged) {
  for (const char* known : {"Ampere", "Hopper", "Blackwell"}) {
    EXPECT_FALSE(is_unmeasured(choose_set(built(known)))) << known;
  }
  for (const char* unknown : {"Pascal", "Ada", "Ampere RTX", "CDNA 3", "Rubin"}) {
    EXPECT_TRUE(is_unmeasured(choose_set(built(unknown)))) << unknown;
  }
}

TEST(ParameterSet, ForeignGpusGetThePooledOneAndLargeCoresNone) {
  EXPECT_EQ(choose_set(built("CDNA 2")), ParameterSet::pooled);
  EXPECT_EQ(choose_set(built("Something new")), ParameterSet::pooled);
  for (const char* large : {"TPU v5e", "Gaudi 3", "NeuronCore-v3", "systolic"}) {
    EXPECT_EQ(choose_set(built(large)), ParameterSet::none) << large;
  }
}

TEST(ParameterSet, AMissingSetIsLookedForInWiderOnes) {
  EXPECT_EQ(wider_set(ParameterSet::hopper), ParameterSet::asynchronous);
  EXPECT_EQ(wider_set(ParameterSet::ampere), ParameterSet::synchronous);
  EXPECT_EQ(wider_set(ParameterSet::asynchronous), ParameterSet::pooled);
  EXPECT_EQ(wider_set(ParameterSet::cdna), ParameterSet::pooled);
}

}  // namespace
}  // namespace engine
