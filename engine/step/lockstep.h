// A step that replicas take together because they share experts. Each has a batch of its own, the tokens of all meet at the experts, and
// none goes on before all are done. What each does for itself is its local part. Experts have the tokens of all members to work on, and
// the exchange lasts as long as for the member that sends most, or for the one that is sent most.
#pragma once

#include <algorithm>
#include <cmath>
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
  double exchange = 0;          // of these, as predicted, once it is known what the others send
  Phase phase = Phase::decode;
  int length = -1;  // of proposals, where several may be picked: counted with others of that length
  Savings saved;    // of a step with prompts: by its kernels, as predicted
};

// What comes to it, as predicted: on a device that holds experts, and on the way there and back.
struct SharedPart {
  double experts = 0;
  double exchange = 0;
  // The exchange of one half of the tokens runs beside the kernels of the other.
  bool halves = false;
};

// What the shared part adds to the kernels of a member that has so much to do beside an exchange.
inline double shared_seconds(double beside, double scale, const SharedPart& shared) {
  const double experts = shared.experts * scale, exchange = shared.exchange * scale;
  return shared.halves ? std::max(experts, exchange - beside) : experts + exchange;
}

// How long a member takes whose tokens are exchanged in `shared.exchange`.
inline double member_seconds(const MemberStep& own, const SharedPart& shared) {
  const double busy = own.device + shared_seconds(own.beside, own.scale, shared) + own.added;
  return std::max(busy, own.least) + own.before;
}

// The local part of a member that decodes on: in its first step, and what every token that its sequences make adds to it.
struct MemberPace {
  double busy = 0, rise = 0;  // of the device, with what the host adds
  double least = 0;           // by the host
  double before = 0,
         before_rise = 0;  // added whoever sets the pace: proposals, and lists of caches

  // Seconds of a step before which `made` tokens were made, and to which the shared part adds `shared`.
  double step(double shared, double made) const {
    return std::max(busy + shared + rise * made, least) + before + before_rise * made;
  }
  // As many steps of one token each.
  double seconds(double shared, double made, double steps) const {
    if (steps == 1) return step(shared, made);
    const double first = busy + shared + rise * made, last = first + rise * (steps - 1);
    const double pairs = steps * (steps - 1) / 2;
    const double proposals = steps * (before + before_rise * made) + before_rise * pairs;
    if (first >= least && last >= least) return steps * first + rise * pairs + proposals;
    if (first <= least && last <= least) return steps * least + proposals;
    // The host sets the pace in the first steps, or in the last ones.
    const double until = std::clamp(std::ceil((least - first) / rise), 0.0, steps);
    const double early = until * first + rise * until * (until - 1) / 2;
    const double all = steps * first + rise * pairs;
    return (rise > 0 ? until * least + all - early : early + (steps - until) * least) + proposals;
  }
};

// Members that send as many tokens to the experts, in steps of decodes alone.
struct Senders {
  std::int64_t rows = 0;  // of each of them
  int length = -1;        // as in MemberStep, as is
  double beside = 0;
  double members = 0;
  double exchange = 0;    // of each, as predicted
  double shared = 0;      // what the shared part adds to their kernels,
  double own_shared = 0;  // what it would add if no member sent more than these
};

}  // namespace engine
