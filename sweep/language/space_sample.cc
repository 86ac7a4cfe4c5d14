// `sample`: paths drawn together, at random, by Latin hypercube or by a Sobol sequence.
#include <algorithm>

#include "sweep/language/read_fields.h"
#include "sweep/language/read_value.h"
#include "sweep/language/space_reader.h"
#include "sweep/language/suggest.h"
#include "sweep/space/sobol.h"
#include "sweep/space/text_code.h"

namespace sweep {

namespace {

void read_method(const NodeEntry& option, SampleDimension::Options& sample, Reading& reading) {
  const std::string& key = option.key.text;
  sample.method = key == "random"  ? SampleMethod::random
                  : key == "sobol" ? SampleMethod::sobol
                                   : SampleMethod::latin_hypercube;
  const auto count = read_count(option.value, "sample." + key, 1, reading);
  if (!count) return;
  sample.count = std::uint64_t(*count);
  // Where the bits of a Sobol sequence end, and more than anyone runs.
  if (sample.count > (std::uint64_t{1} << 32)) {
    reading.mistake(option.value.where, "sample: more than 4294967296 points", "draw fewer");
  }
}

// `{values: [...], with: PATH}` follows the draws of another path of the sample.
const Node* followed_by(const NodeEntry& dimension) {
  return dimension.value.is_map() ? dimension.value.find("with") : nullptr;
}

std::size_t value_count(const Node& dimension) {
  const Node* values = dimension.find("values");
  return (values == nullptr ? dimension : *values).items.size();
}

// The dimension whose draws this one takes: its own, or those of one it follows.
const NodeEntry& drawn_as(const NodeEntry& dimension, const Node& of, Reading& reading) {
  const Node* with = followed_by(dimension);
  if (with == nullptr) return dimension;
  const auto found = std::ranges::find(of.entries, with->text,
                                       [](const NodeEntry& other) { return other.key.text; });
  const auto wrong = [&](const std::string& what, const std::string& hint) -> const NodeEntry& {
    reading.mistake(with->where, "sample: " + what, hint);
    return dimension;
  };
  if (found == of.entries.end() || followed_by(*found) != nullptr) {
    return wrong("'with' names no other path that is drawn", "name a path of the same 'of'");
  }
  if (value_count(found->value) != value_count(dimension.value)) {
    return wrong("'" + dimension.key.text + "' has " +
                     std::to_string(value_count(dimension.value)) + " values, but '" + with->text +
                     "' has " + std::to_string(value_count(found->value)),
                 "those that are drawn together have equally many values");
  }
  return *found;
}

}  // namespace

SpaceNode SpaceReader::read_sample(const NodeEntry& entry) {
  SpaceNode node;
  node.kind = SpaceNode::Kind::sample;
  node.size = 0;
  const Node& map = entry.value;
  const Node* of = map.find("of");
  const Node* when = nullptr;
  const Node* seed = nullptr;
  const Node* method = nullptr;
  node.sample.seed = seed_;
  const std::size_t before = reading_.mistakes.size();
  const std::vector<std::string> keys{"random", "latin_hypercube", "sobol", "of", "seed", "when"};
  for (const NodeEntry& option : map.entries) {
    const std::string& key = option.key.text;
    if (key == "of") continue;
    if (key == "when") {
      when = &option.value;
    } else if (key == "seed") {
      seed = &option.value;
    } else if (key == "random" || key == "latin_hypercube" || key == "sobol") {
      if (method != nullptr) {
        reading_.mistake(option.key.where, "sample: '" + key + "' beside another method",
                         "keep one of them");
      }
      method = &option.value;
      read_method(option, node.sample, reading_);
    } else {
      reading_.mistake(option.key.where, "unknown key '" + key + "' in a sample",
                       suggestion(key, keys, "known keys"));
    }
  }
  if (!map.is_map() || method == nullptr || of == nullptr || !of->is_map() || of->entries.empty()) {
    // A method that is misspelt has been told already.
    if (method == nullptr && reading_.mistakes.size() > before) return node;
    reading_.mistake(
        map.where, "a sample needs a method with a count, and 'of'",
        "write 'sample: {latin_hypercube: 200, of: {device.clock: [1.2 GHz, 2.6 GHz]}}'");
    return node;
  }
  if (seed != nullptr) {
    if (const auto value = read_count(*seed, "sample.seed", 0, reading_)) {
      node.sample.seed = std::uint64_t(*value);
      node.sample.scrambled = true;
    }
  }
  for (const NodeEntry& dimension : of->entries) {
    SampleDimension::Options options = node.sample;
    const NodeEntry& drawn = drawn_as(dimension, *of, reading_);
    options.sobol_dimension = int(&drawn - of->entries.data());
    options.lane = std::uint32_t(std::uint64_t(text_code(drawn.key.text)));
    node.children.push_back(read_dimension(dimension, options));
  }
  if (when != nullptr) set_group_when(node, *when);
  node.size = node.sample.count;
  return node;
}

SpaceNode SpaceReader::read_dimension(const NodeEntry& written,
                                      const SampleDimension::Options& options) {
  NodeEntry entry = written;
  const Node* with = followed_by(written);
  std::erase_if(entry.value.entries, [](const NodeEntry& key) { return key.key.text == "with"; });
  SpaceNode node;
  node.kind = SpaceNode::Kind::values;
  Node path = entry.key;
  path.text = meant_by(path.text);
  const Target target = find_target(path, reading_);
  if (target.leaf == nullptr && target.section == nullptr) return node;
  node.axis =
      add_axis(path, read_form(target, entry, FormPlace::sample, reading_), FormPlace::sample);
  if (options.method == SampleMethod::sobol && options.sobol_dimension >= kSobolDimensions) {
    reading_.mistake(
        entry.key.where,
        "sample: a Sobol sequence of more than " + std::to_string(kSobolDimensions) + " paths",
        "use latin_hypercube, or sample fewer paths");
    return node;
  }
  Axis& axis = parts_.axes[std::size_t(node.axis)];
  axis.dimension = SampleDimension(options);
  if (with != nullptr) axis.drawn_with = with->text;
  return node;
}

}  // namespace sweep
