// Rows a serving point may give besides its figures: one a request, and one a moment.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "engine/base/deployment_role.h"
#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/units.h"
#include "engine/workload/load_classes.h"

namespace engine {

// Which of these rows are asked for. They are as many as the requests and the moments, so by default
// there are none.
struct OutputSettings {
  bool requests = false;
  Seconds timeline{0};
  std::int64_t timeline_moments = 10'000;
  bool intervals = false;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("requests", self.requests, "task serve: one row per request in requests/*.parquet",
          any_value);
    visit("timeline", self.timeline,
          "task serve: time between two rows of a replica in timeline/*.parquet; one row per "
          "replica each time",
          non_negative_or("none"));
    visit("timeline_moments", self.timeline_moments,
          "most moments of a timeline; one that gets longer goes on at twice the distance",
          at_least(2).where(is_set<"output.timeline">));
    visit("intervals", self.intervals,
          "task serve: simulate again with steps as fast and as slow as their kernels may be, for "
          "columns _low and _high and slo_probability; takes 3 times as long, with slo up to 12",
          any_value);
  }

  bool any() const { return requests || intervals || timeline.value > 0; }
};

enum class RequestEnd : std::uint8_t {
  finished,
  refused,  // could never fit in the KV cache or the model's context
  failed,   // its replicas failed too often
  shed,     // turned away when it arrived
};
constexpr std::array<std::string_view, 4> enum_names(RequestEnd) {
  return {"finished", "refused", "failed", "shed"};
}

struct RequestRow {
  std::int64_t number = 0;
  std::int64_t replica = 0;
  std::int64_t session = -1;
  std::int64_t priority = 0;
  std::int64_t tenant = 0;
  RequestEnd end = RequestEnd::finished;
  bool measured = true;
  Seconds arrival;
  Seconds scheduled;    // of a refused request this
  Seconds first_token;  // and this
  Seconds finish;       // and this are NaN
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t preemptions = 0;
  std::int64_t reader = 0;
  Seconds read{std::numeric_limits<double>::quiet_NaN()};
  Seconds received{std::numeric_limits<double>::quiet_NaN()};
  std::int64_t carried_tokens = 0;
  RequestClass service_class = RequestClass::normal;
  std::int64_t attempts = 1;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("request", self.number, "number of the request, from 0");
    visit("replica", self.replica, "replica it was sent to");
    visit("session", self.session, "session it belongs to; -1: none");
    visit("priority", self.priority, "priority level, 0 first");
    visit("tenant", self.tenant, "tenant it comes from, from 0");
    visit("end", self.end,
          "finished; refused: could never fit; failed: its replicas failed too often; shed: turned "
          "away");
    visit("measured", self.measured,
          "whether it arrived inside the measured window: latencies of the point count it");
    visit("arrival", self.arrival,
          "when it arrived and was queued, by the engine's clock like all times here: ttft and e2e "
          "of the point have host.request_latency besides");
    visit("scheduled", self.scheduled, "when it left the queue: first part of a step");
    visit("first_token", self.first_token, "when its client had its first token");
    visit("finish", self.finish, "when its client had its last token");
    visit("prompt_tokens", self.prompt_tokens, "tokens of the prompt");
    visit("output_tokens", self.output_tokens, "tokens generated");
    visit("cached_tokens", self.cached_tokens, "prompt tokens found in the cache");
    visit("preemptions", self.preemptions, "times it was preempted");
    visit(
        "reader", self.reader,
        "replica that read the prompt; another one than `replica` where a prefill deployment did");
    visit("read", self.read, "when its prompt had been read");
    visit("received", self.received,
          "when the KV cache of its prompt had come to `replica`; null: it was read there");
    visit("carried_tokens", self.carried_tokens,
          "prompt tokens whose KV cache was carried from `reader` to `replica`");
    visit("class", self.service_class, "class of the request, as load.classes names them");
    visit("attempts", self.attempts, "times it was begun: one more than its replicas failed");
  }
};

struct TimelineRow {
  Seconds time;
  std::int64_t replica = 0;
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::int64_t decoding = 0;
  std::int64_t batch = 0;
  std::int64_t kv_blocks = 0;
  double kv_use = 0;
  TokensPerSecond output;  // since the row before
  DeploymentRole role = DeploymentRole::main;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("time", self.time, "moment of the row");
    visit("replica", self.replica, "replica it describes");
    visit("running", self.running,
          "sequences admitted and not finished: a request, or each of its answers (load.samples)");
    visit(
        "waiting", self.waiting,
        "sequences in the queue, and those aside from it until KV from a lower tier, an adapter or "
        "images are there: a request, or each of its answers (load.samples)");
    visit("decoding", self.decoding, "running sequences that are past their prompt");
    visit("batch", self.batch,
          "sequences in the present step; in a pipeline, in all steps in flight; 0: no step");
    visit("kv_blocks", self.kv_blocks, "KV blocks in use");
    visit("kv_use", self.kv_use, "share of the KV blocks in use");
    visit("output", self.output, "rate of tokens generated since the row before");
    visit(
        "role", self.role,
        "deployment that the replica belongs to: main, or one beside it by its name in the sweep");
  }
  bool operator==(const TimelineRow&) const = default;
};

}  // namespace engine
