// A convolutional network as a list of layers: their shapes, parameters and arithmetic, read from the text of model.network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/fields.h"

namespace engine {

struct NetworkLayer {
  enum class Kind : std::uint8_t {
    convolution,  // with the norm and the activation after it, which engines fold into it
    pool,         // the largest or the mean of a square of pixels
    linear,       // every value of the input with every one of the output
  };
  Kind kind = Kind::convolution;
  std::int64_t in = 1;    // channels; of a linear layer: values
  std::int64_t out = 1;   // the same
  std::int64_t side = 1;  // pixels of a side of the input; images are square
  std::int64_t out_side = 1;
  std::int64_t kernel = 1;  // pixels of a side of a filter
  std::int64_t groups = 1;  // of channels that see only one another
  std::int64_t times = 1;   // layers like it
  bool adds = false;        // its output is summed with what an earlier layer left: a shortcut

  bool depthwise() const { return kind == Kind::convolution && groups == in && groups > 1; }
  double out_pixels() const { return double(out_side) * double(out_side); }
  // Values of one image that one such layer reads and writes.
  double values_in() const;
  double values_out() const { return out_pixels() * double(out); }
  // Values that one value of the output is a sum of; of a pool: that it is chosen from.
  double summed() const;
  // Parameters of one layer: its weights; and beside them a scale and a shift of each channel's norm, or a bias.
  double weights() const;
  double offsets() const;
};

// More than a step's list of operations has room for (OpList), and a large network by hand.
constexpr std::size_t kMostNetworkLayers = 128;

// Layers between commas: "conv 64 from 3 side 224 kernel 7 stride 2, pool kernel 3 stride 2, linear 1000". What is not
// stated of a layer's input is the output of the layer before it.
std::optional<PhraseMistake> read_network(std::string_view text, std::vector<NetworkLayer>& layers);
// The same, of which only the mistake counts.
std::optional<PhraseMistake> network_mistake(std::string_view text);
// Of a text without one.
std::vector<NetworkLayer> network_layers(std::string_view text);

// Values of one image that are in memory at once in the fullest moment: a layer's input and output, with a shortcut's beside them.
double most_values(const std::vector<NetworkLayer>& layers);

}  // namespace engine
