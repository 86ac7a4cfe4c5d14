#include "engine/calibration/parameter_set.h"

#include <gtest/gtest.h>

#include "tests/support/toys.h"

namespace engine {
namespace {

Device built(const char* architecture, double scratch_kib = 100) {
  Device device = toys::gpu();
  device.architecture = architecture;
  device.shared_memory = Bytes{scratch_kib * 1024};
  return device;
}

TEST(ParameterSet, FollowsTheGeneration) {
  EXPECT_EQ(choose_set(built("Hopper")), ParameterSet::hopper);
  EXPECT_EQ(choose_set(built("Blackwell")), ParameterSet::blackwell);
  EXPECT_EQ(choose_set(built("Blackwell Ultra")), ParameterSet::blackwell);
  EXPECT_EQ(choose_set(built("Ampere", 164)), ParameterSet::ampere);       // A100
  EXPECT_EQ(choose_set(built("Ampere", 100)), ParameterSet::synchronous);  // A40
  EXPECT_EQ(choose_set(built("Ada")), ParameterSet::synchronous);
  EXPECT_EQ(choose_set(built("Blackwell RTX")), ParameterSet::synchronous);
}

TEST(ParameterSet, ForeignGpusGetThePooledOneAndLargeCoresNone) {
  EXPECT_EQ(choose_set(built("CDNA 3")), ParameterSet::pooled);
  Device tpu = built("TPU v5e");
  tpu.multiprocessors = tpu.rated_multiprocessors = 1;
  EXPECT_EQ(choose_set(tpu), ParameterSet::none);
}

TEST(ParameterSet, AMissingSetIsLookedForInWiderOnes) {
  EXPECT_EQ(wider_set(ParameterSet::hopper), ParameterSet::asynchronous);
  EXPECT_EQ(wider_set(ParameterSet::ampere), ParameterSet::synchronous);
  EXPECT_EQ(wider_set(ParameterSet::asynchronous), ParameterSet::pooled);
}

}  // namespace
}  // namespace engine
