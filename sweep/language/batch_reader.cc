#include "sweep/language/batch_reader.h"

#include <utility>

#include "sweep/language/engine_hosts.h"
#include "sweep/language/space_reader.h"
#include "sweep/language/sweep_reader.h"
#include "sweep/language/yaml_file.h"

namespace sweep {

SpaceNode SpaceReader::read_batch(const std::vector<BatchField>& fields) {
  SpaceNode node;
  node.kind = SpaceNode::Kind::zip;
  const bool outer = std::exchange(in_zip_, true);
  for (const BatchField& field : fields) {
    SpaceNode child = read_values_axis(field.path_and_values, FormPlace::zip);
    child.order = field.order;
    node.children.push_back(std::move(child));
  }
  in_zip_ = outer;
  return node;
}

void SweepReader::note_files() {
  for (const std::string& file : reading_.files) read_files_.note(file);
  for (const auto& [file, trace] : reading_.resources->traces) read_files_.note(file);
  for (const auto& [file, table] : reading_.resources->acceptances) read_files_.note(file);
}

engine::Result<Space> SweepReader::batch(std::vector<BatchField> fields) {
  SpaceParts base = parts_;
  const InputLimits limits = reading_.limits;
  const std::vector<std::string> files = reading_.files;
  SpaceReader reader(parts_, std::uint64_t(parts_.base.seed), reading_);
  add_hosts(fields, said_of_hosts_, reading_.library, reading_.limits);
  SaidOfHosts tasks = said_of_hosts_;
  for (const BatchField& field : fields) read_said(field.path_and_values, tasks);
  const Node derived = formats_.add(fields, tasks);
  if (!fields.empty()) parts_.root.children.push_back(reader.read_batch(fields));
  reader.read_derivations(derived);
  reader.check_order();
  if (reading_.mistakes.empty()) check_labels(reader.places());
  if (reading_.mistakes.empty()) check_whole();
  if (reading_.mistakes.empty()) check_names(file_name_);
  if (reading_.mistakes.empty()) complete(parts_);
  note_files();
  parts_.resources = reading_.resources;
  SpaceParts made = std::exchange(parts_, std::move(base));
  reading_.limits = limits;
  reading_.files = files;
  if (reading_.mistakes.empty()) return Space(std::make_shared<const SpaceParts>(std::move(made)));
  // Specs that were read with mistakes must be found wrong the next time as well.
  reading_.specs.clear();
  return mistakes();
}

BatchReader::BatchReader(std::unique_ptr<SweepReader> reader) : reader_(std::move(reader)) {}
BatchReader::~BatchReader() = default;
BatchReader::BatchReader(BatchReader&&) noexcept = default;

engine::Result<BatchReader> BatchReader::open(std::string_view base, const std::string& file_name,
                                              const Library& library) {
  engine::Result<Node> fields = read_yaml(base, file_name);
  if (!fields) return fields.mistakes();
  Node document;
  document.kind = Node::Kind::map;
  document.where = {file_name, 1, 1};
  NodeEntry entry{.key = {.kind = Node::Kind::scalar, .text = "base", .where = document.where},
                  .value = std::move(fields).value()};
  document.entries.push_back(std::move(entry));
  // A scenario is a point, not an axis: a field that does not count there is no more a mistake than one under `base`.
  auto reader = std::make_unique<SweepReader>(file_name, library, InertAxes::allowed);
  reader->start(std::move(document), PublishedFormats::Documents::of_batches);
  std::vector<engine::Mistake> mistakes = reader->mistakes();
  if (!mistakes.empty()) return mistakes;
  return BatchReader(std::move(reader));
}

bool BatchReader::is_outdated() const { return reader_->is_outdated(); }

engine::Result<Space> BatchReader::read(const std::vector<BatchField>& fields) {
  return reader_->batch(fields);
}

}  // namespace sweep
