// Designs stated one by one, as optimisers ask for them: a base that is read once, then batches of scenarios over it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "sweep/language/library.h"
#include "sweep/language/node.h"
#include "sweep/space/space.h"

namespace sweep {

class SweepReader;

// One path and what every scenario of a batch sets it to. Each value is listed once, at the place of the first
// scenario that has it: reading thousands of scenarios takes as long as reading what differs between them.
struct BatchField {
  NodeEntry path_and_values;
  std::vector<std::uint32_t> order;  // of each scenario, its place among the values
};

class BatchReader {
 public:
  // `base` says what a sweep does under `base:`. Paths in it are relative to `file_name`, which messages name.
  static engine::Result<BatchReader> open(std::string_view base, const std::string& file_name,
                                          const Library& library);
  ~BatchReader();
  BatchReader(BatchReader&&) noexcept;

  // The space whose position i is scenario i; without fields, one position: the base. Specs and traces that a batch
  // names are kept for those to come.
  engine::Result<Space> read(const std::vector<BatchField>& fields);
  // Whether a file that was read for the base or a batch may have changed since: then another reader has to be opened.
  bool is_outdated() const;

 private:
  explicit BatchReader(std::unique_ptr<SweepReader> reader);
  std::unique_ptr<SweepReader> reader_;
};

}  // namespace sweep
