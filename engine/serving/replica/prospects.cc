#include "engine/serving/replica/prospects.h"

#include <algorithm>

#include "engine/serving/sequences/whole_moments.h"

namespace engine {

double Prospects::ttft_limit_of(const Claim& claim) const {
  if (state_.common->class_limits == nullptr)
    return state_.common->ttft_limit * double(1 + claim.priority);
  return (*state_.common->class_limits)[std::size_t(claim.service_class)];
}

double Prospects::order_of(const Claim& claim, double fair_place) const {
  switch (state_.common->settings->ordering) {
    case Ordering::priority:
      // Levels lie further apart than any simulation is long.
      return double(claim.priority) * 1e9 + whole_moments(claim.arrival);
    case Ordering::slo:
      // The slack that is left when it is looked at falls alike for all: only the start differs.
      return whole_moments(claim.arrival + ttft_limit_of(claim) -
                           state_.common->seconds_per_prompt_token * double(claim.to_read));
    case Ordering::fair_share:
      return fair_place;
    case Ordering::fcfs:
    case Ordering::longest_prefix:
      break;
  }
  return claim.arrival;
}

bool Prospects::sheds(const Request& request, std::int64_t cached, double now,
                      const Elsewhere& elsewhere) const {
  const double order = order_of(claim_of(request, cached), state_.shares.place_now(request.tenant));
  const std::int64_t queued =
      state_.waiting.place_of(order, state_.sequences) +
      state_.inbox.count_before([&](std::int32_t slot) {
        return !state_.waiting.ordered() || state_.sequences[std::size_t(slot)].order <= order;
      });
  // Requests whose images or adapters are not there yet come before it as well.
  const std::int64_t others = queued + state_.awaiting;
  const double wait =
      state_.admissions.wait_behind(queued > 0 ? others : 0, state_.level_of(request.priority));
  double reading = state_.common->seconds_per_prompt_token * double(request.prompt - cached);
  if (!state_.common->encode_seconds.empty()) {
    reading += state_.common->encode_seconds[0] * state_.common->encode_slower;
  }
  return sheds_behind({.others = others, .wait = wait, .reading = reading}, elsewhere, request,
                      now);
}

bool Prospects::sheds_before_room(const Request& request, double now, double reading,
                                  const Elsewhere& elsewhere) const {
  const std::int64_t waiting = state_.arriving.size() + state_.awaiting;
  return sheds_behind({.others = waiting + state_.unseated(),
                       .wait = state_.rooms.wait_behind(waiting),
                       .reading = reading},
                      elsewhere, request, now);
}

bool Prospects::sheds_behind(const Before& before, const Elsewhere& elsewhere,
                             const Request& request, double now) const {
  const PoolConstants& common = *state_.common;
  const AdmissionSettings& admission = common.settings->admission;
  if (admission.max_queue > 0 && before.others >= admission.max_queue) return true;
  if (!admission.shed_late && !elsewhere.sheds_late) return false;
  const double read = std::max(before.wait, elsewhere.images) + before.reading;
  const double predicted =
      now - request.arrival + std::max(read, elsewhere.entry) + elsewhere.carrying;
  return predicted >
         (common.class_limits == nullptr ? common.ttft_limit : ttft_limit_of(claim_of(request, 0)));
}

// While no request lacks room or a seat there is no wait, whatever pace was noted before.
double Prospects::entry_wait(std::int64_t unread) const {
  const std::int64_t held_up = state_.arriving.size() + state_.unseated();
  if (held_up == 0) return 0;
  const std::int64_t under_way = state_.parked - std::int64_t(state_.landed.size());
  const std::int64_t others = held_up + state_.awaiting + under_way + unread;
  return state_.entries.wait_behind(std::max<std::int64_t>(0, others));
}

bool Prospects::too_many_enter() const {
  const std::int64_t most = state_.common->settings->admission.max_queue;
  return most > 0 && state_.arriving.size() + state_.awaiting + state_.unseated() >= most;
}

}  // namespace engine
