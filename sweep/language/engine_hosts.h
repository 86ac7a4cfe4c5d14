// The CPU side of an engine or a training library goes with it: a sweep that names one and no host means the host of that name.
#pragma once

#include <memory>
#include <vector>

#include "sweep/input/limits.h"
#include "sweep/language/batch_reader.h"
#include "sweep/language/library.h"
#include "sweep/language/node.h"
#include "sweep/language/said_of_hosts.h"

namespace sweep {

// Puts a host beside every engine that the documents name, in a base or on an axis; in sweeps of training, beside every library.
// What the documents say of single fields of a host is said of that one. Documents that name hosts themselves are left as they are. Where
// some points train and others do not, the host goes with the task: it is that of the library or of the engine, of which there is one each;
// where several are named, documents are left as they are. Returns what they said before.
//
// Other deployments that name an engine have its host, unless the main one's is named: then they are like that. The deployment
// that makes samples for training serves. So it never has the host of a training library; where it names no engine, it has one of
// round figures.
SaidOfHosts add_hosts(std::vector<std::unique_ptr<const Node>>& documents, const Library& library,
                      const InputLimits& limits);

// The same for scenarios of a batch over a base that said this.
void add_hosts(std::vector<BatchField>& fields, SaidOfHosts said, const Library& library,
               const InputLimits& limits);

}  // namespace sweep
