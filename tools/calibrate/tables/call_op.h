// A row of a kernel table as an operation of the engine.
#pragma once

#include "engine/model/op.h"
#include "tools/calibrate/tables/kernel_table.h"

namespace tools {

engine::Op op_of(const KernelCall& call);

}  // namespace tools
