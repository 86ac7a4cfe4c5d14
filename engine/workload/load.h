// The requests a system meets: when they arrive, how long they are, and which of them count.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/units.h"
#include "engine/workload/load_classes.h"
#include "engine/workload/ordering.h"

namespace engine {

enum class ArrivalKind : std::uint8_t {
  poisson,
  gamma,          // gaps with a stated coefficient of variation
  deterministic,  // equal gaps
  curve,          // Poisson at a rate that changes with time
  trace,          // as recorded
  closed,         // a number of clients, each waiting for its answer
};
constexpr std::array<std::string_view, 6> enum_names(ArrivalKind) {
  return {"poisson", "gamma", "deterministic", "curve", "trace", "closed"};
}

// Whether a stated rate is the mean one.
constexpr bool is_rated(ArrivalKind kind) {
  return kind == ArrivalKind::poisson || kind == ArrivalKind::gamma ||
         kind == ArrivalKind::deterministic;
}
// Whether the system goes on as it does for as long as one likes. Traces and curves are measured whole.
constexpr bool is_steady(ArrivalKind kind) { return is_rated(kind) || kind == ArrivalKind::closed; }

enum class LengthKind : std::uint8_t { fixed, uniform, lognormal, zipf, empirical };
constexpr std::array<std::string_view, 5> enum_names(LengthKind) {
  return {"fixed", "uniform", "lognormal", "zipf", "empirical"};
}

constexpr bool is_spread(LengthKind kind) {
  return kind == LengthKind::uniform || kind == LengthKind::lognormal;
}

enum class MeasureKind : std::uint8_t {
  steady,  // the system as it goes on: without the time in which it fills up or drains
  whole,   // every request, from the first arrival to the last answer
};
constexpr std::array<std::string_view, 2> enum_names(MeasureKind) { return {"steady", "whole"}; }

struct Lengths {
  LengthKind distribution = LengthKind::fixed;
  std::int64_t prompt = 512;
  std::int64_t output = 128;
  double prompt_cv = 1;
  double output_cv = 1;
  double correlation = 0;
  double zipf_exponent = 1.2;
  std::int64_t prompt_max = 0;
  std::int64_t output_max = 0;
  std::int64_t total_max = 0;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("distribution", self.distribution,
          "how lengths are distributed: fixed; uniform or lognormal about the mean; zipf from "
          "prompt to prompt_max; empirical: rows of load.trace drawn at random",
          any_value);
    visit("prompt", self.prompt, "mean prompt tokens (zipf: the fewest)", at_least(1));
    visit("output", self.output, "mean output tokens (zipf: the fewest)", at_least(1));
    visit("prompt_cv", self.prompt_cv,
          "standard deviation of prompts over their mean; uniform: 0.577 (from one token to "
          "twice the mean) where more is stated",
          non_negative.where(is_such<".distribution", is_spread>));
    visit("output_cv", self.output_cv,
          "standard deviation of outputs over their mean; uniform: 0.577 (from one token to "
          "twice the mean) where more is stated",
          non_negative.where(is_such<".distribution", is_spread>));
    visit("correlation", self.correlation,
          "lognormal: correlation of the logarithms of prompt and output lengths",
          between(-1, 1).where(is_one_of<".distribution", LengthKind::lognormal>));
    visit("zipf_exponent", self.zipf_exponent, "zipf: the density falls with this power of length",
          positive.where(is_one_of<".distribution", LengthKind::zipf>));
    visit(
        "prompt_max", self.prompt_max,
        "longest prompt in tokens: longer ones are cut to it; none with zipf: 16 times the fewest",
        non_negative_or("none"));
    visit(
        "output_max", self.output_max,
        "longest output in tokens: longer ones are cut to it; none with zipf: 16 times the fewest",
        non_negative_or("none"));
    visit(
        "total_max", self.total_max,
        "most tokens of prompt and output together: what is more is cut off, from the output first",
        non_negative_or("none"));
  }

  bool operator==(const Lengths&) const = default;
};

inline constexpr const Condition& with_rate = is_such<"load.arrivals", is_rated>;
inline constexpr const Condition& with_steady_load = is_such<"load.arrivals", is_steady>;
inline constexpr const Condition& with_clients = is_one_of<"load.arrivals", ArrivalKind::closed>;
// A trace that is replayed has lengths, priorities, tenants and prefixes of its own.
inline constexpr const Condition& unless_replayed = is_none_of<"load.arrivals", ArrivalKind::trace>;
inline constexpr const Condition& unless_searched =
    either<"no capacity.slo asks to search for the rate", inside<"neighbour">,
           is_zero<"capacity.slo">>;
