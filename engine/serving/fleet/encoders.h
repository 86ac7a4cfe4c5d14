// Encoders that turn the images of requests into prompt tokens, and send them on. Requests are taken in the order of their
// arrival; one whose images wait when an encoder is free may share it with those behind.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "engine/base/moment.h"

namespace engine {

class Encoders {
 public:
  struct Setup {
    std::int64_t replicas = 0;  // 0: there are none
    // That the images of 1, 2, ... requests take together: no more than these are taken at once.
    std::vector<double> seconds = {};
    double sending = 0;  // what comes of the images of one request, on the way out of one replica
    double latency = 0;
  };

  void reset(const Setup& setup) {
    setup_ = setup;
    places_.assign(std::size_t(setup.replicas), {});
    batches_.assign(setup.seconds.size(), 0);
    waiting_.clear();
    encoded_ = 0;
    waited_ = 0;
  }
  bool any() const { return setup_.replicas > 0; }
  // Whether several requests may be taken at once: then it is only known when an encoder is free which ones.
  bool batches() const { return setup_.seconds.size() > 1; }

  // One at a time: when the images of the next request, which arrives now, will be there. All requests have as many, so the
  // encoders take turns. One sends while it encodes the next.
  double take(double now) {
    Place& place = places_[std::size_t(encoded_) % places_.size()];
    place.encoding = std::max(now, place.encoding) + setup_.seconds[0];
    return sent(place, now);
  }

  // When the images of a request that arrives now would be encoded, if no request came after it.
  double would_be_there(double now) const {
    if (!batches()) {
      const Place& place = places_[std::size_t(encoded_) % places_.size()];
      return there(std::max(now, place.encoding) + setup_.seconds[0], place);
    }
    std::vector<Place> places = places_;
    for (std::size_t left = waiting_.size() + 1;;) {
      const auto next = std::ranges::min_element(places, {}, &Place::encoding);
      const std::size_t together = std::min(left, setup_.seconds.size());
      next->encoding = std::max(now, next->encoding) + setup_.seconds[together - 1];
      left -= together;
      if (left == 0) return there(next->encoding, *next);
    }
  }

  // Several at a time: a request queues up, and whenever one came or an encoder is free, as many as may be are taken.
  struct Request {
    std::size_t replica = 0;  // that it goes on to
    std::int32_t slot = -1;
    double arrival = 0;
  };
  void enqueue(const Request& request) { waiting_.push_back(request); }
  // It is not to go there any more: its replica has failed before an encoder took its images.
  void withdraw(std::size_t replica, std::int32_t slot) {
    std::erase_if(waiting_, [&](const Request& request) {
      return request.replica == replica && request.slot == slot;
    });
  }
  // Begins the next batch, if requests wait and an encoder is free. Calls `done(request, time)` for each with the time at which it is
  // encoded, and returns when the encoder is free again; 0: no batch begins.
  template <class Done>
  double start(double now, Done done) {
    if (waiting_.empty()) return 0;
    // The first of those that are free at this moment, so that rounding does not decide which one it is.
    const auto free = std::ranges::find_if(
        places_, [now](const Place& place) { return place.encoding <= now + kSameMoment; });
    if (free == places_.end()) return 0;
    const std::size_t together = std::min(waiting_.size(), setup_.seconds.size());
    free->encoding = std::max(now, free->encoding) + setup_.seconds[together - 1];
    batches_[together - 1] += 1;
    for (std::size_t i = 0; i < together; ++i) {
      const Request request = waiting_.front();
      waiting_.pop_front();
      done(request, sent(*free, request.arrival));
    }
    return free->encoding;
  }

  double encoded() const { return double(encoded_); }
  double waited() const { return waited_; }  // from arrival, by all
  double busy() const {
    if (!batches()) return setup_.seconds.empty() ? 0 : encoded() * setup_.seconds[0];
    double seconds = 0;
    for (std::size_t i = 0; i < batches_.size(); ++i) seconds += batches_[i] * setup_.seconds[i];
    return seconds;
  }
  // Where they batch: how often the images of 1, 2, ... requests were taken together.
  std::span<const double> together() const { return batches_; }

 private:
  struct Place {
    double encoding = 0, sending = 0;  // until when
  };
  double there(double encoded, const Place& place) const {
    return std::max(encoded, place.sending) + setup_.sending + setup_.latency;
  }
  double sent(Place& place, double arrival) {
    place.sending = std::max(place.encoding, place.sending) + setup_.sending;
    const double there = place.sending + setup_.latency;
    encoded_ += 1;
    waited_ += there - arrival;
    return there;
  }

  Setup setup_;
  std::vector<Place> places_;
  std::vector<double> batches_;
  std::deque<Request> waiting_;
  std::int64_t encoded_ = 0;
  double waited_ = 0;
};

}  // namespace engine
