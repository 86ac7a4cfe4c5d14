// Models come in number formats: those they are published in count where a sweep states none.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sweep/language/batch_reader.h"
#include "sweep/language/node.h"
#include "sweep/language/reading.h"
#include "sweep/language/said_of_formats.h"
#include "sweep/language/said_of_hosts.h"

namespace sweep {

// Formats that the file of a named model says, or those of what it is made from, as fields of `quant`.
std::vector<NodeEntry> formats_of_model(const Node& name, Reading& reading);

class PublishedFormats {
 public:
  explicit PublishedFormats(Reading& reading) : reading_(reading) {}

  // What documents are read for: points of their own, or scenarios of batches, which may be of other tasks.
  enum class Documents : std::uint8_t { of_sweep, of_batches };
  // Puts their formats beside the models that the documents name, in a base or on an axis: those that `quant` of a model's file
  // says, or the quantization_config of its config.json. Where one has such formats, whole models without are in those of a sweep
  // that says nothing. Documents that state that of weights are left as they are. Points that train take none, as training takes
  // wider weights than are published.
  void add(std::vector<std::unique_ptr<const Node>>& documents, const SaidOfHosts& tasks,
           Documents kind);
  // The same for scenarios of a batch over those documents; what must be derived for those that train.
  Node add(std::vector<BatchField>& fields, const SaidOfHosts& tasks);

 private:
  using Fields = std::set<std::string, std::less<>>;
  using Said =
      std::map<std::string, SaidOfFormats, std::less<>>;  // by deployment; "": the main one

  template <class Write>
  bool each_writer(const Said& said, Fields& brought, Write&& write);

  // What goes with weights that are stated, for fields that models bring and nobody states.
  std::vector<NodeEntry> usual_beside(const SaidOfFormats& said, const std::string& section,
                                      const engine::Location& where) const;
  // What gives points that train the usual formats where others have those that models `brought`.
  Node wider_where_trained(const Said& said, const Fields& brought, const engine::Location& where);
  // A role that states its weights takes nothing of what the main deployment's model brought.
  void leave_main(Node& sweep, const std::string& role, const SaidOfFormats& said) const;

  Reading& reading_;
  Said said_;
  Fields brought_;                 // fields that models come with, other than by default
  std::vector<NodeEntry> around_;  // formats of the base's model
};

}  // namespace sweep