inline constexpr const Condition& with_prefix_caching = is_set<"serving.prefix_caching">;
inline constexpr const Condition& with_urgency =
    either<"serving.ordering {}, or output.requests is true",
           is_such<"serving.ordering", by_urgency>, is_set<"output.requests">>;
inline constexpr const Condition& with_load_images =
    said<"there are load.images", is_above<"load.images", 0>>;
inline constexpr const Condition& with_encoder =
    said<"there is an encoder", is_set<"encode.present">>;

struct Load {
  static constexpr std::string_view library = "loads";

  std::string name = "default";
  ArrivalKind arrivals = ArrivalKind::poisson;
  RequestsPerSecond rate{1};
  double cv = 1;
  std::string curve;
  double throughput_fraction = 0;
  std::int64_t clients = 1;
  double kv_fraction = 0;
  Seconds think_time{0};
  Seconds ramp{0};
  std::int64_t requests = 0;
  Lengths lengths;
  std::string trace;
  std::string trace_checksum;
  double trace_speed = 1;
  std::int64_t turns = 1;
  std::int64_t branches = 1;
  std::int64_t shared_prefix = 0;
  std::int64_t prefix_groups = 1;
  std::int64_t priorities = 1;
  std::int64_t tenants = 1;
  double tenant_skew = 0;
  LoadClasses classes;
  std::int64_t samples = 1;
  std::int64_t adapters = 0;
  double adapter_skew = 0;
  std::int64_t images = 0;
  std::int64_t image_tokens = 576;
  std::int64_t image_patches = 0;
  std::int64_t image_batch = 1;
  MeasureKind measure = MeasureKind::steady;
  Seconds warmup{0};
  Seconds window{0};

