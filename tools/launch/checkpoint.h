// Which weights an engine is started with: the repository that engines know a row's model by.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sweep/language/library.h"
#include "tools/query/points.h"

namespace tools {

struct Checkpoint {
  std::string word;  // as an engine's command has it
  std::string
      remark;  // what the word stands for, where no repository is known to have these weights
};

// One a row. A model whose shape is not what the library says of its repository has none.
std::vector<Checkpoint> checkpoints_of(const RunRows& run, const std::vector<std::uint32_t>& rows,
                                       const sweep::Library& library);

}  // namespace tools
