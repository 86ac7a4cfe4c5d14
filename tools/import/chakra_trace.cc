#include "tools/import/chakra_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sweep/input/read_text.h"
#include "tools/import/wire_message.h"

namespace tools {
namespace {

using engine::Mistake;
using nlohmann::json;

// Numbers of fields in Chakra's schema (et_def.proto, package ChakraProtoMsg).
namespace node_field {
constexpr std::uint64_t kId = 1, kName = 2, kParents = 4, kMicroseconds = 7, kInputs = 8,
                        kAttribute = 10;
}
namespace input_field {
constexpr std::uint64_t kShapes = 2, kTypes = 3;
}
namespace attribute_field {
constexpr std::uint64_t kName = 1, kBool = 27;
}

// What we read of a node: an operator on the host, or a kernel whose parent is one.
struct TraceNode {
  std::int64_t id = 0;
  std::string_view name;
  std::optional<std::int64_t> parent;
  double microseconds = 0;
  std::string_view shapes, types;
  bool on_device = false;
};

// Lists as Python prints them, "['Tensor(float)', 'Int']": JSON but for the quotes.
json list_of(std::string_view text) {
  std::string quoted(text);
  std::ranges::replace(quoted, '\'', '"');
  return json::parse(quoted, nullptr, false);
}

// "Tensor(c10::BFloat16)" is "c10::BFloat16".
std::string element_type(std::string type) {
  constexpr std::string_view kTensor = "Tensor(";
  if (!type.starts_with(kTensor) || !type.ends_with(')')) return type;
  return type.substr(kTensor.size(), type.size() - kTensor.size() - 1);
}

std::vector<Argument> arguments_of(const TraceNode& node) {
  const json shapes = list_of(node.shapes), types = list_of(node.types);
  std::vector<Argument> arguments;
  if (!shapes.is_array()) return arguments;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    Argument& argument = arguments.emplace_back();
    if (types.is_array() && i < types.size() && types[i].is_string())
      argument.type = element_type(types[i].get<std::string>());
    if (!shapes[i].is_array()) continue;
    for (const json& dim : shapes[i]) {
      if (dim.is_number_integer()) argument.dims.push_back(dim.get<std::int64_t>());
    }
  }
  return arguments;
}

// Kernels have the attribute is_cpu_op, and it is false.
bool says_device(std::string_view attribute) {
  WireReader reader(attribute);
  std::string_view name;
  std::optional<std::uint64_t> truth;
  while (const auto field = reader.next()) {
    if (field->number == attribute_field::kName) name = field->bytes;
    if (field->number == attribute_field::kBool && !field->is_bytes) truth = field->value;
  }
  return name == "is_cpu_op" && truth == 0;
}

std::optional<std::int64_t> first_of(const WireField& parents) {
  if (!parents.is_bytes) return std::int64_t(parents.value);
  const auto first = WireReader(parents.bytes).number();
  return first ? std::optional(std::int64_t(*first)) : std::nullopt;
}

void read_inputs(std::string_view message, TraceNode& node) {
  WireReader reader(message);
  while (const auto field = reader.next()) {
    if (field->number == input_field::kShapes) node.shapes = field->bytes;
    if (field->number == input_field::kTypes) node.types = field->bytes;
  }
}

std::optional<TraceNode> read_node(std::string_view message) {
  TraceNode node;
  WireReader reader(message);
  while (const auto field = reader.next()) {
    switch (field->number) {
      case node_field::kId:
        node.id = std::int64_t(field->value);
        break;
      case node_field::kName:
        node.name = field->bytes;
        break;
      case node_field::kParents:
        if (!node.parent) node.parent = first_of(*field);
        break;
      case node_field::kMicroseconds:
        node.microseconds = double(field->value);
        break;
      case node_field::kInputs:
        read_inputs(field->bytes, node);
        break;
      case node_field::kAttribute:
        node.on_device = node.on_device || says_device(field->bytes);
        break;
      default:
        break;
    }
  }
  return reader.damaged() ? std::nullopt : std::optional(node);
}

engine::Result<TracedCalls> read_calls(const std::filesystem::path& file, std::string_view trace) {
  TracedCalls calls;
  WireReader reader(trace);
  // Each message follows its length. The first one is about the trace, all others are nodes.
  for (std::size_t message = 0; !reader.at_end(); ++message) {
    const std::size_t begin = reader.position();
    const auto length = reader.number();
    const auto content = length ? reader.bytes(*length) : std::nullopt;
    const auto node = content ? read_node(*content) : std::nullopt;
    if (!node) {
      return Mistake{{file.string(), 0, 0},
                     fmt::format("this is no Chakra execution trace, or it is damaged: message {} "
                                 "at byte {} of {} cannot be read",
                                 message, begin, trace.size()),
                     "a trace is what chakra_converter writes (.et); was it copied whole?"};
    }
    if (message == 0) continue;
    if (node->on_device) {
      calls.add_kernel(node->parent.value_or(node->id), node->name, node->microseconds);
    } else {
      const std::vector<Argument> arguments = arguments_of(*node);
      const std::string why = impossible_shape(node->name, arguments);
      if (!why.empty()) {
        return Mistake{{file.string(), 0, 0},
                       fmt::format("message {} at byte {} is damaged: {} cannot have run: {}",
                                   message, begin, node->name, why),
                       ""};
      }
      calls.add_operator(node->id, std::string(node->name), arguments);
    }
  }
  return calls;
}

}  // namespace

engine::Result<TracedKernels> read_chakra_trace(const std::filesystem::path& file) {
  const auto trace = sweep::read_table_bytes(file);
  if (!trace) return trace.mistakes();
  const auto calls = read_calls(file, *trace);
  if (!calls) return calls.mistakes();
  if (calls->empty()) {
    return Mistake{{file.string(), 0, 0},
                   "the trace has no kernels",
                   "link the host's trace with the device's (chakra_trace_link) before converting"};
  }
  TracedKernels made = calls->table("chakra");
  if (made.taken == 0) {
    return Mistake{{file.string(), 0, 0},
                   "no kernel of the trace belongs to an operator whose shape is known",
                   "products and attention are known, where the nodes of the host have shapes"};
  }
  return made;
}

}  // namespace tools
