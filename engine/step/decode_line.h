// Decode steps of one batch on a straight line: what the line is asked for, and how long a step on it takes.
#pragma once

#include <cstdint>

#include "engine/model/batch_shape.h"

namespace engine {

// Decode steps of one batch between two knots: step time as a function of what is attended to. Times
// are plain seconds; contexts are whole numbers held as doubles.
struct DecodeLine {
  double fixed = 0;         // device time where this line meets a context of 0
  double slope = 0;         // per token attended to in layers without a window
  double window_slope = 0;  // per token attended to in layers with a window
  // The line holds from the begins to the ends.
  double context_end = 0;
  double window_end = 0;
  double context_begin = 0;
  double window_begin = 0;
  double added = 0;  // what the host turns device time into: max(device + added, least)
  double least = 0;
  double listing_slope = 0;  // what the host adds per token in the caches, whoever sets the pace
  double overhang = 0;       // keys of the longest context beyond the mean; `fixed` has their time
  // No layer has a window, the host adds nothing per token in the caches, and nothing is proposed: those slopes are 0.
  bool plain = false;
  std::int32_t batch = 0;  // this and the next three: cells in which its steps are counted
  std::int32_t cell = -1;
  std::int32_t window_cell = -1;
  std::int32_t adapter_cell = -1;
  std::int32_t clock_level = -1;  // -1: at the device's own clock
  std::int32_t length = -1;       // which of several lengths of proposals; -1: there is only one
  std::int32_t kept = -1;  // its place among the lines that the table keeps; -1: it is not kept
  std::int64_t sequences = 0;
  // Seconds of the proposals before each step. They grow with what is attended to even where the step does not.
  double proposing = 0;
  double proposing_slope = 0;
  double proposing_window_slope = 0;
  struct Proposal {  // cells of the draft's own table
    std::int32_t batch = 0;
    std::int32_t cell = -1;
    std::int32_t window_cell = -1;
    std::int32_t adapter_cell = -1;
    std::int64_t adapters = 0;
    double overhang = 0;
    double later = 0;  // tokens attended to beyond the main model's context
  };
  Proposal proposal;

  double device(double context, double window) const {
    return fixed + slope * context + window_slope * window;
  }
  double step(double context, double window) const {
    return after_proposals(device(context, window) + added, context, window);
  }
  // The same of a plain line.
  double plain_step(double context) const {
    const double busy = fixed + slope * context + added;
    return busy > least ? busy : least;
  }
  // The same where the time of device and host together is known.
  double after_proposals(double busy, double context, double window) const {
    return (busy > least ? busy : least) + listing_slope * context + proposals(context, window);
  }
  double proposals(double context, double window) const {
    return proposing + proposing_slope * context + proposing_window_slope * window;
  }
};

// The line of no sequences at all.
inline constexpr DecodeLine kNoLine;

// What a line is asked for: `sequences` decoding sequences that attend to `context` tokens in all, to `window` of them in layers with a
// sliding window, and to `longest` in the longest sequence.
struct Decodes {
  std::int64_t sequences = 1;
  double context = 0;
  double window = 0;
  double longest = 0;         // not looked at where `uneven()` is false
  std::int64_t adapters = 0;  // different low-rank adapters among them
  int length = -1;            // length of proposals that was picked for them; -1: there is only one
  std::int64_t batches = 1;  // where a length is picked: batches in the pipeline, this one included
};

inline Decodes decodes_of(const BatchShape& batch) {
  return {.sequences = batch.decode_sequences,
          .context = batch.decode_kv_tokens,
          .window = batch.decode_window_kv_tokens,
          .longest = batch.decode_longest,
          .adapters = batch.adapters};
}

}  // namespace engine
