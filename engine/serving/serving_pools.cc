#include "engine/serving/serving_pools.h"

#include <algorithm>

#include "engine/base/random.h"

namespace engine {

namespace {

// How tokens get to clients, and when these hear of an answer.
void stream_to_clients(const PoolSetup& from, PoolConstants& common) {
  const ServingSettings& settings = from.settings;
  const HostSettings& host = from.context.host;
  const bool alone = settings.first_message == FirstMessage::at_once;
  const double message = host.front_end_per_message.value / double(host.front_end_processes);
  const double token = message / double(settings.stream_interval);
  common.front_end = FrontEnd(host.front_end_merges ? LateTokens::join_it : LateTokens::queue_up);
  common.message_seconds = {.further = token, .first = alone ? message : token};
  common.first_message_tokens = alone ? 1 : settings.stream_interval;
}

PartOfWay part_of_way(const Stage& stage) {
  if (stage.reads && stage.writes) return PartOfWay::all;
  return stage.reads ? PartOfWay::reads : PartOfWay::writes;
}

ReadToken first_token_in(const Stage& stage, const Carry& last) {
  if (stage.reads && stage.writes) return ReadToken::is_told;
  if (last.remakes_first_token) return stage.reads ? ReadToken::is_dropped : ReadToken::is_remade;
  return stage.writes && last.tells_first_token ? ReadToken::told_on_arrival : ReadToken::is_told;
}

// The constants of a pool whose step table and groups are ready.
PoolConstants constants_of(Fleet& fleet, const PoolParts& parts, std::size_t index) {
  const ServingProblem& problem = *fleet.problem;
  const PoolSetup& from = problem.pools[index];
  const ServingSettings& settings = from.settings;
  Pool& pool = fleet.pools[index];
  const Stage& stage = fleet.stages()[fleet.stage_of_pool[index]];
  const PolicyEntry& policy = policy_of(settings.policy);
  PoolConstants common;
  common.settings = &settings;
  common.policy = &policy;
  common.plan = policy.plan;
  common.table = &pool.table;
  common.stats = &fleet.stats;
  common.sums = &fleet.stats.pool(index);
  common.scratch_plan = &parts.scratch_plan;
  common.lanes = std::int64_t(pool.lanes);
  common.seats = policy.seats_in_all(settings.max_num_seqs, common.lanes);
  common.blocks = BlockFilling::of(settings.block_size);
  common.pace = from.pace;
  common.longest = from.longest;
  common.margin = std::int64_t(settings.watermark * double(from.kv_blocks));
  common.window = std::max(from.context.shard.model->window, from.window);
  common.state = from.state;
  common.states = from.states;
  common.own_paces = from.own_paces;
  common.late_reading = from.late_reading;
  common.log = problem.step_log;
  common.turns = from.turns;
  stream_to_clients(from, common);
  common.role = from.role;
  common.part = part_of_way(stage);
  common.first_token = first_token_in(stage, fleet.stages().back().carry);
  if (common.carries()) common.first_message_tokens = 1;
  if (gives_up_in_sight(from)) {
    const bool alone = parts.lockstep.members(index) == 1 && pool.lanes == 1;
    common.given_up = alone ? GivenUp::seen_and_used_later : GivenUp::seen;
  }
  if (from.from_host.has_value()) common.preempted_kv = PreemptedKv::kept_by_host;
  common.counts_room = problem.purpose == RunPurpose::figures;
  common.audit = problem.audit;
  common.most_tokens =
      std::min(from.longest, from.kv_blocks * settings.block_size - from.pace.past_end() + 1);
  common.encode_seconds = from.encode_seconds;
  common.encode_slower = from.encode_slower * problem.scale[std::size_t(Phase::prefill)];
  common.seed = problem.seed;
  if (from.draft != nullptr) common.draft_place = from.draft->place;
  if (std::ranges::any_of(from.tiers, [](const TierSetup& tier) { return tier.blocks > 0; })) {
    common.seconds_to_read_a_token = pool.table.prompt_token_seconds();
  }
  // A pool that sheds requests before it has room for them has to know how fast the others read.
  const bool sheds_late = std::ranges::any_of(
      problem.pools, [](const PoolSetup& any) { return any.settings.admission.shed_late; });
  if (sheds_late || settings.ordering == Ordering::slo) {
    const double limit = request_limit(problem.slo.ttft).value;
    const bool orders = settings.ordering == Ordering::slo;
    common.ttft_limit = limit < kNever || !orders ? limit : 0;
    common.seconds_per_prompt_token = pool.table.prompt_token_seconds();
    if (problem.load.classes.any()) common.class_limits = &fleet.stats.ttft_limits();
  }
  return common;
}

void start_pool(Fleet& fleet, const PoolParts& parts, std::size_t index) {
  const ServingProblem& problem = *fleet.problem;
  const PoolSetup& from = problem.pools[index];
  Pool& pool = fleet.pools[index];
  const RouterEntry& router = router_of(from.settings.router);
  pool.holders.clear();
  pool.common = constants_of(fleet, parts, index);
  Replica::Setup setup{.common = &pool.common,
                       .kv_blocks = from.kv_blocks,
                       .tiers = from.tiers,
                       .store = parts.tiers.store_of(index)};
  if (router.reads_caches && pool.count > 1) setup.holders = &pool.holders;
  for (std::size_t i = pool.first; i < pool.first + pool.count; ++i) {
    setup.group = parts.lockstep.group_of(i);
    setup.number = std::int32_t(i);
    setup.place = std::int32_t(i - pool.first);
    setup.lanes = {fleet.lanes.data() + pool.first_lane + (i - pool.first) * pool.lanes,
                   pool.lanes};
    fleet.replicas[i].reset(setup);
  }
  pool.route = router.route;
  pool.routing_seed = index == 0 ? problem.seed : mixed_seed(problem.seed, index);
  pool.weight = router.weight;
  pool.weights.reset(pool.count, 0, kTakesNone);
  // What is measured of a steady load is a fleet that has followed it.
  const bool filled = problem.plan.kind != RunKind::whole;
  pool.scaler.reset(from.settings.scaling, pool.count / std::size_t(from.unit),
                    std::size_t(from.unit), filled);
  for (std::size_t i = 0; i < pool.count; ++i) {
    if (!pool.scaler.takes(i)) pool.weights.set(i, kTakesNone);
  }
  const LoadClasses& classes = problem.load.classes;
  const double others = classes.high.share + classes.low.share;
  pool.class_work = {classes.high.share, others < 1 ? 1 - others : 0, classes.low.share};
  for (std::size_t i = 0; i < kRequestClasses; ++i) pool.class_work[i] *= from.class_seconds[i];
  pool.class_replicas = replicas_of_classes(pool.class_work, std::int64_t(pool.scaler.open()));
  pool.routed = 0;
}

}  // namespace

void lay_out_pools(Fleet& fleet) {
  const ServingProblem& problem = *fleet.problem;
  fleet.pools.resize(problem.pools.size());
  fleet.pool_of.resize(fleet.replicas.size());
  fleet.stage_of_pool.assign(fleet.pools.size(), 0);
  for (std::size_t i = 0; i < fleet.stages().size(); ++i) {
    fleet.stage_of_pool[fleet.stages()[i].pool] = std::uint8_t(i);
  }
  std::size_t replicas = 0, lanes = 0;
  for (std::size_t i = 0; i < fleet.pools.size(); ++i) {
    const PoolSetup& from = problem.pools[i];
    Pool& pool = fleet.pools[i];
    pool.first = replicas;
    pool.first_lane = lanes;
    pool.count = std::size_t(from.replicas);
    pool.lanes = std::size_t(from.context.shard.parallel.pp);
    replicas += pool.count;
    lanes += pool.count * pool.lanes;
    std::fill(fleet.pool_of.begin() + std::ptrdiff_t(pool.first),
              fleet.pool_of.begin() + std::ptrdiff_t(replicas), std::uint8_t(i));
    StepScale scale = problem.scale;
    for (double& each : scale) each *= from.slower;
    pool.table.reset(
        from.context, scale,
        {.queries = from.pace.queries, .made = from.made_in_a_step(), .draft = from.draft},
        from.clock, from.lengths);
    pool.table.count_savings(problem.purpose == RunPurpose::figures);
  }
}

void start_pools(Fleet& fleet, const PoolParts& parts) {
  for (std::size_t i = 0; i < fleet.pools.size(); ++i) start_pool(fleet, parts, i);
}

}  // namespace engine
