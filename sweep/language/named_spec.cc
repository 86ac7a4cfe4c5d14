// What `list` and `show` need: one named spec, and a line about it.
#include <sstream>
#include <utility>

#include "engine/model/model_spec.h"
#include "sweep/language/companion_writer.h"
#include "sweep/language/load_spec.h"
#include "sweep/language/parse_quantity.h"
#include "sweep/language/published_formats.h"
#include "sweep/language/read_fields.h"
#include "sweep/language/sweep_spec.h"
#include "sweep/language/yaml_file.h"
#include "sweep/space/sampled_value.h"

namespace sweep {

engine::Result<NamedSpec> read_named(const Library& library, std::string_view library_name,
                                     std::string_view name) {
  const engine::LeafTable& table = engine::leaf_table();
  Reading reading(library);
  for (const engine::Section& section : table.sections) {
    if (section.library != library_name) continue;
    Node node;
    node.kind = Node::Kind::scalar;
    node.text = name;
    NamedSpec spec{.section = section.path};
    for (const Edit& edit : named_spec(section, node, library_name, reading)) {
      apply(edit, spec.scenario);
    }
    if (library_name == "models") {
      const auto& quant = table.sections[std::size_t(table.find_section("quant"))];
      const Node formats = map_of(formats_of_model(node, reading), node.where);
      for (const Edit& edit : merged(read_section(quant, formats, "quant", reading))) {
        apply(edit, spec.scenario);
      }
    }
    if (!reading.mistakes.empty()) return std::move(reading.mistakes).finish();
    return spec;
  }
  return engine::Mistake{{}, "there is no library '" + std::string(library_name) + "'", ""};
}

namespace {

// The first sentence of the comment at the top of a file: every file of the library opens with one.
std::string opening_sentence(const std::filesystem::path& file) {
  const auto text = read_text_file(file);
  if (!text) return "";
  std::istringstream lines(*text);
  std::string comment;
  for (std::string line; std::getline(lines, line) && line.starts_with("# ");) {
    comment += (comment.empty() ? "" : " ") + line.substr(2);
  }
  for (std::size_t end = comment.find_first_of(".?"); end != std::string::npos;
       end = comment.find_first_of(".?", end + 1)) {
    if (end + 1 == comment.size() || comment[end + 1] == ' ') return comment.substr(0, end + 1);
  }
  return comment;
}

std::string figures_of(const NamedSpec& spec) {
  using engine::UnitOf;
  const auto quantity = [](auto value) {
    return format_quantity(rounded(value.value, 4), UnitOf<decltype(value)>::unit);
  };
  const auto link_text = [&](const engine::Link& link) {
    return quantity(link.bandwidth) + " per direction, " + quantity(link.latency) + ", up to " +
           std::to_string(link.devices) + " devices";
  };
  const engine::Scenario& scenario = spec.scenario;
  if (spec.section == "device") {
    const engine::Device& device = scenario.device;
    return quantity(device.memory_capacity) + ", " + quantity(device.memory_bandwidth) + ", " +
           (device.peak.bf16.value > 0 ? quantity(device.peak.bf16) + " bf16"
                                       : quantity(device.peak.fp16) + " fp16");
  }
  if (spec.section == "model") {
    const double total = engine::parameter_counts(scenario.model).total();
    std::string text = format_number(rounded(total / 1e9, 3)) + " B parameters";
    if (scenario.model.is_moe()) {
      text += " (" + format_number(rounded(engine::active_parameters(scenario.model) / 1e9, 3)) +
              " B active)";
    }
    return text + ", " + std::to_string(scenario.model.layers) + " layers";
  }
  if (spec.section == "device.scale_up") return link_text(scenario.device.scale_up);
  return "";
}

}  // namespace

std::string summary_of(const Library& library, std::string_view library_name,
                       std::string_view name) {
  if (const auto spec = read_named(library, library_name, name)) {
    if (std::string figures = figures_of(*spec); !figures.empty()) return figures;
  }
  const auto file = library.find(library_name, name);
  return file ? opening_sentence(*file) : "";
}

}  // namespace sweep
