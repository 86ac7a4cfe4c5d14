#include "engine/tasks/serve/serve_pools.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/serving/fleet/scaler.h"
#include "engine/tasks/handover.h"
#include "engine/tasks/serve/kv_room.h"
#include "engine/tasks/serve/serve_lockstep.h"
#include "engine/tasks/serve/serve_report.h"
#include "engine/tasks/serve/served_adapters.h"

namespace engine {
namespace {

// No sequence is too long for a model that states no limit.
std::int64_t longest_of(const ModelSpec& model) {
  return model.max_context > 0 ? model.max_context : std::int64_t(kMostCount);
}

PoolSetup pool_of(const Deployed& deployed, const StepContext& context, KvRoom room,
                  DeploymentRole role, const Load& load) {
  const Deployment& on = *deployed.spec;
  const ServingSettings& serving = on.serving;
  PoolSetup pool{.settings = serving,
                 .context = context,
                 .replicas = serving.replicas * on.parallel.dp,
                 .unit = on.parallel.dp,
                 .longest = longest_of(on.model),
                 .role = role};
  const TokenRoom fit = set_state_aside(room, deployed);
  pool.pace = beside_states(pool.pace, fit.states);
  pool.state = fit.state;
  pool.states = fit.states;
  const double blocks = std::min(fit.tokens / double(serving.block_size), kMostBlocks);
  pool.kv_blocks = serving.kv_blocks > 0 ? serving.kv_blocks : std::int64_t(blocks);
  // Without prefixes that can be asked for again, nothing goes to the tiers below.
  if (serving.prefix_caching && load.repeats_prompts()) add_tiers(serving.tiers, fit, pool);
  return pool;
}

double devices_in(const Deployment& on) { return devices_of(on, double(on.serving.replicas)); }

// Several answers and adapters need some settings of the engine.
std::optional<Refusal> specialised_refusal(const TaskPoint& point) {
  const Scenario& scenario = point.scenario;
  const Load& load = scenario.load;
  if (load.samples > 1 && !scenario.serving.prefix_caching) {
    return Refusal{ReasonClass::load,
                   "load.samples > 1 needs serving.prefix_caching: answers share their prompt "
                   "through it"};
  }
  if (load.adapters == 0) return std::nullopt;
  return adapter_link_problem(scenario.serving.lora, point.main.fabric);
}

// How many tokens of a proposal hold, for each class and each number of positions.
SequencePaces own_paces(const Draft& draft, bool drawn) {
  SequencePaces paces{.drawn = drawn, .by_class = draft.classes_differ};
  for (std::size_t i = 0; i < kRequestClasses; ++i) {
    const Acceptance chances = reached(draft.by_class[i]);
    paces.classes[i].chances.assign(chances.begin(), chances.end());
    for (std::int64_t depth = 0; depth <= draft.depth; ++depth) {
      const double expected = expected_tokens(draft.by_class[i], depth);
      paces.classes[i].means.push_back(expected_pace(expected, draft.tree.tokens(depth)));
    }
  }
  return paces;
}

// Tokens that a decode step makes on average of an answer with `output` tokens, of a class, where `depth` positions are proposed. The
// first token comes with the prompt, and a last step that makes more than is left counts whole.
double made_in_a_step(const Draft* draft, RequestClass which, std::int64_t depth, double output) {
  if (draft == nullptr) return 1;
  const double expected = expected_tokens(draft->by_class[std::size_t(which)], depth);
  const std::int64_t later = std::max<std::int64_t>(1, std::llround(output) - 1);
  return double(later) / double(expected_pace(expected, depth).steps_for(0, later));
}

// The tightest limit on the time of a step, by gaps between steps and by the time per token, for all requests or for a class, since any
// batch may have a request of that class. A step makes several tokens of a sequence where `depth` positions are proposed.
double step_limit(const Scenario& scenario, const TypicalRequest& typical, const Draft* draft,
                  std::int64_t depth) {
  const Slo slo = tighter_of(scenario.slo, scenario.capacity.slo);
  double limit = request_limit(slo.itl).value;
  const auto keep = [&](RequestClass which, double share, const LoadClass& promised) {
    if (share < 1e-9) return;
    double token = request_limit(slo.tpot).value;
    if (promised.tpot.value > 0) token = std::min(token, promised.tpot.value);
    const double output = promised.output > 0 ? double(promised.output) : typical.output;
    limit = std::min(limit, token * made_in_a_step(draft, which, depth, output));
  };
  const LoadClasses& classes = scenario.load.classes;
  keep(RequestClass::high, classes.high.share, classes.high);
  keep(RequestClass::low, classes.low.share, classes.low);
  keep(RequestClass::normal, 1 - classes.high.share - classes.low.share, {});
  return limit * (1 - scenario.serving.clock.margin);
}

ClockChoice clock_of(const Scenario& scenario, const TypicalRequest& typical, const Draft* draft) {
  const ClockSettings& clock = scenario.serving.clock;
  if (clock.mode == ClockMode::full) return {};
  const std::int64_t depth = draft != nullptr ? draft->depth : 0;
  return {.lowest = clock.lowest,
          .power_exponent = clock.power_exponent,
          .limit = step_limit(scenario, typical, draft, depth)};
}

std::optional<Refusal> clock_refusal(const Scenario& scenario, const ClockChoice& clock) {
  const bool unlimited = !(clock.limit < kNever);
  if (scenario.serving.clock.mode == ClockMode::full || !unlimited) return std::nullopt;
  return Refusal{ReasonClass::slo,
                 "serving.clock.mode slo needs a limit to keep: slo on tpot or itl, or tpot of a "
                 "class in load.classes"};
}

std::optional<Refusal> scaling_refusal(const ServingSettings& serving) {
  auto problem = scaling_problem(serving.scaling, serving.replicas);
  if (!problem) return std::nullopt;
  return Refusal{ReasonClass::load, std::move(*problem)};
}

TypicalWork work_of(const TypicalRequest& typical, const Load& load) {
  return {.prompt = typical.prompt,
          .output = typical.output,
          .answers = double(load.samples),
          .adapters = load.adapters,
          .adapter_skew = load.adapter_skew};
}

// Settings of an engine that cannot be followed.
std::optional<Refusal> engine_problem(const ServingSettings& serving) {
  if (auto problem = scaling_refusal(serving)) return problem;
  if (serving.makes_way() && serving.policy == policy_named("static")) {
    return Refusal{ReasonClass::load,
                   "serving.preemption: priority cannot be combined with serving.policy: static, "
                   "whose batches run to their end"};
  }
  const FailureSettings& failures = serving.failures;
  constexpr Seconds least{1e-3};
  if (failures.any() && failures.mean_time_to_failure + failures.mean_time_to_repair < least) {
    return Refusal{ReasonClass::load,
                   "serving.failures: replicas that fail more than a thousand times a second serve "
                   "nobody; state longer mean times"};
  }
  return std::nullopt;
}

}  // namespace

MemoryDemand engine_demand(const ServingSettings& serving, const TypicalRequest& typical) {
  const bool chunked = policy_of(serving.policy).budget == StepBudget::chunk;
  return {.sequences = 1,
          .context = std::max<std::int64_t>(1, std::int64_t(typical.prompt + typical.output)),
          .step_tokens = chunked ? std::max(serving.chunk, serving.max_num_seqs)
                                 : serving.max_num_batched_tokens,
          .sampled = serving.max_num_seqs,
          .per_logit = serving.logit_memory};
}

ServePools::ServePools(const TaskPoint& point, const TypicalRequest& typical, double fit)
    : point_(point),
      main_shard_(in_lockstep(point.main.shard)),
      main_context_(with_shard(point.main.context(point.work), main_shard_)) {
  pools_.reserve(2);
  const MemoryDemand demand = engine_demand(point.scenario.serving, typical);
  pools_.push_back(pool_of(point.main, main_context_, {fit, double(demand.context)},
                           DeploymentRole::main, point.scenario.load));
  pools_[0].clock = clock_of(point.scenario, typical, point.draft);
  pools_[0].slower = point.beside.slower;
  pools_[0].turns = point.beside.turns;
  pools_[0].adapters = adapters_of(point.scenario.load, point.scenario.serving.lora, main_context_);
  if (point.draft != nullptr) add_draft(*point.draft, typical);
}

void ServePools::add_draft(const Draft& draft, const TypicalRequest& typical) {
  PoolSetup& pool = pools_[0];
  const Speculation& settings = point_.scenario.speculation;
  const std::int64_t states = pool.pace.room;
  draft_.emplace(draft.step(point_.main, point_.work));
  pool.draft = &*draft_;
  pool.pace = draft.pace;
  if (draft.own) pool.window = draft.own->model.window;
  const bool drawn = settings.draws == AcceptanceDraws::drawn;
  if (drawn || draft.classes_differ) {
    // The lane counts as many tokens as a sequence can make at most; each sequence falls behind by what was not accepted.
    own_paces_ = own_paces(draft, drawn);
    pool.own_paces = &own_paces_;
    pool.expected = draft.expected;
    pool.pace = {.tokens = draft.depth + 1, .steps = 1, .queries = draft.tokens + 1};
  }
  if (settings.dynamic) add_lengths(draft, typical);
  pool.pace = beside_states(pool.pace, states);
  for (DraftLength& length : lengths_) length.pace = beside_states(length.pace, states);
}

void ServePools::add_lengths(const Draft& draft, const TypicalRequest& typical) {
  PoolSetup& pool = pools_[0];
  // A model of its own can read a prompt at any time; an added layer reads what the main model has at hand while it does.
  const bool late =
      point_.scenario.speculation.method == SpeculationMethod::draft_model && draft.deployed;
  if (late) pool.late_reading = &late_reading_;
  draft_->reads_prompts = draft_->reads_prompts && !late;
  for (std::int64_t depth = 0; depth <= draft.depth; ++depth) {
    const double expected = draft.classes_differ
                                ? expected_over_classes(draft, point_.scenario.load, depth)
                                : expected_tokens(draft.acceptance, depth);
    const std::int64_t tokens = draft.tree.tokens(depth);
    const Pace pace =
        pool.own_paces != nullptr
            ? Pace{.tokens = depth + 1, .steps = 1, .queries = tokens + 1, .room = draft.tokens}
            : changing_pace(expected, tokens, draft.tokens);
    lengths_.push_back({.pace = pace,
                        .expected = expected,
                        .draft = draft.step(point_.main, point_.work, depth),
                        .reads_late = late,
                        .limit = step_limit(point_.scenario, typical, &draft, depth)});
    lengths_.back().draft.reads_prompts = draft_->reads_prompts;
  }
  pool.pace = lengths_.back().pace;
  pool.lengths = lengths_;
}

// What a draft that reads prompts when it is first asked takes for that.
void ServePools::price_draft_reading(const TypicalRequest& typical) {
  if (pools_[0].late_reading == nullptr) return;
  BatchShape prompts;
  const auto tokens = std::max<std::int64_t>(1, std::int64_t(typical.prompt));
  // Where it matters several come at a time, and weights are read once for all of them.
  const std::int64_t together = std::max<std::int64_t>(1, 2048 / tokens);
  add_prefill(prompts, together, tokens, 0, pools_[0].window);
  const Seconds read = step_time(prompts, *draft_->model, Phase::prefill, nullptr).total();
  const Seconds again = step_time(prompts, main_context_, Phase::prefill, nullptr).total();
  // In a pipeline every batch waits while the last stage reads.
  const bool holds_up = draft_->place == DraftPlace::last_stage;
  const double batches = holds_up ? double(point_.scenario.parallel.pp) : 1;
  const double all = double(together * tokens);
  BatchShape one;
  add_prefill(one, 1, 1, 0, pools_[0].window);
  const Seconds least = step_time(one, *draft_->model, Phase::prefill, nullptr).total();
  late_reading_ = {.least = least.value * batches,
                   .per_token = read.value * batches / all,
                   .again_per_token = again.value / all,
                   .prompt = std::max(1.0, typical.prompt),
                   .output = std::max(1.0, typical.output)};
}

std::optional<Refusal> ServePools::complete(const TypicalRequest& typical) {
  const MemoryDemand demand = engine_demand(point_.scenario.serving, typical);
  if (auto problem = blocks_problem(point_.main, demand, main())) return problem;
  if (auto problem = peers_problem(point_.main, main())) return problem;
  if (auto problem = engine_problem(main().settings)) return problem;
  if (auto problem = specialised_refusal(point_)) return problem;
  if (auto problem = clock_refusal(point_.scenario, main().clock)) return problem;
  if (auto problem = lockstep_refusal(point_.scenario)) return problem;
  price_draft_reading(typical);
  const Scenario& scenario = point_.scenario;
  if (scenario.prefill.present) {
    if (auto problem = add_readers(typical)) return problem;
  }
  if (!encodes(scenario)) return std::nullopt;
  const Deployed& readers = scenario.prefill.present ? readers_ : point_.main;
  if (auto problem = ready_encoder(point_, readers, encoder_.emplace())) return problem;
  if (!readers_encode(scenario)) return std::nullopt;
  pools_.back().encode_seconds = encoder_->seconds;
  if (!scenario.prefill.present) pools_[0].encode_slower = point_.beside.slower;
  return std::nullopt;
}

Encoders::Setup ServePools::encoders(const StepScale& scale) const {
  if (!encoder_) return {};
  Encoders::Setup setup = encoder_->apart;
  for (double& each : setup.seconds) each *= scale[std::size_t(Phase::prefill)];
  return setup;
}

std::optional<Refusal> ServePools::add_readers(const TypicalRequest& typical) {
  const Scenario& scenario = point_.scenario;
  const Deployment& on = scenario.prefill.deployment;
  if (auto problem = handover_problem(on, scenario)) return problem;
  if (auto problem = deploy(on, scenario.calibration, point_.resources.calibrations,
                            double(on.serving.replicas), readers_)) {
    return in_role("prefill", in_layout_of(scenario, "prefill", on, std::move(*problem)));
  }
  if (auto problem = reader_adapter_problem(scenario, readers_.fabric))
    return in_role("prefill", std::move(*problem));
  // A draft that reads prompts when it is first asked reads them where that is.
  const bool drafts = draft_ && pools_[0].late_reading == nullptr;
  const bool drafts_here = drafts && point_.draft->reads_beside_readers();
  if (drafts_here) {
    if (auto problem = ready_beside_readers(scenario, point_.resources, double(on.serving.replicas),
                                            readers_, readers_draft_.emplace()))
      return in_role("prefill", std::move(*problem));
  }
  readers_.guest.weights += encoder_weights_beside(scenario, on.parallel) +
                            adapter_memory(scenario, on.serving.lora, readers_.shard);
  const double here = devices_in(on), there = devices_in(scenario);

  if (scenario.serving.preempted_to_host) {
    add_way_from_host(point_.main, typical.prompt + typical.output, pools_[0]);
  }
  const MemoryDemand demand = engine_demand(on.serving, {typical.prompt, 1});
  const Footprint footprint = footprint_of(readers_, demand);
  if (auto problem = memory_problem(readers_, footprint, demand))
    return in_role("prefill", std::move(*problem));
  const double sequences = footprint.left() / readers_.kv_of(double(demand.context));
  readers_.shard = in_lockstep(readers_.shard);
  reader_context_.emplace(readers_.context(point_.work));
  const double context = double(demand.context);
  pools_.push_back(pool_of(readers_, *reader_context_, {sequences * context, context},
                           DeploymentRole::prefill, scenario.load));
  pools_[1].adapters = adapters_of(scenario.load, on.serving.lora, *reader_context_);
  if (drafts_here) draft_reading_.emplace(readers_draft_->step(readers_, point_.work, 0));
  if (drafts) {
    pools_[1].draft = drafts_here ? &*draft_reading_ : &*draft_;
    pools_[1].window = pools_[0].window;
  }
  if (auto problem = blocks_problem(readers_, demand, pools_[1]))
    return in_role("prefill", std::move(*problem));
  if (auto problem = peers_problem(readers_, pools_[1]))
    return in_role("prefill", std::move(*problem));
  if (auto problem = engine_problem(on.serving)) return in_role("prefill", std::move(*problem));
  if (auto problem = lockstep_refusal(on)) return in_role("prefill", std::move(*problem));

  journey_ = {.stages = {Stage{.pool = 1, .reads = true, .writes = false},
                         Stage{.pool = 0, .reads = false, .writes = true}},
              .short_prompt = scenario.transfer.local_prompt,
              .pushes = scenario.transfer.pushes(scenario.serving.pushes_kv)};
  Handover handover;
  if (auto problem = carry_of({.transfer = scenario.transfer,
                               .from = readers_,
                               .from_devices = here,
                               .to = point_.main,
                               .to_devices = there,
                               .tokens = std::max(1.0, typical.prompt)},
                              handover))
    return problem;
  Carry& carry = journey_.stages[1].carry = handover.carry;
  if (scenario.transfer.oversubscription > 1 && takes_a_fabric(scenario)) {
    // All adapters of the deployment that can carry less, over what the fabric takes.
    for (Carry::Load* load : {&carry.token, &carry.state}) {
      const double all = std::max(load->sent / double(pools_[1].replicas),
                                  load->received / double(pools_[0].replicas));
      load->fabric = scenario.transfer.oversubscription * all;
    }
  }
  return std::nullopt;
}

double ServePools::devices_of_stage(std::size_t pool, DeploymentRole role) const {
  const Parallelism& layout = pools_[pool].context.shard.parallel;
  const double all = double(layout.devices_of_replica() / layout.pp);
  if (role != DeploymentRole::draft) return all;
  const Draft& draft = pool > 0 && readers_draft_ ? *readers_draft_ : *point_.draft;
  return draft.devices(all);
}

FleetTimes ServePools::fleet_times() const {
  FleetTimes times;
  for (const PoolSetup& pool : pools_) {
    const ScalingSettings& scaling = pool.settings.scaling;
    times.settling = std::max(times.settling, scaling.settling(pool.replicas / pool.unit).value);
    times.timetable = std::max(times.timetable, timetable_seconds(scaling));
  }
  return times;
}

void ServePools::weigh_classes(const std::array<TypicalRequest, kRequestClasses>& typical) {
  for (std::size_t pool = 0; pool < pools_.size(); ++pool) {
    PoolSetup& setup = pools_[pool];
    if (setup.settings.router != router_named("by_class")) continue;
    for (std::size_t i = 0; i < kRequestClasses; ++i) {
      const TypicalWork work = work_of(typical[i], point_.scenario.load);
      setup.class_seconds[i] = 1 / capacity_estimate(setup, work, duty_of(pool)).requests;
    }
  }
}

CapacityEstimate ServePools::capacity(const TypicalRequest& typical) const {
  const TypicalWork work = work_of(typical, point_.scenario.load);
  CapacityEstimate estimate = capacity_estimate(main(), work, duty_of(0));
  if (pools_.size() > 1) {
    estimate.requests =
        std::min(estimate.requests, capacity_estimate(pools_[1], work, duty_of(1)).requests);
  }
  if (encoder_ && encoder_->apart.replicas > 0) {
    const Encoders::Setup& apart = encoder_->apart;
    const double each = apart.seconds.back() / double(apart.seconds.size());
    estimate.requests =
        std::min(estimate.requests, double(apart.replicas) / std::max(each, apart.sending));
  }
  return estimate;
}

}  // namespace engine
