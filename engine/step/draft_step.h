// What it takes to propose the tokens that a decode step then verifies: steps of a small model one after the other,
// products beside the main model, the host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/step/step_time.h"

namespace engine {

// Products on hidden states of the main model, once for each sequence.
struct DraftProducts {
  std::int64_t heads = 0;  // an output head each, behind a square product
  std::int64_t joins = 0;  // a hidden state and an embedding become one
};

// Steps of the model one after the other that work on equally many tokens of a sequence: one in a chain of proposals, and
// all candidates for a position in a tree.
struct DraftRound {
  std::int64_t queries = 1;
  std::int64_t steps = 0;
  std::int64_t before = 0;  // tokens proposed before the first of them

  // The context that all of its steps are timed at: that of the middle one.
  std::int64_t middle(std::int64_t context) const { return context + before + (steps - 1) / 2; }
};
void product_ops(const ModelShard& shard, const DraftProducts& products, std::int64_t rows,
                 OpList& ops);

// What proposals keep busy in a pipeline. An added layer, output heads and a lookup want what the last stage makes, so engines
// (vLLM) keep whatever proposes there, and batches behind it wait; the main model, proposing for itself, passes through every
// stage; and a draft on other devices has batches of its own in turn.
enum class DraftPlace : std::uint8_t { last_stage, every_stage, elsewhere };

// How long after a batch the next one may enter a pipeline of so many equal stages, where a step takes `seconds`, `drafting` of which are
// the draft's.
inline double stage_seconds(DraftPlace place, double stages, double seconds, double drafting) {
  if (drafting == 0) return seconds / stages;
  const double verifying = (seconds - drafting) / stages;
  switch (place) {
    case DraftPlace::last_stage:
      return verifying + drafting;
    case DraftPlace::every_stage:
      return seconds / stages;
    case DraftPlace::elsewhere:
      return std::max(verifying, drafting);
  }
  return seconds;
}

struct DraftStep {
  std::optional<StepContext> model;  // is asked in rounds
  std::vector<DraftRound> rounds;
  bool reads_prompts = true;          // unless it is the main model, which does anyway,
  bool has_adapters = false;          // and has those of its sequences
  std::optional<StepContext> beside;  // the main model, where there are products
  DraftProducts products;
  DraftPlace place = DraftPlace::last_stage;
  Seconds fixed, per_sequence;  // of the host

  Seconds host(std::int64_t sequences) const { return fixed + per_sequence * double(sequences); }
};

// What the host adds to products that take `device`: an added layer has them in its own graph, heads have one of theirs.
HostTime product_host(const DraftStep& draft, const DeviceTime& device, std::int64_t sequences);

// Proposals for the decode steps of a run of the main model; their rows have the role `draft`.
StepTime draft_time(const DraftStep& draft, const DecodeRun& run, Breakdown& rows);

}  // namespace engine
