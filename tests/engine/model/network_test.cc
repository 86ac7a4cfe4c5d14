#include "engine/model/network.h"

#include <gtest/gtest.h>

#include <string>

namespace engine {
namespace {

std::vector<NetworkLayer> layers(std::string_view text) { return network_layers(text); }

std::string wrong(std::string_view text) {
  const auto found = network_mistake(text);
  return found ? std::to_string(found->phrase) + ": " + found->what : "";
}

TEST(Network, ALayerTakesWhatTheOneBeforeItGives) {
  const auto all =
      layers("conv 64 from 3 side 224 kernel 7 stride 2, pool kernel 3 stride 2, linear 10");
  ASSERT_EQ(all.size(), 3);
  EXPECT_EQ(all[0].out_side, 112);
  EXPECT_EQ(all[1].in, 64);
  EXPECT_EQ(all[1].out, 64);
  EXPECT_EQ(all[1].side, 112);
  EXPECT_EQ(all[1].out_side, 56);
  EXPECT_EQ(all[2].in, 64 * 56 * 56);
}

TEST(Network, AStatedInputIsAnotherBranch) {
  const auto all =
      layers("conv 8 from 3 side 32, conv 16 stride 2, conv 16 from 8 side 32 stride 2");
  EXPECT_EQ(all[2].in, 8);
  EXPECT_EQ(all[2].side, 32);
  EXPECT_EQ(all[2].out_side, 16);
}

// AlexNet's first layer: (224 + 2 x 2 - 11) / 4 + 1.
TEST(Network, PadIsStatedWhereItDoesNotKeepTheSide) {
  EXPECT_EQ(layers("conv 64 from 3 side 224 kernel 11 stride 4 pad 2")[0].out_side, 55);
  EXPECT_EQ(layers("conv 64 from 3 side 28 kernel 5 pad 0")[0].out_side, 24);
}

// 7 x 7 x 3 values for each of 64 filters, a scale and a shift each; and 112 x 112 pixels of the output.
TEST(Network, CountsWeightsAndArithmetic) {
  const NetworkLayer layer = layers("conv 64 from 3 side 224 kernel 7 stride 2")[0];
  EXPECT_EQ(layer.weights(), 64 * 147);
  EXPECT_EQ(layer.offsets(), 128);
  EXPECT_EQ(layer.summed() * layer.values_out(), 118013952);
  const NetworkLayer depthwise = layers("conv 32 from 32 side 10 kernel 3 groups 32")[0];
  EXPECT_TRUE(depthwise.depthwise());
  EXPECT_EQ(depthwise.weights(), 32 * 9);
  EXPECT_EQ(layers("linear 1000 from 2048")[0].weights() + 1000, 2049000);
}

TEST(Network, PixelsThatAStridePassesOverAreNotRead) {
  EXPECT_EQ(layers("conv 8 from 4 side 10 stride 2")[0].values_in(), 4 * 25);
  EXPECT_EQ(layers("conv 8 from 4 side 10 kernel 3 stride 2")[0].values_in(), 4 * 100);
}

TEST(Network, SaysWhatIsWrongWithWhichLayer) {
  const std::string first = "conv 8 from 3 side 32, ";
  EXPECT_EQ(wrong(first + "conv 8"), "");
  EXPECT_EQ(wrong(first + "convolution 8"), "1: unknown kind of layer 'convolution'");
  EXPECT_EQ(wrong(first + "conv"), "1: 'conv' is followed by nothing");
  EXPECT_EQ(wrong(first + "conv many"), "1: 'conv' is followed by 'many'");
  EXPECT_EQ(wrong(first + "conv 8 kernel 0"), "1: 'kernel' is followed by '0'");
  EXPECT_EQ(wrong(first + "conv 8 kernel 3x3"), "1: 'kernel' is followed by '3x3'");
  EXPECT_EQ(wrong(first + "conv 99999999999999999999"),
            "1: 'conv' is followed by '99999999999999999999'");
  EXPECT_EQ(wrong(first + "conv 8 strides 2"), "1: unknown word 'strides' of a layer");
  EXPECT_EQ(wrong(first + "conv 8 stride 2 stride 2"), "1: 'stride' is said twice of one layer");
  EXPECT_EQ(wrong(first + "conv 9 groups 2"), "1: 2 groups do not divide 8 channels into 9");
  EXPECT_EQ(wrong(first + "conv 9 kernel 33 pad 0"),
            "1: a kernel of 33 is larger than 32 pixels with 0 on each end");
  EXPECT_EQ(wrong(first + "linear 10 stride 2"),
            "1: a linear layer has no pixels, filters or shortcut");
  EXPECT_EQ(wrong(first), "1: a layer is empty");
  EXPECT_EQ(wrong("conv 8 kernel 3"), "0: the first layer does not say its input");
  EXPECT_EQ(wrong("conv 8 from 3"), "0: the first layer does not say its input");
  std::string many = "linear 8 from 8";
  for (std::size_t i = 0; i < kMostNetworkLayers; ++i) many += ", linear 8";
  EXPECT_EQ(wrong(many), "128: more than 128 layers");
}

}  // namespace
}  // namespace engine
