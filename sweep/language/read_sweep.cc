// One file (and those it includes) to a sweep.
#include <algorithm>
#include <utility>

#include "sweep/language/engine_hosts.h"
#include "sweep/language/expectation.h"
#include "sweep/language/followed_layouts.h"
#include "sweep/language/inert_axes.h"
#include "sweep/language/load_resources.h"
#include "sweep/language/notes_on_specs.h"
#include "sweep/language/read_value.h"
#include "sweep/language/space_reader.h"
#include "sweep/language/sweep_reader.h"
#include "sweep/language/write_yaml.h"
#include "sweep/language/yaml_file.h"
#include "sweep/space/text_code.h"

namespace sweep {

void SweepReader::start(engine::Result<Node> root, PublishedFormats::Documents kind) {
  gather(std::move(root), file_name_);
  said_of_hosts_ = add_hosts(documents_, reading_.library, reading_.limits);
  formats_.add(documents_, said_of_hosts_, kind);
  read_base(last("seed"));
  load_calibrations(parts_.base, root_where_, reading_);
}

void SweepReader::read_replicates(const Node& node, SpaceReader& reader) {
  const auto count = read_count(node, "replicates", 1, reading_);
  if (count && *count > kMostValues) {
    reading_.mistake(node.where, "more than " + std::to_string(kMostValues) + " replicates", "");
  } else if (count) {
    parts_.root.children.push_back(reader.replicates(*count, node));
  }
}

engine::Result<SweepSpec> SweepReader::run(engine::Result<Node> root) {
  start(std::move(root), PublishedFormats::Documents::of_sweep);
  const Node* limit = last("limit");
  SpaceReader reader(parts_, std::uint64_t(parts_.base.seed), reading_);
  parts_.root.kind = SpaceNode::Kind::product;
  each("axes", [&](const Node& node) {
    for (SpaceNode& child : reader.read_axes(node).children) {
      parts_.root.children.push_back(std::move(child));
    }
  });
  if (const Node* node = last("replicates")) read_replicates(*node, reader);
  each("derive", [&](const Node& node) { reader.read_derivations(node); });
  each("require", [&](const Node& node) { reader.read_requirements(node, true); });
  reader.check_order();

  std::string name = std::filesystem::path(file_name_).stem().string();
  std::string description;
  std::uint64_t most = kDefaultLimit;
  if (const Node* node = last("name")) name = read_text(*node, "name", reading_).value_or("");
  if (const Node* node = last("description")) {
    description = read_text(*node, "description", reading_).value_or("");
  }
  if (limit != nullptr) {
    if (const auto count = read_count(*limit, "limit", 1, reading_)) most = std::uint64_t(*count);
  }
  std::vector<Expectation> expectations;
  if (const Node* node = last("expect")) expectations = read_expectations(*node, reading_);
  check_compared();
  check_contents(parts_, root_where_, reading_);
  if (reading_.mistakes.empty()) check_labels(reader.places());
  if (reading_.mistakes.empty()) check_whole();
  if (reading_.mistakes.empty()) check_names(name);
  if (reading_.mistakes.empty() && !complete(parts_)) {
    reading_.mistake(root_where_, "the sweep has more than 2^64 positions",
                     "shorten an axis, or draw from them with 'sample'");
  }
  if (reading_.mistakes.empty()) check_positions(expectations, parts_.root.size, reading_);
  if (reading_.mistakes.empty() && inert_ == InertAxes::refused) {
    reader.check_inert();
    if (!written_out()) check_lost_fields(parts_, base_fields_, reading_);
    check_inert_roles(parts_, roles_in_base_, reading_);
  }
  if (!reading_.mistakes.empty()) return mistakes();

  std::vector<std::string> notes;
  if (inert_ == InertAxes::refused) {
    if (!written_out()) {
      notes = notes_on_idle_fields(parts_, base_fields_, roles_in_base_);
      for (const auto& more : {notes_on_idle_overrides(parts_, reader.places()),
                               notes_on_equal_specs(parts_, reader.places()),
                               notes_on_named_specs(parts_, reader.places())}) {
        notes.insert(notes.end(), more.begin(), more.end());
      }
    }
    for (std::string& note : notes_on_followed_layouts(parts_, base_fields_, reader.places())) {
      notes.push_back(std::move(note));
    }
  }
  const std::string body = space_yaml(parts_);
  const std::string identity = space_yaml(by_content(parts_));
  parts_.resources = reading_.resources;
  SweepSpec spec{.space = Space(std::make_shared<const SpaceParts>(std::move(parts_)))};
  spec.name = std::move(name);
  spec.description = std::move(description);
  spec.limit = most;
  spec.resolved =
      "# This sweep with every name looked up: reading it gives the same points.\nname: " +
      yaml_scalar(spec.name) + "\n" +
      (spec.description.empty() ? "" : "description: " + yaml_scalar(spec.description) + "\n") +
      "limit: " + std::to_string(spec.limit) + "\n" + body;
  spec.digest = text_digest(identity);
  spec.files = std::move(reading_.files);
  spec.expectations = std::move(expectations);
  spec.notes = std::move(notes);
  spec.resources = std::move(reading_.resources);
  return spec;
}

engine::Result<SweepSpec> read_sweep(const std::filesystem::path& file, const Library& library) {
  return SweepReader(file.string(), library, InertAxes::refused).run(read_yaml_file(file));
}

engine::Result<SweepSpec> read_sweep_text(std::string_view text, const std::string& file_name,
                                          const Library& library, InertAxes inert) {
  return SweepReader(file_name, library, inert).run(read_yaml(text, file_name));
}

}  // namespace sweep
