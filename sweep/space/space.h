// A base scenario plus axes: knows its size and any point of it from one integer; nothing is expanded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/scenario.h"
#include "sweep/space/point.h"

namespace sweep {

// A column of labels: what the user wrote for each value of an axis ("h100-sxm", "2 TB/s").
struct LabelColumn {
  std::string name;                 // the axis: "device", "step.batch"
  std::vector<std::string> values;  // a point's code counts into this
};

struct SpaceParts;  // axes, expressions and tables, built by sweep/language

class Space {
 public:
  explicit Space(std::shared_ptr<const SpaceParts> parts);

  // Positions of the grid: points, positions rejected and positions not applicable together.
  std::uint64_t size() const;
  const engine::Scenario& base() const;
  const std::vector<LabelColumn>& label_columns() const;
  // The text of each `require`, by its number.
  const std::vector<std::string>& requirements() const;
  // Leaves (positions in engine::leaf_table()) that an axis or a `derive` may change.
  const std::vector<int>& varied_leaves() const;
  // Leaves that a sample draws from an interval: no label says what they are, only their value does.
  std::vector<int> sampled_leaves() const;

  const SpaceParts& parts() const { return *parts_; }

 private:
  std::shared_ptr<const SpaceParts> parts_;
};

// Builds points. Holds compiled expressions and scratch memory, so each thread has its own.
class PointBuilder {
 public:
  explicit PointBuilder(const Space& space);
  ~PointBuilder();
  PointBuilder(PointBuilder&&) noexcept;

  // Fills `point` (its memory is reused); on rejection `rejected_by` tells which requirement.
  Admission build(std::uint64_t index, Point& point);
  int rejected_by() const;

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace sweep
