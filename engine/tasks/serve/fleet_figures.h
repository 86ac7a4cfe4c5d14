// Task `serve`: figures of replicas that fail, requests of several classes and tenants, and sessions.
#pragma once

#include "engine/base/units.h"
#include "engine/figures.h"

namespace engine {

struct FleetFigures {
  double failures = kNoValue;
  double availability = kNoValue;
  double requests_held = kNoValue;
  double requests_retried = kNoValue;
  double requests_failed = kNoValue;
  double lost_tokens = kNoValue;
  double requests_shed = kNoValue;
  double slo_attainment_high = kNoValue;
  double slo_attainment_normal = kNoValue;
  double slo_attainment_low = kNoValue;
  Seconds ttft_p95_high{kNoValue};
  Seconds ttft_p95_normal{kNoValue};
  Seconds ttft_p95_low{kNoValue};
  Seconds tpot_p95_high{kNoValue};
  Seconds tpot_p95_normal{kNoValue};
  Seconds tpot_p95_low{kNoValue};
  double accepted_high = kNoValue;
  double accepted_normal = kNoValue;
  double accepted_low = kNoValue;
  double slo_attainment_worst_tenant = kNoValue;
  Seconds ttft_worst_tenant{kNoValue};
  double tenant_fairness = kNoValue;
  Seconds ttft_later_turns{kNoValue};
  Seconds ttft_later_turns_p95{kNoValue};
  double later_turns_seen = kNoValue;
  double history_hit_rate = kNoValue;
  Seconds reserve_wait{kNoValue};
  double transfer_slowdown = kNoValue;
  double collective_slowdown = kNoValue;
  double encode_batch = kNoValue;
  double idle_rank_share = kNoValue;
  double prefill_idle_rank_share = kNoValue;
  Seconds lockstep_time{kNoValue};

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("failures", self.failures,
          "task serve with serving.failures: times that a replica failed, over the whole run");
    visit(
        "availability", self.availability,
        "task serve with serving.failures: share of the time that replicas were not under repair, "
        "over the replicas of all deployments and the whole run; with serving.scaling, of the time "
        "that they were on or under repair");
    visit("requests_held", self.requests_held,
          "task serve with serving.scaling or serving.failures: requests that came while no "
          "replica took any, and waited for one, over the whole run");
    visit("requests_retried", self.requests_retried,
          "task serve with serving.failures: times that a request was sent to another replica "
          "because its own had failed, over the whole run");
    visit("requests_failed", self.requests_failed,
          "task serve with serving.failures: requests that were given up because their replicas "
          "failed as often as serving.failures.attempts says, over the whole run");
    visit("lost_tokens", self.lost_tokens,
          "task serve with serving.failures: tokens of requests whose KV was lost with a replica, "
          "over the whole run");
    visit("requests_shed", self.requests_shed,
          "task serve with serving.admission: requests that were turned away when they arrived, "
          "over the whole run");
    visit("slo_attainment_high", self.slo_attainment_high,
          "task serve with load.classes: share of the measured requests of class high within their "
          "limits; those shed or failed count as outside");
    visit("slo_attainment_normal", self.slo_attainment_normal,
          "task serve with load.classes: share of the measured requests of class normal within "
          "their limits; those shed or failed count as outside");
    visit("slo_attainment_low", self.slo_attainment_low,
          "task serve with load.classes: share of the measured requests of class low within their "
          "limits; those shed or failed count as outside");
    visit("ttft_p95_high", self.ttft_p95_high,
          "task serve with load.classes: time to first token of class high, p95");
    visit("ttft_p95_normal", self.ttft_p95_normal,
          "task serve with load.classes: time to first token of class normal, p95");
    visit("ttft_p95_low", self.ttft_p95_low,
          "task serve with load.classes: time to first token of class low, p95");
    visit("tpot_p95_high", self.tpot_p95_high,
          "task serve with load.classes: time per output token of class high, p95");
    visit("tpot_p95_normal", self.tpot_p95_normal,
          "task serve with load.classes: time per output token of class normal, p95");
    visit("tpot_p95_low", self.tpot_p95_low,
          "task serve with load.classes: time per output token of class low, p95");
    visit("accepted_tokens_per_step_high", self.accepted_high,
          "task serve with speculation, where a class has an acceptance of its own: tokens that a "
          "decode step makes of a request of class high, mean");
    visit("accepted_tokens_per_step_normal", self.accepted_normal,
          "task serve with speculation, where a class has an acceptance of its own: tokens that a "
          "decode step makes of a request of class normal, mean");
    visit("accepted_tokens_per_step_low", self.accepted_low,
          "task serve with speculation, where a class has an acceptance of its own: tokens that a "
          "decode step makes of a request of class low, mean");
    visit("slo_attainment_worst_tenant", self.slo_attainment_worst_tenant,
          "task serve with tenants: share of the measured requests within their limits, of the "
          "tenant for whom it is least");
    visit("ttft_worst_tenant", self.ttft_worst_tenant,
          "task serve with tenants: mean time to first token of the tenant for whom it is longest");
    visit("tenant_fairness", self.tenant_fairness,
          "task serve with tenants: Jain's index of the tokens, of prompts and of answers, of "
          "requests that were answered in the measured part, by tenant; 1: all alike; 1/tenants: "
          "one got everything");
    visit("ttft_later_turns", self.ttft_later_turns,
          "task serve with load.turns: time to first token of all but the first turn of a session, "
          "mean");
    visit("ttft_later_turns_p95", self.ttft_later_turns_p95,
          "task serve with load.turns: time to first token of all but the first turn of a session, "
          "p95");
    visit(
        "later_turns_seen", self.later_turns_seen,
        "task serve with load.turns: share of later turns among the measured requests, divided by "
        "their share in whole sessions. A measured part cuts sessions at both ends, so that it "
        "may be some percent above or below 1; well below 1: the run was over before its sessions "
        "were, and figures are those of first turns, whose prompts are shorter");
    visit("history_hit_rate", self.history_hit_rate,
          "task serve with load.turns and prefix caching: share of the history's tokens that later "
          "turns found in the cache");
    visit("reserve_wait", self.reserve_wait,
          "task serve with transfer.initiative push: time that a request waits for blocks to be "
          "set aside before its prompt may be read, mean over the whole run");
    visit("transfer_slowdown", self.transfer_slowdown,
          "task serve with transfer.contention collectives: time that a KV cache is on its way, "
          "divided by what it would be without collectives on the same adapters, as far as the "
          "adapters limit it");
    visit("collective_slowdown", self.collective_slowdown,
          "task serve with transfer.contention collectives: time of the collectives of the main "
          "deployment that leave its nodes, divided by what it would be without KV caches on the "
          "same adapters, mean");
    visit("encode_batch", self.encode_batch,
          "task serve with encoders of their own and load.image_batch above 1: requests whose "
          "images an encoder takes together, mean");
    visit("idle_rank_share", self.idle_rank_share,
          "task serve with parallel.ep above parallel.tp: share of the replicas of a group, which "
          "step together, that have nothing to do in a step, mean over the time of steps of the "
          "whole run; such steps are part of utilization, not of steps and batch_mean; with "
          "prefill, of the main deployment");
    visit("prefill_idle_rank_share", self.prefill_idle_rank_share,
          "task serve with prefill.parallel.ep above prefill.parallel.tp: in the deployment that "
          "reads prompts, share of the replicas of a group, which step together, that have nothing "
          "to do in a step, mean over the time of steps of the whole run");
    visit("lockstep_time", self.lockstep_time,
          "task serve with parallel.ep above parallel.tp: time of steps in which replicas wait for "
          "others that share their experts, those with nothing to do included, over all replicas "
          "and the whole run");
  }
};

}  // namespace engine
