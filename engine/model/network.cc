#include "engine/model/network.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/base/check.h"

namespace engine {
namespace {

// Larger than any network has, and small enough that values of all layers can be counted.
constexpr std::int64_t kMostOf = 1 << 20;

constexpr std::string_view kSpaces = " \t\n";
constexpr const char* kForm =
    "write a kind and words with numbers, as in 'conv 64 kernel 3 stride 2', 'pool kernel 3 stride "
    "2' or 'linear 1000'";
constexpr const char* kWords =
    "words of a layer: from (channels of its input), side (pixels of its input), kernel, stride, "
    "pad, groups, times; and add";

// What a text says of one layer.
struct Said {
  std::string_view kind;
  std::int64_t out = 0;
  std::int64_t from = 0, side = 0, kernel = 1, stride = 1, groups = 1, times = 1;  // 0: not said
  std::int64_t pad = -1;  // as much as keeps the side, but for the stride
  bool adds = false;
};

class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}
  // Empty at the end.
  std::string_view next() {
    const std::size_t first = rest_.find_first_not_of(kSpaces);
    if (first == std::string_view::npos) return {};
    rest_.remove_prefix(first);
    const std::string_view word = rest_.substr(0, rest_.find_first_of(kSpaces));
    rest_.remove_prefix(word.size());
    return word;
  }

 private:
  std::string_view rest_;
};

std::optional<std::int64_t> number_in(std::string_view word) {
  std::int64_t value = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

using Wrong = std::optional<PhraseMistake>;

PhraseMistake mistake(std::string what, std::string hint) {
  return {.phrase = 0, .what = std::move(what), .hint = std::move(hint)};
}

// The number that a word of a layer is for; null: there is no such word.
std::int64_t* meant(std::string_view word, Said& said) {
  struct Entry {
    std::string_view word;
    std::int64_t Said::*member;
  };
  constexpr Entry entries[] = {{"from", &Said::from},     {"side", &Said::side},
                               {"kernel", &Said::kernel}, {"stride", &Said::stride},
                               {"groups", &Said::groups}, {"times", &Said::times},
                               {"pad", &Said::pad}};
  for (const Entry& entry : entries) {
    if (entry.word == word) return &(said.*entry.member);
  }
  return nullptr;
}

Wrong read_number(std::string_view of, std::string_view word, std::int64_t least,
                  std::int64_t& value) {
  const auto number = number_in(word);
  if (number && *number >= least && *number <= kMostOf) {
    value = *number;
    return std::nullopt;
  }
  const std::string found = word.empty() ? "nothing" : "'" + std::string(word) + "'";
  return mistake(fmt::format("'{}' is followed by {}", of, found),
                 fmt::format("write a whole number from {} to {} after it", least, kMostOf));
}

Wrong read_words(std::string_view text, Said& said) {
  Words words(text);
  said.kind = words.next();
  if (said.kind.empty()) return mistake("a layer is empty", kForm);
  if (said.kind != "conv" && said.kind != "pool" && said.kind != "linear") {
    return mistake(fmt::format("unknown kind of layer '{}'", said.kind), kForm);
  }
  if (said.kind != "pool") {
    if (auto wrong = read_number(said.kind, words.next(), 1, said.out)) return wrong;
  }
  std::vector<std::string_view> seen;
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (std::ranges::find(seen, word) != seen.end()) {
      return mistake(fmt::format("'{}' is said twice of one layer", word), "keep one of them");
    }
    seen.push_back(word);
    if (word == "add") {
      said.adds = true;
      continue;
    }
    std::int64_t* const value = meant(word, said);
    if (value == nullptr) return mistake(fmt::format("unknown word '{}' of a layer", word), kWords);
    if (auto wrong = read_number(word, words.next(), word == "pad" ? 0 : 1, *value)) return wrong;
  }
  return std::nullopt;
}

// The first mistake in what is said of a layer. Of the first layer's input no layer before it says anything.
Wrong first_mistake(const Said& said, const NetworkLayer* before) {
  const bool flat = said.kind == "linear";
  if (before != nullptr || (said.from > 0 && (flat || said.side > 0))) return std::nullopt;
  return mistake("the first layer does not say its input",
                 "say 'from' (channels) and 'side' (pixels) of it, as in 'conv 64 from 3 side 224 "
                 "kernel 7 stride 2'");
}

