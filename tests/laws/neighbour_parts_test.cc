// Two models with multiprocessors of their own have those of one device between them.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "engine/evaluate.h"
#include "engine/sharing/shared_device.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// Whatever the share, two models have no more multiprocessors between them than the device has, and each has one.
TEST(Parts, AreOfOneDevice) {
  Device device = toys::gpu();
  for (const std::int64_t all : {2, 3, 4, 7, 8, 132}) {
    device.multiprocessors = device.rated_multiprocessors = all;
    for (const double share : {0.01, 0.2, 0.5, 0.7, 0.99}) {
      const std::int64_t own = multiprocessors_in(device, share);
      EXPECT_GE(own, 1);
      EXPECT_LE(own, all - 1);
      EXPECT_LE(std::abs(double(own) - share * double(all)), 1) << all << " " << share;
      const Device main = part_of(device, share, own, SharingMode::spatial);
      const Device other = part_of(device, 1 - share, all - own, SharingMode::spatial);
      EXPECT_NEAR((matrix_peak(main, Dtype::bf16) + matrix_peak(other, Dtype::bf16)).value,
                  matrix_peak(device, Dtype::bf16).value, 1);
    }
  }
}

TEST(Parts, NeedTwoMultiprocessors) {
  for (const SharingMode mode : {SharingMode::spatial, SharingMode::mig}) {
    Scenario scenario = toys::scenario();
    scenario.neighbour.present = true;
    fill_roles(scenario);
    scenario.sharing.mode = mode;
    scenario.device.multiprocessors = scenario.device.rated_multiprocessors = 1;
    EXPECT_EQ(evaluate(scenario).reason,
              "sharing.mode " + std::string(name_of(mode)) +
                  " gives each model multiprocessors of its own, and the device has only one "
                  "(device.multiprocessors); time_slices and streams need none");
    scenario.device.multiprocessors = scenario.device.rated_multiprocessors = 0;
    EXPECT_EQ(evaluate(scenario).reason,
              "sharing.mode " + std::string(name_of(mode)) +
                  " gives each model multiprocessors of its own, and the device does not say how "
                  "many it has (device.multiprocessors); time_slices and streams need none");
    scenario.sharing.mode = SharingMode::streams;
    EXPECT_EQ(evaluate(scenario).status, Status::ok);
  }
}

}  // namespace
}  // namespace engine
