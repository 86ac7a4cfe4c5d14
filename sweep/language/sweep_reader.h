// A sweep as it is read: its documents, its base, and what can only be told once all of it is there. Every mistake is
// collected; nothing is thrown.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/language/batch_reader.h"
#include "sweep/language/inert_axes.h"
#include "sweep/language/node.h"
#include "sweep/language/published_formats.h"
#include "sweep/language/read_files.h"
#include "sweep/language/reading.h"
#include "sweep/language/said_of_hosts.h"
#include "sweep/language/sweep_spec.h"
#include "sweep/space/space_parts.h"

namespace sweep {

class SpaceReader;

class SweepReader {
 public:
  SweepReader(std::string file_name, const Library& library, InertAxes inert);

  // The whole sweep. Asked once.
  engine::Result<SweepSpec> run(engine::Result<Node> root);

  // Or the base alone, and then any number of batches of designs over it.
  void start(engine::Result<Node> root, PublishedFormats::Documents kind);
  engine::Result<Space> batch(std::vector<BatchField> fields);
  // Whether a file that the base or a batch named may have changed since it was read.
  bool is_outdated() const { return read_files_.any_changed(); }

  // Everything that is wrong so far, in the order of the files; forgotten once it is told.
  std::vector<engine::Mistake> mistakes();

 private:
  // Documents in the order they count: what a file includes comes before the file.
  void gather(engine::Result<Node> root, const std::string& file);
  void unknown_key(const Node& key);
  void include(const Node& node);
  // What the last document that has the key says: a file overrides what it includes.
  const Node* last(std::string_view key) const;
  template <class Visit>
  void each(std::string_view key, Visit&& visit) {
    for (const auto& document : documents_) {
      if (const Node* node = document->find(key)) visit(*node);
    }
  }

  void note_files();
  void read_base(const Node* seed);
  void read_replicates(const Node& node, SpaceReader& reader);
  // What is said of a role waits until its point is known; that anything is said makes the role be there.
  void take_into_base(const Edit& edit);
  void note_overrides(const Node& base);
  void note_fields(const Node& section, const std::string& path);
  // Whether the sweep says something about a path, in the base, on an axis or by derivation.
  bool states(std::string_view path) const;
  void check_compared();
  void check_whole();
  // Whether it is the run.yaml of a sweep: every name is looked up, so that it states all and names nothing.
  bool written_out() const;
  void check_labels(const std::vector<engine::Location>& places);
  void check_names(const std::string& name);
  InertAxes inert_;
  std::string file_name_;
  Reading reading_;
  ReadFiles read_files_;
  SpaceParts parts_;
  engine::Location root_where_;
  std::vector<std::unique_ptr<const Node>> documents_;  // conditions point into them while we read
  SaidOfHosts said_of_hosts_;
  PublishedFormats formats_{reading_};
  std::vector<StatedField> base_fields_;
  std::map<int, engine::Location> roles_in_base_;  // by their leaves `present`
};

}  // namespace sweep
