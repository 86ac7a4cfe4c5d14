// What a space is made of: axes, the tree that combines them, and the expressions over them. Built
// once by sweep/language, then shared and never changed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/leaves/leaves.h"
#include "engine/resources.h"
#include "engine/scenario.h"
#include "sweep/space/expression.h"
#include "sweep/space/leaf_write.h"
#include "sweep/space/sample.h"
#include "sweep/space/space.h"

namespace sweep {

constexpr int kNone = -1;

// One leaf takes one value.
struct Edit {
  int leaf = 0;  // position in engine::leaf_table()
  engine::LeafValue value;

  bool operator==(const Edit&) const = default;
};

inline void apply(const Edit& edit, engine::Scenario& scenario) {
  engine::set_leaf(scenario, engine::leaf_table().leaves[std::size_t(edit.leaf)], edit.value);
}

// One listed value of an axis: edits [first_edit, last_edit) of its axis.
struct Setting {
  std::uint32_t first_edit = 0;
  std::uint32_t last_edit = 0;
  std::int32_t label = kNone;     // code in the axis's label column
  int when = kNone;               // formula; where it is false, this position is not applicable
  std::uint32_t first_write = 0;  // the same edits, laid out: of the axis's `writes`
  std::uint32_t last_write = 0;
};

// A sampled interval of one numeric leaf.
struct Interval {
  enum class Scale : std::uint8_t { linear, logarithmic };
  int leaf = kNone;
  double low = 0;
  double high = 0;
  Scale scale = Scale::linear;
};

// Everything that may be written to one path: the values of an axis, a dimension of a sample, or (a
// single setting without a label) an override of a sub-sweep's base.
struct Axis {
  std::string path;
  int depth = 0;             // parts of the path: broad paths are applied before narrow ones
  bool yields = false;       // applied before all others, whatever its path
  int label_column = kNone;  // in Space::label_columns
  int when = kNone;          // formula
  std::vector<Setting> settings;
  std::vector<Edit> edits;
  std::vector<LeafWrite> writes;  // by compile_writes()
  Interval interval;              // where settings is empty
  SampleDimension dimension;      // of a sample
  std::string drawn_with;         // of a sample: the path whose draws it follows
  // The role (engine::Role) that the path lies in, by its leaf `present`; and whether the axis says itself
  // that the role is there or not. One that does not implies it: there is a role of which something is said.
  int role = kNone;
  bool states_presence = false;
  // Another axis has a narrower path inside this one, or this one yields: applying this one later than that one (as a
  // `when` does) takes a rebuild.
  bool holds_narrower = false;
  bool inside_another = false;  // of an axis over a broader path
};

struct Branch;

// The tree that turns one integer into one position on every axis.
struct SpaceNode {
  enum class Kind : std::uint8_t {
    values,   // one axis, by its settings
    product,  // all combinations; the last child moves fastest
    zip,      // children side by side
    concat,   // branches one after another
    sample,   // one axis a child, all drawn together
  };
  Kind kind = Kind::product;
  std::uint64_t size = 1;
  int axis = kNone;                  // values, and each child of a sample
  std::vector<std::uint32_t> order;  // values: the setting of each position; empty: as listed
  std::vector<SpaceNode> children;   // product, zip, sample
  std::vector<Branch> branches;      // concat
  int label_column = kNone;          // concat: the names of its branches

  // As written, so that run.yaml can say it again (sample).
  SampleDimension::Options sample;
};

// One sub-sweep of a concat.
struct Branch {
  std::uint64_t begin = 0;        // its first position within the concat
  std::vector<int> fixed;         // axes of one setting: the overrides of its base
  std::vector<int> requirements;  // that hold only here
  std::int32_t label = kNone;
  SpaceNode node;
};

struct Requirement {
  int formula = kNone;
  std::string reason;      // what a rejected point is counted under
  bool everywhere = true;  // false: only in branches that name it
};

struct Derivation {
  int leaf = 0;
  int formula = kNone;
  int requirement = kNone;  // rejects values out of the leaf's range
};

struct SpaceParts {
  engine::Scenario base;
  // What the base says of deployments beside the main one. It counts after every axis of the main one.
  std::vector<Edit> stated_of_roles;
  std::vector<Axis> axes;
  SpaceNode root;
  std::vector<Formula> formulas;
  std::vector<Derivation> derivations;
  std::vector<Requirement> requirements;

  // What scenarios name: a point's key depends on the calibration it reads. Null: nothing is loaded.
  std::shared_ptr<const engine::Resources> resources;

  std::vector<LabelColumn> label_columns;
  std::vector<std::string> reasons;  // of the requirements
  std::vector<int> varied_leaves;
  std::vector<int> roles;  // that some point may have, by their leaves `present`
  std::vector<LeafWrite> writes_of_roles;
};

// The sizes of a node and of all below it. False where a size does not fit in 64 bits.
bool compute_size(SpaceNode& node, const SpaceParts& parts);

// Fills in what follows from the rest: sizes, reasons, varied leaves. False where the number of
// positions does not fit in 64 bits. The parts may be moved afterwards, but not copied: writes point
// at the texts of the others.
bool complete(SpaceParts& parts);

}  // namespace sweep
