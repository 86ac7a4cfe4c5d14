// A step that replicas which share experts take together: each has a batch of its own, their tokens meet at the experts, and
// nobody goes on before all are done. What each does for itself is its local part; experts are as busy as all tokens make
// them, and the exchange lasts as long as it does for the one that sends most.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/base/savings.h"
#include "engine/model/op_names.h"

namespace engine {

// The local part, in seconds.
struct MemberStep {
  double device = 0;            // kernels other than the shared experts' and their exchange
  double beside = 0;            // of these, while an exchange may be under way
  double added = 0, least = 0;  // by the host, as in DecodeLine
  double before = 0;            // proposals and images, which are waited for before the step
  double scale = 1;             // by which all this is longer than predicted
  std::int64_t rows = 0;        // tokens that it sends to the experts, padding included
  Phase phase = Phase::decode;
  Savings saved;  // of a step with prompts: by its kernels, as predicted
};

// What comes to it, as predicted: on a device that holds experts, and on the way there and back.
struct SharedPart {
  double experts = 0;
  double exchange = 0;
  bool halves =
      false;  // the exchange of one half of the tokens runs beside the kernels of the other
};

// What the shared part adds to the kernels of a member.
inline double shared_seconds(const MemberStep& own, const SharedPart& shared) {
  const double experts = shared.experts * own.scale, exchange = shared.exchange * own.scale;
  return shared.halves ? std::max(experts, exchange - own.beside) : experts + exchange;
}

// How long a member takes whose tokens are exchanged in `shared.exchange`.
inline double member_seconds(const MemberStep& own, const SharedPart& shared) {
  const double busy = own.device + shared_seconds(own, shared) + own.added;
  return std::max(busy, own.least) + own.before;
}

}  // namespace engine