  // Tokens of a prompt that come from its images.
  std::int64_t image_prompt() const { return images * image_tokens; }
  // Whether prompts may begin like earlier ones. In a trace that is up to its hashes.
  bool repeats_prompts() const {
    return turns > 1 || shared_prefix > 0 || samples > 1 || !trace.empty();
  }
  std::int64_t calls_of_session() const { return 1 + (turns - 1) * branches; }

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name, "name of the load", a_label);
    visit("arrivals", self.arrivals, "how requests arrive", any_value);
    visit("rate", self.rate, "mean rate of requests, or of sessions when turns > 1",
          positive.where(with_rate)
              .where(unless_searched)
              .where(said<"load.throughput_fraction does not set it",
                          is_zero<"load.throughput_fraction">>));
    visit("cv", self.cv, "gamma: standard deviation of the gaps over their mean; 1 is Poisson",
          between(1e-3, 1e3).where(is_one_of<"load.arrivals", ArrivalKind::gamma>));
    visit("curve", self.curve,
          "curve: 'second:req/s' pairs such as '0:2, 60:10, 120:end'; each rate holds until the "
          "next; "
          "from 'second:end' on nobody comes, and the run lasts that long; without an end "
          "load.requests says how long the last rate holds",
          any_value.where(is_one_of<"load.arrivals", ArrivalKind::curve>));
    visit(
        "throughput_fraction", self.throughput_fraction,
        "rate as this share of the point's own estimated throughput capacity, which counts time in "
        "steps alone, at mean lengths and with nothing cached: links, slots of adapters, failures, "
        "a neighbour and policies that keep a batch short of full are not in it; replaces rate",
        non_negative_or("none").where(with_rate).where(unless_searched));
    visit("clients", self.clients, "closed: clients that each wait for their answer",
          at_least(1)
              .where(with_clients)
              .where(said<"load.kv_fraction does not set it", is_zero<"load.kv_fraction">>));
    visit("kv_fraction", self.kv_fraction,
          "closed: clients whose requests would fill this share of the KV cache; replaces clients",
          non_negative_or("none").where(with_clients));
    visit("think_time", self.think_time,
          "mean pause between an answer and the client's or session's next request",
          non_negative.where(either<"load.arrivals is closed, or load.turns above 1", with_clients,
                                    is_above<"load.turns", 1>>));
    visit("ramp", self.ramp, "closed: the clients start spread over this time",
          non_negative.where(with_clients));
    visit(
        "requests", self.requests,
        "requests in all; auto: 1,000, 2,000 and so on to 64,000, until the throughput is known to "
        "2%, every limit of slo as well, or clearly met or missed, and what caches have no longer "
        "changes; of a trace all; of a curve what comes until its end; of one without an end, or "
        "with serving.scaling.policy: scheduled, what comes until its last number has held as "
        "long as the one before it, 1,000 at least",
        non_negative_or("auto"));
    visit("lengths", self.lengths, "tokens of prompts and outputs",
          any_value.where(unless_replayed));
    visit("trace", self.trace, "file with recorded requests", a_file);
    visit("trace_checksum", self.trace_checksum,
          "checksum of the file load.trace; filled in when it is read", any_value);
    visit("trace_speed", self.trace_speed, "the trace is replayed this many times faster",
          positive.where(is_one_of<"load.arrivals", ArrivalKind::trace>));
    visit("turns", self.turns, "requests of one session; each re-sends the history before it",
          at_least(1));
    visit("branches", self.branches,
          "calls that every turn but the first makes at once; they share the history, and the next "
          "turn follows when all are answered",
          between(1, 1024).where(is_above<"load.turns", 1>));
    visit("shared_prefix", self.shared_prefix,
          "leading tokens of load.lengths.prompt that requests have in common",
          non_negative.where(unless_replayed).where(with_prefix_caching));
    visit("prefix_groups", self.prefix_groups, "different shared prefixes, equally likely",
          at_least(1)
              .where(unless_replayed)
              .where(with_prefix_caching)
              .where(is_above<"load.shared_prefix", 0>));
    visit(
        "priorities", self.priorities,
        "priority levels, equally likely; 0 is served first; a trace that is replayed has its own",
        at_least(1).where(unless_replayed).where(with_urgency));
    visit("tenants", self.tenants,
          "tenants the requests come from; a trace that is replayed has its own",
          at_least(1).where(unless_replayed));
    visit("tenant_skew", self.tenant_skew,
          "the n-th tenant sends in proportion to 1/n to this power; 0: all alike",
          non_negative.where(unless_replayed).where(is_above<"load.tenants", 1>));
    visit("classes", self.classes, "requests that are more or less urgent than the others",
          any_value);
    visit("samples", self.samples,
          "answers that are generated for each prompt, which is read once; the request is answered "
          "when the last of them is, as for best-of-n or a majority vote",
          between(1, 1 << 16));
    visit("adapters", self.adapters,
          "low-rank adapters (serving.lora) that requests ask for, one each",
          Range{.low = 0, .high = 1 << 20, .word = "none"});
    visit("adapter_skew", self.adapter_skew,
          "the n-th adapter is asked for in proportion to 1/n to this power; 0: all alike",
          non_negative.where(is_above<"load.adapters", 1>));
    visit("images", self.images,
          "images in each request, which the deployment encode turns into tokens of its prompt; "
          "those of a session's history stay encoded, whatever of it is read again",
          between(0, 1000));
    visit("image_tokens", self.image_tokens,
          "tokens that an image adds to its prompt, besides those of load.lengths",
          between(1, 100000).where(with_load_images));
    visit("image_patches", self.image_patches,
          "tokens that the encoder works on for an image; auto: as many as image_tokens",
          non_negative_or("auto").where(with_load_images));
    visit("image_batch", self.image_batch,
          "requests whose images an encoder takes together at most, as far as they wait for it",
          between(1, 1024).where(with_load_images).where(with_encoder));
    visit("measure", self.measure,
          "steady: what goes on once the system has filled up, to the last arrival, or with "
          "serving.scaling.policy: scheduled to the end of its timetable; whole: from the first "
          "arrival to the last answer, as benchmark clients count, and as traces and curves always "
          "are; a curve that ends from 0 to its end, or to the last answer after it",
          any_value.same(MeasureKind::steady, MeasureKind::whole, with_steady_load)
              .where(with_steady_load));
    visit("warmup", self.warmup,
          "what happens before this time is not measured; auto (or 0; load.measure: whole leaves "
          "nothing out): until twice as many requests (with turns, sessions) have finished as are "
          "inside, and a twentieth of all; where that never happens the second half is measured, "
          "or all where too little is finished there",
          non_negative_or("auto"));
    visit("window", self.window,
          "only this long after the warm-up is measured; auto: to the last arrival",
          non_negative_or("auto"));
  }
};

}  // namespace engine
