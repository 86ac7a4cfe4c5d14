// Encoders that turn the images of requests into prompt tokens, one request after the other on each, and send them on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace engine {

class Encoders {
 public:
  struct Setup {
    std::int64_t replicas = 0;  // 0: there are none
    double seconds = 0;         // that the images of one request take,
    double sending = 0;         // and what comes of them on the way out of one replica
    double latency = 0;
  };

  void reset(const Setup& setup) {
    setup_ = setup;
    places_.assign(std::size_t(setup.replicas), {});
    encoded_ = 0;
    waited_ = 0;
  }
  bool any() const { return setup_.replicas > 0; }

  // When the images of the next request, which arrives now, will be there. All requests have as many and are served in
  // the order of their arrival, so the encoders take turns. One sends while it encodes the next.
  double take(double now) {
    Place& place = places_[std::size_t(encoded_) % places_.size()];
    place.encoding = std::max(now, place.encoding) + setup_.seconds;
    place.sending = std::max(place.encoding, place.sending) + setup_.sending;
    const double there = place.sending + setup_.latency;
    encoded_ += 1;
    waited_ += there - now;
    return there;
  }

  double encoded() const { return double(encoded_); }
  double waited() const { return waited_; }  // from arrival, by all
  double busy() const { return double(encoded_) * setup_.seconds; }

 private:
  struct Place {
    double encoding = 0, sending = 0;  // until when
  };
  Setup setup_;
  std::vector<Place> places_;
  std::int64_t encoded_ = 0;
  double waited_ = 0;
};

}  // namespace engine
