// Do the lines of a run's manifests make sense: ranges within the grid and the shard, each position
// claimed once, files that are the part's own.
#pragma once

#include <vector>

#include "results/manifest.h"

namespace results {

// One shard's manifest as found in a folder.
struct ShardManifest {
  Shard shard;
  Manifest manifest;
};

// Takes parts that cannot be believed out of `parts` and says so in `damage`. Of two parts that claim
// the same position neither can be believed.
void check_claims(std::vector<ShardManifest>& manifests);

}  // namespace results
