// Rows a serving point may give besides its figures: one a request, and one a moment.
#pragma once

#include <cstdint>

#include "engine/base/units.h"

namespace engine {

struct RequestRow {
  std::int64_t number = 0;
  std::int64_t replica = 0;
  std::int64_t session = -1;
  std::int64_t priority = 0;
  Seconds arrival;
  Seconds scheduled;  // first time in a step
  Seconds first_token;
  Seconds finish;
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t preemptions = 0;
  bool refused = false;  // could never fit; the times after arrival are the arrival

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("request", self.number, "number of the request");
    visit("replica", self.replica, "replica that served it");
    visit("session", self.session, "session it belongs to; -1: none");
    visit("priority", self.priority, "priority level, 0 first");
    visit("arrival", self.arrival, "when it arrived");
    visit("scheduled", self.scheduled, "when it was first part of a step");
    visit("first_token", self.first_token, "when its first token came");
    visit("finish", self.finish, "when its last token came");
    visit("prompt_tokens", self.prompt_tokens, "tokens of the prompt");
    visit("output_tokens", self.output_tokens, "tokens generated");
    visit("cached_tokens", self.cached_tokens, "prompt tokens found in the cache");
    visit("preemptions", self.preemptions, "times it was preempted");
    visit("refused", self.refused, "could never fit in the KV cache");
  }
  bool operator==(const RequestRow&) const = default;
};

struct TimelineRow {
  Seconds time;
  std::int64_t replica = 0;
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::int64_t decoding = 0;
  std::int64_t kv_blocks = 0;
  double kv_use = 0;
  TokensPerSecond output;  // since the row before

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("time", self.time, "moment of the row");
    visit("replica", self.replica, "replica it describes");
    visit("running", self.running, "requests admitted and not finished");
    visit("waiting", self.waiting, "requests in the queue");
    visit("decoding", self.decoding, "sequences in the decode batch");
    visit("kv_blocks", self.kv_blocks, "KV blocks in use");
    visit("kv_use", self.kv_use, "share of the KV blocks in use");
    visit("output", self.output, "tokens generated since the row before");
  }
  bool operator==(const TimelineRow&) const = default;
};

}  // namespace engine
