// What may one more request expect of a replica: its place in the queue, how long it would wait there, and whether that is too late.
#pragma once

#include <cstdint>

#include "engine/serving/lane/replica_state.h"
#include "engine/workload/request.h"

namespace engine {

class Prospects {
 public:
  explicit Prospects(const ReplicaState& state) : state_(state) {}

  // What a request waits for outside the queue of the replica that reads its prompt, in seconds from now.
  struct Elsewhere {
    double images = 0;  // until its images are encoded
    // Until the replica that writes its answer has room and a seat, where that one tells the first token.
    double entry = 0;
    double carrying = 0;      // while its KV is carried there
    bool sheds_late = false;  // the replica that writes its answer turns late requests away
  };

  // Its place in the queue: smaller is served first. `cached` tokens of its prompt are in the cache; `fair_place` is where fair shares
  // would put it.
  template <class Any>
  double order_of(const Any& one, std::int64_t cached, double fair_place) const {
    return order_of(claim_of(one, cached), fair_place);
  }
  // Whether that place, or the time to its first token, depends on what is cached.
  bool follows_cache(const Elsewhere& elsewhere) const {
    const ServingSettings& settings = *state_.common->settings;
    return settings.admission.shed_late || elsewhere.sheds_late ||
           settings.ordering == Ordering::slo;
  }
  // Whether a request is to be turned away, because too much is before it in the queue or among those that wait for blocks.
  bool sheds(const Request& request, std::int64_t cached, double now,
             const Elsewhere& elsewhere) const;
  // The same of requests that wait for blocks here before another replica reads their prompts, which takes `reading` seconds.
  bool sheds_before_room(const Request& request, double now, double reading,
                         const Elsewhere& elsewhere) const;
  // The same where nothing is before the request, but it has to wait `wait` seconds until such a replica takes requests at all.
  bool sheds_after(double wait, const Request& request, double reading) const {
    return sheds_behind({.wait = wait, .reading = reading}, {}, request, request.arrival);
  }
  // How long one more request that another replica reads would wait for room and a seat here, with `unread` before it.
  double entry_wait(std::int64_t unread) const;
  // Whether as many wait for room and seats as `admission.max_queue` allows.
  bool too_many_enter() const;

 private:
  // What decides a request's place in the queue.
  struct Claim {
    std::int64_t priority = 0;
    RequestClass service_class = RequestClass::normal;
    double arrival = 0;
    std::int64_t to_read = 0;  // tokens of its prompt that are not cached
  };
  template <class Any>
  static Claim claim_of(const Any& one, std::int64_t cached) {
    return {one.priority, one.service_class, one.arrival, one.prompt - cached};
  }
  double order_of(const Claim& claim, double fair_place) const;
  double ttft_limit_of(const Claim& claim) const;
  // What is before a request: other requests, the wait for them in seconds, and the time to read its own uncached prompt.
  struct Before {
    std::int64_t others = 0;
    double wait = 0;
    double reading = 0;
  };
  bool sheds_behind(const Before& before, const Elsewhere& elsewhere, const Request& request,
                    double now) const;

  const ReplicaState& state_;
};

}  // namespace engine
