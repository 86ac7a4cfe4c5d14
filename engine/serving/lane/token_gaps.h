// Gaps between the tokens of a lane's sequences, counted in groups: all that decode in a step have the
// same gap, but for newcomers, and for those that steps left out.
#pragma once

#include <algorithm>

#include "engine/base/small_list.h"
#include "engine/serving/figures/serving_stats.h"
#include "engine/serving/sequences/sequence.h"

namespace engine {

class TokenGaps {
 public:
  // `counted`: gaps are asked for; otherwise nothing is kept.
  void reset(bool counted) {
    counted_ = counted;
    newcomers_.clear();
    last_decode_ = 0;
    uneven_ = false;
  }
  // When the last step ended in which all decoded.
  void all_decoded(double end) { last_decode_ = end; }

  // A sequence begins to decode. Its `last_token` is known.
  void join(Sequence& sequence, double now) {
    sequence.joined = now;
    if (!counted_ || sequence.last_token == last_decode_) return;  // like the others
    if (newcomers_.empty() || newcomers_.back().time != sequence.last_token) {
      newcomers_.push_back({sequence.last_token, 0});
    }
    newcomers_.back().count += 1;
  }
  // A decoding sequence is preempted.
  void leave(Sequence& sequence) {
    if (!counted_) return;
    if (!uneven_ && fresh(sequence) && sequence.last_token != last_decode_) {
      const auto group = std::find_if(
          newcomers_.begin(), newcomers_.end(), [&sequence](const Newcomers& newcomers) {
            return newcomers.time == sequence.last_token && newcomers.count > 0;
          });
      group->count -= 1;
    }
    sequence.last_token = last_token(sequence);
  }

  // It has read all that it had again, and makes its next token now.
  void add_after_preemption(const Sequence& sequence, double now, ServingStats& stats) const {
    if (counted_) stats.add_gap(now - sequence.last_token, 1);
  }

  // A step from `start` on in which all `decodes` take part. `each` calls a function with all of them.
  template <class Each>
  void add_all(double start, double seconds, double decodes, ServingStats& stats, Each each) {
    if (!counted_) return;
    double others = decodes;
    if (uneven_) {
      each([&](const Sequence& sequence) {
        stats.add_gap(start - last_token(sequence) + seconds, 1);
      });
      others = 0;
      uneven_ = false;
      newcomers_.clear();
    }
    for (const Newcomers& group : newcomers_) {
      stats.add_gap(start - group.time + seconds, group.count);
      others -= group.count;
    }
    newcomers_.clear();
    if (others <= 0) return;
    const double stall = start - last_decode_;
    stats.add_gap(stall > 0 ? stall + seconds : seconds, others);
  }
  // Adds the gap of one sequence in a step that leaves others out. From here on sequences had their last tokens at different times, so
  // each time is noted.
  void add_one(Sequence& sequence, double end, ServingStats& stats) {
    if (!counted_) return;
    uneven_ = true;
    stats.add_gap(end - last_token(sequence), 1);
    sequence.last_token = end;
  }

 private:
  // Decodes whose last token is not the lane's last decode step.
  struct Newcomers {
    double time;
    double count;
  };
  // Whether no step of all decoding sequences has ended since this one came.
  bool fresh(const Sequence& sequence) const { return sequence.joined >= last_decode_; }
  double last_token(const Sequence& sequence) const {
    return fresh(sequence) ? sequence.last_token : std::max(sequence.last_token, last_decode_);
  }

  double last_decode_ = 0;
  SmallList<Newcomers, 2> newcomers_;
  bool counted_ = true;
  bool uneven_ = false;  // last tokens differ: they are noted in Sequence
};

}  // namespace engine
