// The CPU side of an engine or a training library goes with it: whoever names one and no host means the host of that name.
#pragma once

#include <memory>
#include <vector>

#include "sweep/input/limits.h"
#include "sweep/language/library.h"
#include "sweep/language/node.h"

namespace sweep {

// Puts a host beside every engine that a base of the documents names, or an axis lists; in sweeps of training, beside every library.
// Single fields of hosts that bases or axes state hold in that host. Engines that have none, and are made from none that has, are left
// as they are; so are documents that name hosts themselves, or are about both.
void add_hosts(std::vector<std::unique_ptr<const Node>>& documents, const Library& library,
               const InputLimits& limits);

}  // namespace sweep