Wrong linear_layer(const Said& said, const NetworkLayer* before, NetworkLayer& layer) {
  layer.kind = NetworkLayer::Kind::linear;
  if (said.side != 0 || said.kernel != 1 || said.stride != 1 || said.groups != 1 || said.pad >= 0 ||
      said.adds) {
    return mistake("a linear layer has no pixels, filters or shortcut",
                   "only 'from' (values of its input) and 'times' go with it");
  }
  layer.in = said.from > 0 ? said.from : std::int64_t(before->values_out());
  layer.out = said.out;
  return std::nullopt;
}

// Pixels of a side of the output; 0: the kernel is larger than the padded image.
std::int64_t side_after(const Said& said, std::int64_t side) {
  if (said.pad < 0) return (side + said.stride - 1) / said.stride;
  const std::int64_t room = side + 2 * said.pad - said.kernel;
  return room < 0 ? 0 : room / said.stride + 1;
}

Wrong image_layer(const Said& said, const NetworkLayer* before, NetworkLayer& layer) {
  const bool pool = said.kind == "pool";
  layer.kind = pool ? NetworkLayer::Kind::pool : NetworkLayer::Kind::convolution;
  layer.in = said.from > 0 ? said.from : before->out;
  layer.out = pool ? layer.in : said.out;
  layer.side = said.side > 0 ? said.side : before->out_side;
  layer.kernel = said.kernel;
  layer.groups = said.groups;
  layer.adds = said.adds;
  if (layer.in % said.groups != 0 || layer.out % said.groups != 0) {
    return mistake(fmt::format("{} groups do not divide {} channels into {}", said.groups, layer.in,
                               layer.out),
                   "state a divisor of both; as many as channels is a depthwise convolution");
  }
  layer.out_side = side_after(said, layer.side);
  if (layer.out_side > 0) return std::nullopt;
  return mistake(fmt::format("a kernel of {} is larger than {} pixels with {} on each end",
                             said.kernel, layer.side, said.pad),
                 "state a smaller kernel or a larger pad");
}

Wrong read_layer(std::string_view text, const NetworkLayer* before, NetworkLayer& layer) {
  Said said;
  if (auto wrong = read_words(text, said)) return wrong;
  if (auto wrong = first_mistake(said, before)) return wrong;
  layer.times = said.times;
  return said.kind == "linear" ? linear_layer(said, before, layer)
                               : image_layer(said, before, layer);
}

}  // namespace

// A filter whose stride passes over pixels does not read them.
double NetworkLayer::values_in() const {
  const double width = double(in);
  if (kind == Kind::linear) return width;
  const double read = out_pixels() * double(kernel) * double(kernel);
  return width * std::min(double(side) * double(side), read);
}

double NetworkLayer::summed() const {
  if (kind == Kind::linear) return double(in);
  const double pixels = double(kernel) * double(kernel);
  return kind == Kind::pool ? pixels : pixels * double(in) / double(groups);
}

double NetworkLayer::weights() const { return kind == Kind::pool ? 0 : summed() * double(out); }

double NetworkLayer::offsets() const {
  switch (kind) {
    case Kind::convolution:
      return 2 * double(out);
    case Kind::linear:
      return double(out);
    case Kind::pool:
      break;
  }
  return 0;
}

std::optional<PhraseMistake> read_network(std::string_view text,
                                          std::vector<NetworkLayer>& layers) {
  layers.clear();
  std::size_t number = 0;
  for (std::string_view rest = text;; ++number) {
    const std::size_t end = rest.find(',');
    NetworkLayer layer;
    Wrong wrong;
    if (number == kMostNetworkLayers) {
      wrong = mistake(fmt::format("more than {} layers", kMostNetworkLayers),
                      "say layers that are alike once, with 'times'");
    } else {
      wrong = read_layer(rest.substr(0, end), layers.empty() ? nullptr : &layers.back(), layer);
    }
    if (wrong) {
      wrong->phrase = number;
      return wrong;
    }
    layers.push_back(layer);
    if (end == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(end + 1);
  }
}

std::optional<PhraseMistake> network_mistake(std::string_view text) {
  std::vector<NetworkLayer> layers;
  return read_network(text, layers);
}

std::vector<NetworkLayer> network_layers(std::string_view text) {
  std::vector<NetworkLayer> layers;
  check(!read_network(text, layers), "a network is looked at before it is used");
  return layers;
}

double most_values(const std::vector<NetworkLayer>& layers) {
  double most = 0;
  for (const NetworkLayer& layer : layers) {
    const double shortcut = layer.adds ? layer.values_out() : 0;
    const double whole = layer.kind == NetworkLayer::Kind::linear
                             ? double(layer.in)
                             : double(layer.in) * double(layer.side) * double(layer.side);
    most = std::max(most, whole + layer.values_out() + shortcut);
  }
  return most;
}

}  // namespace engine
