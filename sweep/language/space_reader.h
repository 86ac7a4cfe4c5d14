// `axes` to the tree of a space: products, zips, concatenations and samples of axes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sweep/language/axis_values.h"
#include "sweep/language/batch_reader.h"
#include "sweep/language/node.h"
#include "sweep/language/reading.h"
#include "sweep/space/space_parts.h"

namespace sweep {

class SpaceReader {
 public:
  SpaceReader(SpaceParts& parts, std::uint64_t seed, Reading& reading)
      : parts_(parts), seed_(seed), reading_(reading) {}

  // A list of axes: their product.
  SpaceNode read_axes(const Node& list);
  // Scenarios stated one by one: axes that move together, each through its values in an order of its own.
  SpaceNode read_batch(const std::vector<BatchField>& fields);
  // `replicates: n`.
  SpaceNode replicates(std::int64_t count, const Node& node);

  // `require`: a list, or a single one. Returns their numbers.
  std::vector<int> read_requirements(const Node& node, bool everywhere);
  // `derive`: a map of path to expression.
  void read_derivations(const Node& node);

  // What can only be told once everything is read: conditions on what comes later.
  void check_order();
  // Axes that no point reads; asked when there are no other mistakes.
  void check_inert() const;
  // Where each axis was written.
  std::vector<engine::Location> places() const;

 private:
  // Which branch of which concat an axis is in: two axes of different branches never meet.
  using Trail = std::vector<std::pair<int, int>>;
  struct Noted {
    Trail trail;
    engine::Location where;
    std::vector<std::pair<int, engine::Location>> conditions;  // formulas and their places
  };

  // What sets a path: an axis, which may yield to others, or the base of a sub-sweep of a concat.
  struct Setter {
    enum class Kind { axis, yielding, base };
    Kind kind;
    engine::Location where;
    std::string name() const { return kind == Kind::axis ? "the axis" : "the sub-sweep's base"; }
  };
  using Setters = std::map<std::string, Setter>;  // by path

  // A leaf that is derived from others alone, and set besides.
  void refuse_taken(const Node& derived);
  SpaceNode read_item(const Node& item);
  SpaceNode read_entry(const NodeEntry& entry);
  SpaceNode read_values_axis(const NodeEntry& entry, FormPlace place);
  SpaceNode read_zip(const NodeEntry& entry);
  SpaceNode read_concat(const NodeEntry& entry);
  SpaceNode read_sample(const NodeEntry& entry);
  Branch read_branch(const Node& node, std::string& name);
  SpaceNode read_dimension(const NodeEntry& written, const SampleDimension::Options& options);

  int add_axis(const Node& path, AxisForm form, FormPlace place);
  int add_fixed(const Assignment& assignment);
  int new_axis(const std::string& path, const Setter& setter);
  void take_path(const std::string& path, const Setter& setter);
  int add_condition(const Node& node);
  void set_when(int axis, int formula, const engine::Location& where);
  void set_when_below(const SpaceNode& node, int formula, const engine::Location& where);
  void set_group_when(const SpaceNode& node, const Node& when);
  int label_column(const std::string& name);
  std::int32_t label_code(int column, const std::string& label);

  SpaceParts& parts_;
  std::uint64_t seed_;
  Reading& reading_;
  Setters taken_;                                          // paths set on the way to here
  std::vector<Noted> noted_;                               // one an axis
  std::vector<std::pair<int, engine::Location>> derived_;  // leaves and places, in order
  Trail trail_;
  int concats_ = 0;
  bool in_zip_ = false;
  std::vector<std::map<std::string, std::int32_t>> codes_;  // of each label column
};

}  // namespace sweep
