// The families of kernel tables: which sizes describe their calls, and which operation of the engine a row is.
#pragma once

#include <vector>

#include "engine/model/op.h"
#include "tools/calibrate/tables/kernel_table.h"

namespace tools {

// A size that a family's calls have. Where the column or the cell is absent it is `fallback`; a negative one
// means that it must be there.
struct Need {
  Size size;
  double fallback = -1;
};

struct TableFamily {
  engine::Family family;
  std::vector<Need> needs;
  engine::Op (*op)(const KernelCall& call);
};

// nullptr: kernel tables do not have the family.
const TableFamily* table_family(engine::Family family);

engine::Op op_of(const KernelCall& call);

}  // namespace tools
