// Whether a draft should read prompts at all: reading one pays only if the tokens proposed for it save more time later.
#pragma once

#include <algorithm>
#include <cstdint>

namespace engine {

// A draft that reads a prompt when tokens are first proposed for it, and what it may expect.
struct LateReading {
  double least = 0;            // seconds, however little is read at once
  double per_token = 0;        // where that takes longer,
  double again_per_token = 0;  // and those of the main model, which reads again after a preemption
  double prompt = 0, output = 0;  // tokens of an average request
};

// One step sees only its own batch. Whether the reading of a prompt comes back depends on all later steps of the request: on
// batches that swing, and on steps beside prompts of others, in which little is proposed. So each lane compares what
// proposals saved, or would have saved, between one request and the next with what the draft takes to read one, both as
// means over the latest requests.
class DraftInvestment {
 public:
  void reset() { *this = {}; }
  bool begun() const { return begun_; }
  // Before anything is known: what the load at hand makes one expect of a request.
  void begin(double saved, double reading) {
    begun_ = true;
    saved_ = saved;
    reading_ = reading;
    pays_ = saved > reading;
  }
  bool pays() const { return pays_; }

  // Picoseconds of the work just done. Whole numbers, so that a stretch counts as much as its steps one by one.
  void save(std::int64_t picoseconds) { since_ += picoseconds; }
  // Work begins. Of all steps, proposals save this share, or would save it of those there are.
  void begin_work(double fewer_steps) {
    fewer_ = fewer_steps;
    unread_ = 0;
  }
  // One more request decodes, beside `running` others. The draft has `unread` tokens of it to read; requests that join at one time are
  // read together. After a preemption the main model has read it again, which took `again` seconds. How often that happens follows the
  // number of steps, so fewer steps would have saved their share of it.
  void join(const LateReading& late, double unread, double again, std::int64_t running) {
    const double before = unread_ > 0 ? std::max(late.least, late.per_token * unread_) : 0;
    unread_ += unread;
    const double reading = std::max(late.least, late.per_token * unread_) - before;
    // A round of requests that come and go together has to fit in several times.
    const double share = 1 / double(4 * (running + 8));
    saved_ += share * (1e-12 * double(since_) + fewer_ * again - saved_);
    reading_ += share * (reading - reading_);
    since_ = 0;
    // Near the point where both are equal nothing is won by changing over, and prompts read before are lost.
    if (begun_) pays_ = saved_ > reading_ * (pays_ ? 0.95 : 1.05);
  }

 private:
  double saved_ = 0, reading_ = 0;  // seconds a request
  std::int64_t since_ = 0;          // picoseconds, since the last one joined
  double fewer_ = 0;
  double unread_ = 0;  // tokens of those that joined with the last work
  bool begun_ = false, pays_ = false;
};

}  // namespace engine
