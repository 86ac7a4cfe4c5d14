// Task `serve`: the figures that only a served load has.
#pragma once

#include "engine/base/units.h"
#include "engine/figures.h"

namespace engine {

// Figures of a load of requests over time.
struct ServingFigures {
  Seconds ttft_p50{kNoValue};
  Seconds ttft_p90{kNoValue};
  Seconds ttft_p95{kNoValue};
  Seconds ttft_p99{kNoValue};
  Seconds tpot_p50{kNoValue};
  Seconds tpot_p90{kNoValue};
  Seconds tpot_p95{kNoValue};
  Seconds tpot_p99{kNoValue};
  Seconds itl{kNoValue};
  Seconds itl_p50{kNoValue};
  Seconds itl_p90{kNoValue};
  Seconds itl_p95{kNoValue};
  Seconds itl_p99{kNoValue};
  Seconds e2e_p50{kNoValue};
  Seconds e2e_p90{kNoValue};
  Seconds e2e_p95{kNoValue};
  Seconds e2e_p99{kNoValue};
  Seconds queue{kNoValue};
  Seconds queue_p50{kNoValue};
  Seconds queue_p90{kNoValue};
  Seconds queue_p95{kNoValue};
  Seconds queue_p99{kNoValue};
  RequestsPerSecond offered{kNoValue};
  RequestsPerSecond throughput{kNoValue};
  RequestsPerSecond throughput_low{kNoValue};
  RequestsPerSecond throughput_high{kNoValue};
  RequestsPerSecond goodput{kNoValue};
  RequestsPerSecond capacity{kNoValue};
  TokensPerSecond output_per_user{kNoValue};
  TokensPerSecond total_per_user{kNoValue};
  TokensPerSecond output_per_device{kNoValue};
  double slo_attainment = kNoValue;
  double slo_met = kNoValue;
  double slo_probability = kNoValue;
  double requests_finished = kNoValue;
  double requests_refused = kNoValue;
  double refused_share = kNoValue;
  double given_up_share = kNoValue;
  double load_seen = kNoValue;
  Seconds curve_tail{kNoValue};
  double cut_share = kNoValue;
  double preemptions = kNoValue;
  double recomputed_tokens = kNoValue;
  double prefix_hit_rate = kNoValue;
  double batch_mean = kNoValue;
  double concurrency = kNoValue;
  double utilization = kNoValue;
  double front_end_use = kNoValue;
  double token_limit = kNoValue;
  double sequence_limit = kNoValue;
  double kv_blocks = kNoValue;
  double kv_use = kNoValue;
  double kv_peak = kNoValue;
  double kv_waste = kNoValue;
  double steps = kNoValue;
  Seconds makespan{kNoValue};
  double capacity_monotone = kNoValue;
  double capacity_decided = kNoValue;
  Seconds measured_from{kNoValue};
  Seconds measured_until{kNoValue};
  double requests_measured = kNoValue;
  double steady = kNoValue;
  double precision_met = kNoValue;
  double cache_drift = kNoValue;
  Seconds transfer{kNoValue};
  double transfer_share = kNoValue;
  double prefill_devices = kNoValue;
  double prefill_utilization = kNoValue;
  double prefill_batch_mean = kNoValue;
  double prefill_kv_peak = kNoValue;
  double host_hit_rate = kNoValue;
  double disk_hit_rate = kNoValue;
  double peer_hit_rate = kNoValue;
  double store_hit_rate = kNoValue;
  Seconds encode{kNoValue};
  double encode_share = kNoValue;
  double encode_utilization = kNoValue;
  Seconds kv_load{kNoValue};
  double replicas_mean = kNoValue;
  double replica_starts = kNoValue;
  double prefill_replicas_mean = kNoValue;
  double prefill_replica_starts = kNoValue;
  double device_hours = kNoValue;
  RequestsPerSecond goodput_per_device{kNoValue};
  double goodput_per_usd = kNoValue;
  double answer_tokens = kNoValue;
  double adapter_hit_rate = kNoValue;
  Seconds adapter_load{kNoValue};
  double adapters_per_step = kNoValue;
  Joules energy{kNoValue};
  double energy_j_per_output_token = kNoValue;
  double clock_mean = kNoValue;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("ttft_p50", self.ttft_p50, "task serve: time to first token, p50");
    visit("ttft_p90", self.ttft_p90, "task serve: time to first token, p90");
    visit("ttft_p95", self.ttft_p95, "task serve: time to first token, p95");
    visit("ttft_p99", self.ttft_p99, "task serve: time to first token, p99");
    visit("tpot_p50", self.tpot_p50, "task serve: time per output token after the first, p50");
    visit("tpot_p90", self.tpot_p90, "task serve: time per output token after the first, p90");
    visit("tpot_p95", self.tpot_p95, "task serve: time per output token after the first, p95");
    visit("tpot_p99", self.tpot_p99, "task serve: time per output token after the first, p99");
    visit("itl", self.itl,
          "task serve: time between two steps of the engine that make tokens of a request, mean: "
          "what clients measure between chunks, which with speculation carry several tokens each, "
          "unless messages wait in front of them (column front_end_use)");
    visit(
        "itl_p50", self.itl_p50,
        "task serve: time between two steps of the engine that make tokens of a request, p50: what "
        "clients measure between chunks, which with speculation carry several tokens each, unless "
        "messages wait in front of them (column front_end_use)");
    visit(
        "itl_p90", self.itl_p90,
        "task serve: time between two steps of the engine that make tokens of a request, p90: what "
        "clients measure between chunks, which with speculation carry several tokens each, unless "
        "messages wait in front of them (column front_end_use)");
    visit(
        "itl_p95", self.itl_p95,
        "task serve: time between two steps of the engine that make tokens of a request, p95: what "
        "clients measure between chunks, which with speculation carry several tokens each, unless "
        "messages wait in front of them (column front_end_use)");
    visit(
        "itl_p99", self.itl_p99,
        "task serve: time between two steps of the engine that make tokens of a request, p99: what "
        "clients measure between chunks, which with speculation carry several tokens each, unless "
        "messages wait in front of them (column front_end_use)");
    visit("e2e_p50", self.e2e_p50, "task serve: time from arrival to the last token, p50");
    visit("e2e_p90", self.e2e_p90, "task serve: time from arrival to the last token, p90");
    visit("e2e_p95", self.e2e_p95, "task serve: time from arrival to the last token, p95");
    visit("e2e_p99", self.e2e_p99, "task serve: time from arrival to the last token, p99");
    visit("queue", self.queue,
          "task serve: time from arrival to the first step that the request is part of, mean");
    visit("queue_p50", self.queue_p50,
          "task serve: time from arrival to the first step that the request is part of, p50");
    visit("queue_p90", self.queue_p90,
          "task serve: time from arrival to the first step that the request is part of, p90");
    visit("queue_p95", self.queue_p95,
          "task serve: time from arrival to the first step that the request is part of, p95");
    visit("queue_p99", self.queue_p99,
          "task serve: time from arrival to the first step that the request is part of, p99");
    visit("offered", self.offered,
          "task serve: requests that arrive in the measured part, over the time in which they do "
          "(until the end of a load.curve that has one)");
    visit("throughput", self.throughput, "task serve: requests finished in the measured part");
    visit(
        "throughput_low", self.throughput_low,
        "lower end of the 90% interval of requests finished (served loads with output.intervals)");
    visit(
        "throughput_high", self.throughput_high,
        "upper end of the 90% interval of requests finished (served loads with output.intervals)");
    visit("goodput", self.goodput,
          "task serve: requests finished in the measured part, within the limits of slo and "
          "load.classes");
    visit("capacity", self.capacity,
          "task serve: highest rate that meets capacity.slo, and slo, and at which a run answers "
          "what comes; of sessions where load.turns is above 1");
    visit("output_per_user", self.output_per_user,
          "task serve: generated tokens of one user, between the first and the last");
    visit("total_per_user", self.total_per_user,
          "task serve: prompt and generated tokens of one user, from arrival to the last token");
    visit("output_per_device", self.output_per_device, "task serve: generated tokens, per device");
    visit("slo_attainment", self.slo_attainment,
          "task serve: share of the measured requests within the limits of slo and load.classes; "
          "those that were refused, shed or failed count as outside");
    visit("slo_met", self.slo_met,
          "task serve: 1 when every limit of slo (without one, of capacity.slo) is met; requests "
          "that were refused, shed or failed are later than any limit: a mean allows none of them, "
          "a percentile as many as it leaves out");
    visit("slo_probability", self.slo_probability,
          "task serve, output.intervals: probability that slo_met is 1, as far as kernel times and "
          "what first tokens wait for besides are known");
    visit("requests_finished", self.requests_finished,
          "task serve: requests answered, over the whole run");
    visit("requests_refused", self.requests_refused,
          "task serve: requests that could never fit (serving.kv_blocks, model.max_context), over "
          "the whole run");
    visit("refused_share", self.refused_share,
          "task serve: share of the requests that could never fit (serving.kv_blocks, "
          "model.max_context), over the whole run: latencies and rates are those of the others, "
          "which are shorter");
    visit("given_up_share", self.given_up_share,
          "task serve: share of the requests that were refused, shed or failed, over the whole "
          "run: latencies are those of the others");
    visit(
        "load_seen", self.load_seen,
        "task serve: how much of the load the run has seen. Of a rate: offered, over what "
        "load.rate and load.turns come to; well below 1 the run is over before sessions have come "
        "to their "
        "later turns, or these wait for answers. Of a curve: requests that came, over those until "
        "its end (without one: until its last number has held as long as the one before it). Of a "
        "trace: its requests that came. Of a closed loop: its clients that asked at all");
    visit(
        "curve_tail", self.curve_tail,
        "task serve with a load.curve that has no end: how long its last number held in this run; "
        "null: the curve ends");
    visit(
        "cut_share", self.cut_share,
        "task serve with load.lengths.prompt_max, output_max or total_max: share of the tokens of "
        "prompts and outputs that they cut off, over the first thousand requests: means are that "
        "much below the stated ones");
    visit("preemptions", self.preemptions,
          "task serve: times a running request was put back, over the whole run");
    visit("recomputed_tokens", self.recomputed_tokens,
          "task serve: tokens whose KV was lost by preemption, over the whole run; those that a "
          "preempted request finds in the cache when it is let in again are not lost");
    visit("prefix_hit_rate", self.prefix_hit_rate,
          "task serve: share of prompt tokens found in the cache when requests are let in for the "
          "first time, over the whole run");
    visit("batch_mean", self.batch_mean,
          "task serve: sequences in a step, mean over the steps of the whole run; with prefill, of "
          "the main deployment");
    visit("concurrency", self.concurrency,
          "task serve: requests inside the engine (host.request_latency is spent outside of it), "
          "mean over the whole run");
    visit("utilization", self.utilization,
          "task serve: share of the time a step was running, over the whole run; with prefill, of "
          "the main deployment");
    visit("front_end_use", self.front_end_use,
          "task serve: time that messages to clients take where none are merged, over the time of "
          "the processes that send them; from 1 on the front end is the limit: messages carry more "
          "tokens (host.front_end_merges) or queue up");
    visit(
        "token_limit", self.token_limit,
        "task serve: most tokens in one step of the main deployment: "
        "serving.max_num_batched_tokens or serving.chunk, by the policy; where that is auto, what "
        "the engine sets by itself");
    visit("sequence_limit", self.sequence_limit,
          "task serve: most sequences in one step of the main deployment: serving.max_num_seqs; "
          "where that is auto, what the engine sets by itself");
    visit("kv_blocks", self.kv_blocks, "KV blocks of a replica");
    visit(
        "kv_use", self.kv_use,
        "task serve: share of the KV cache with tokens or states in it, mean over the whole run; "
        "tokens that several requests share count once, but in pipelines and with prefill once for "
        "each of them");
    visit("kv_peak", self.kv_peak,
          "task serve: largest share of KV blocks in use, over the whole run");
    visit("kv_waste", self.kv_waste,
          "task serve: share of the room held by decodes that had no token in it, over the whole "
          "run");
    visit("steps", self.steps, "task serve: engine steps of the whole run");
    visit("makespan", self.makespan,
          "task serve: length of the whole run: from the start until the engine has made the last "
          "answer that counts, which its client has later where tokens queue in front of it, and "
          "until the end of a load.curve that has one");
    visit("capacity_monotone", self.capacity_monotone,
          "task serve: 1 when no lower rate that was tried missed capacity.slo or slo");
    visit(
        "capacity_decided", self.capacity_decided,
        "task serve: 1 when runs that were long enough to tell hold within 10% below capacity and "
        "fail within 10% above it (or within capacity.tolerance, where that is more); 0: capacity "
        "may be an accident of short runs, or with serving.failures of runs with fewer than 30 of "
        "them: state more load.requests, or auto");
    visit(
        "measured_from", self.measured_from,
        "task serve: end of the warm-up; rates, and latencies of requests that arrive, are counted "
        "from here");
    visit("measured_until", self.measured_until,
          "task serve: end of the measured part, as a rule the last arrival; of a load.curve that "
          "ends, its end or the last answer");
    visit("requests_measured", self.requests_measured,
          "task serve: answered requests that arrived in the measured part: latencies are theirs");
    visit(
        "steady", self.steady,
        "task serve: 1 when the measured part is of a system that had filled up and keeps up with "
        "its load, and what its caches have does not change (cache_drift); 0 for overload, traces, "
        "curves and load.measure: whole, where load.warmup ends before all clients or later turns "
        "of sessions have come or before a request's time in service is over, where replicas fail "
        "and fewer than 30 failures were seen, and where the run is too short to tell");
    visit(
        "precision_met", self.precision_met,
        "task serve: 1 when the throughput is known to 2% (95% interval from batch means), and "
        "each limit of slo to 2% or met or missed beyond doubt, and where replicas fail, 30 "
        "failures were seen, and where a fleet follows its load, it had ten times as long as that "
        "takes; null for whole runs");
    visit(
        "cache_drift", self.cache_drift,
        "task serve with prefixes in the cache: by how much the share of prompt tokens that no "
        "cache had changed from the first half of the measured part to the second, over its mean; "
        "0: not more than by chance; above 0.05 caches still fill up, or lose what they had: "
        "figures are those of a moment, and steady is 0");
    visit("transfer", self.transfer,
          "task serve with prefill: time from the end of reading a prompt until its KV cache is in "
          "the main deployment, waiting for room included, mean");
    visit("transfer_share", self.transfer_share,
          "task serve with prefill: time from the end of reading a prompt until its KV cache is in "
          "the main deployment, as a share of the time from arrival to the last token");
    visit("prefill_devices", self.prefill_devices,
          "task serve with prefill: devices of the deployment that reads prompts");
    visit("prefill_utilization", self.prefill_utilization,
          "task serve with prefill: share of the time a step was running in the deployment that "
          "reads prompts, over the whole run");
    visit("prefill_batch_mean", self.prefill_batch_mean,
          "task serve with prefill: sequences in a step of the deployment that reads prompts, mean "
          "over the whole run");
    visit("prefill_kv_peak", self.prefill_kv_peak,
          "task serve with prefill: largest share of KV blocks in use in the deployment that reads "
          "prompts, over the whole run");
    visit("host_hit_rate", self.host_hit_rate,
          "task serve with serving.tiers.host: share of prompt tokens found in the cache when "
          "requests are let in for the first time that had been loaded from host memory for them; "
          "a part of prefix_hit_rate");
    visit("disk_hit_rate", self.disk_hit_rate,
          "task serve with serving.tiers.disk: share of prompt tokens found in the cache when "
          "requests are let in for the first time that had been loaded from the disk for them; a "
          "part of prefix_hit_rate");
    visit("peer_hit_rate", self.peer_hit_rate,
          "task serve with serving.tiers.peer: share of prompt tokens found in the cache when "
          "requests are let in for the first time that had been loaded from the memory of other "
          "devices for them; a part of prefix_hit_rate");
    visit(
        "store_hit_rate", self.store_hit_rate,
        "task serve with serving.tiers.store: share of prompt tokens found in the cache when "
        "requests are let in for the first time that had been loaded for them from the store that "
        "all replicas share; a part of prefix_hit_rate");
    visit("encode", self.encode,
          "task serve with encode: time from arrival until the images of a request are encoded and "
          "have come to where its prompt is read, mean over the whole run");
    visit("encode_share", self.encode_share,
          "task serve with images: share of the time of steps in which the replicas that read "
          "prompts encode images, over the whole run");
    visit("encode_utilization", self.encode_utilization,
          "task serve with encode: share of the time that its replicas encode, over the whole run");
    visit("kv_load", self.kv_load,
          "task serve with serving.tiers: time that a request waits for the part of its prompt "
          "that it loads from a lower tier, mean over the whole run");
    visit(
        "replicas_mean", self.replicas_mean,
        "task serve with scaling: replicas that are on, warming up or draining included, mean over "
        "the measured part; with prefill, of the main deployment");
    visit("replica_starts", self.replica_starts,
          "task serve with scaling: replicas that were started in the whole run; with prefill, of "
          "the main deployment");
    visit("prefill_replicas_mean", self.prefill_replicas_mean,
          "task serve with prefill.serving.scaling: replicas that read prompts and are on, warming "
          "up or draining included, mean over the measured part");
    visit("prefill_replica_starts", self.prefill_replica_starts,
          "task serve with prefill.serving.scaling: replicas that read prompts and were started in "
          "the whole run");
    visit("device_hours", self.device_hours,
          "task serve: hours that devices were on, of all deployments, in the whole run");
    visit("goodput_per_device", self.goodput_per_device,
          "task serve: goodput over the devices of the point that are on, in the mean over the "
          "measured part");
    visit("goodput_per_usd", self.goodput_per_usd,
          "task serve: requests within the limits of slo and load.classes for each dollar of rent");
    visit("answer_tokens", self.answer_tokens,
          "task serve with load.samples: tokens generated for a measured request, of all its "
          "answers together, mean");
    visit("adapter_hit_rate", self.adapter_hit_rate,
          "task serve with load.adapters: share of the requests whose adapter was in the devices' "
          "memory when they came, over the whole run");
    visit("adapter_load", self.adapter_load,
          "task serve with load.adapters: time that requests whose adapter was not in the devices' "
          "memory waited for it, mean over the whole run");
    visit("adapters_per_step", self.adapters_per_step,
          "task serve with load.adapters: different adapters in a step, mean over the steps of the "
          "whole run");
    visit("energy", self.energy,
          "task serve: energy that all devices draw in the whole run, at rest between steps, too; "
          "null: a device does not say what it draws, or a neighbour or a draft elsewhere draws "
          "some of it");
    visit("energy_j_per_output_token", self.energy_j_per_output_token,
          "task serve: energy that all devices draw in the whole run, in joules for each token "
          "generated in it");
    visit("clock_mean", self.clock_mean,
          "task serve with serving.clock.mode slo: clock of the steps as a share of device.clock, "
          "mean over the time they take");
  }
};

}  // namespace engine
