// How a pool of replicas begins a run, and what they have in common in it.
#include <algorithm>

#include "engine/base/random.h"
#include "engine/serving/serving_sim.h"

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

}  // namespace

PoolConstants ServingSim::constants_of(std::size_t index) {
  const PoolSetup& from = problem_->pools[index];
  const ServingSettings& settings = from.settings;
  Pool& pool = pools_[index];
  const Stage& stage = stages()[stage_of_pool_[index]];
  const PolicyEntry& policy = policy_of(settings.policy);
  PoolConstants common;
  common.settings = &settings;
  common.plan = policy.plan;
  common.table = &pool.table;
  common.stats = &stats_;
  common.sums = &stats_.pool(index);
  common.scratch_plan = &scratch_plan_;
  common.lanes = std::int64_t(pool.lanes);
  common.seats = policy.seats_in_all(settings.max_num_seqs, common.lanes);
  common.blocks = BlockFilling::of(settings.block_size);
  common.pace = from.pace;
  common.longest = from.longest;
  common.margin = std::int64_t(settings.watermark * double(from.kv_blocks));
  common.pipeline = pool.lanes > 1;
  common.window = std::max(from.context.shard.model->window, from.window);
  common.state = from.state;
  common.states = from.states;
  common.own_paces = from.own_paces;
  common.late_reading = from.late_reading;
  common.log = problem_->step_log;
  common.turns = from.turns;
  common.takes_turns = from.turns.any();
  stream_to_clients(from, common);
  common.picks_length = pool.table.picks();
  common.role = from.role;
  common.uneven = pool.table.uneven();
  common.carries = stages().size() > 1;
  common.hands_over = !stage.writes;
  if (common.carries) common.first_message_tokens = 1;
  common.remakes_first_token = stage.carry.remakes_first_token;
  common.tells_first_token = stage.carry.tells_first_token && !common.remakes_first_token;
  common.first_token_dropped = common.hands_over && stages().back().carry.remakes_first_token;
  common.given_up_in_sight = gives_up_in_sight(index);
  common.tells_late = common.given_up_in_sight && pool.groups.empty() && pool.lanes == 1;
  common.keeps_preempted = from.from_host.has_value();
  common.counts_room = problem_->purpose == RunPurpose::figures;
  common.audit = problem_->audit;
  common.answers_come_later = policy.answers_come_later;
  common.plain = from.own_paces == nullptr && from.late_reading == nullptr && pool.groups.empty() &&
                 !from.turns.any() && problem_->step_log == nullptr &&
                 settings.retention.policy != Retention::ttl;
  common.most_tokens =
      std::min(from.longest, from.kv_blocks * settings.block_size - from.pace.past_end() + 1);
  // The last block of each may be nearly empty.
  common.encode_seconds = from.encode_seconds;
  common.encode_slower = from.encode_slower * problem_->scale[std::size_t(Phase::prefill)];
  common.seed = problem_->seed;
  if (from.draft != nullptr) common.draft_place = from.draft->place;
  if (std::ranges::any_of(from.tiers, [](const TierSetup& tier) { return tier.blocks > 0; })) {
    common.seconds_to_read_a_token = pool.table.prompt_token_seconds();
  }
  // A pool that sheds requests before it has room for them has to know how fast the others read.
  const bool sheds_late = std::ranges::any_of(
      problem_->pools, [](const PoolSetup& any) { return any.settings.admission.shed_late; });
  if (sheds_late || settings.ordering == Ordering::slo) {
    const double limit = request_limit(problem_->slo.ttft).value;
    const bool orders = settings.ordering == Ordering::slo;
    common.ttft_limit = limit < kNever || !orders ? limit : 0;
    common.seconds_per_prompt_token = pool.table.prompt_token_seconds();
    if (problem_->load.classes.any()) common.class_limits = &stats_.ttft_limits();
  }
  return common;
}

bool ServingSim::gives_up_in_sight(std::size_t index) const {
  const Pool& pool = pools_[index];
  const bool on_eviction = problem_->pools[index].settings.tiers.write == TierWrite::eviction;
  return pool.store.tier.exists() && on_eviction && pool.count > 1;
}

void ServingSim::start_pool(std::size_t index) {
  const PoolSetup& from = problem_->pools[index];
  Pool& pool = pools_[index];
  pool.count = std::size_t(from.replicas);
  pool.lanes = std::size_t(from.context.shard.parallel.pp);
  StepScale scale = problem_->scale;
  for (double& each : scale) each *= from.slower;
  pool.table.reset(
      from.context, scale,
      {.queries = from.pace.queries, .made = from.made_in_a_step(), .draft = from.draft},
      from.clock, from.lengths);
  pool.table.count_savings(problem_->purpose == RunPurpose::figures);
  pool.store.tier.reset(from.tiers[std::size_t(TierName::store)].blocks,
                        from.state / from.settings.block_size);
  pool.store.tier.ask_for_uses([this, index] { tell_uses(index); });
  pool.store.free = 0;
  pool.holders.clear();
  start_groups(index);
  pool.common = constants_of(index);
  Replica::Setup setup{.common = &pool.common, .kv_blocks = from.kv_blocks, .tiers = from.tiers};
  if (pool.store.tier.exists()) setup.store = &pool.store;
  if (router_of(from.settings.router).reads_caches && pool.count > 1) setup.holders = &pool.holders;
  for (std::size_t i = pool.first; i < pool.first + pool.count; ++i) {
    pool_of_[i] = std::uint8_t(index);
    setup.group = group_of(i);
    setup.number = std::int32_t(i);
    setup.place = std::int32_t(i - pool.first);
    setup.lanes = {lanes_.data() + pool.first_lane + (i - pool.first) * pool.lanes, pool.lanes};
    replicas_[i].reset(setup);
  }
  loads_ = loads_ || replicas_[pool.first].has_tiers();
  in_sight_ = in_sight_ || pool.common.given_up_in_sight;
  const RouterEntry& router = router_of(from.settings.router);
  pool.route = router.route;
  pool.routing_seed = index == 0 ? problem_->seed : mixed_seed(problem_->seed, index);
  pool.weight = router.weight;
  pool.weights.reset(pool.count, 0, kTakesNone);
  // What is measured of a steady load is a fleet that has followed it.
  const bool filled = problem_->plan.kind != RunKind::whole;
  pool.scaler.reset(from.settings.scaling, pool.count / std::size_t(from.unit),
                    std::size_t(from.unit), filled);
  for (std::size_t i = 0; i < pool.count; ++i) {
    if (!pool.scaler.takes(i)) pool.weights.set(i, kTakesNone);
  }
  const LoadClasses& classes = problem_->load.classes;
  const double others = classes.high.share + classes.low.share;
  pool.class_work = {classes.high.share, others < 1 ? 1 - others : 0, classes.low.share};
  for (std::size_t i = 0; i < kRequestClasses; ++i) pool.class_work[i] *= from.class_seconds[i];
  pool.class_replicas = replicas_of_classes(pool.class_work, std::int64_t(pool.scaler.open()));
  scales_ = scales_ || pool.scaler.follows_load();
  pool.failures.reset({.settings = from.settings.failures,
                       .units = pool.count / std::size_t(from.unit),
                       .seed = problem_->seed,
                       .pool = std::uint32_t(index)});
  fails_ = fails_ || pool.failures.any();
  pool.routed = pool.routed_at_look = 0;
}

}  // namespace engine
