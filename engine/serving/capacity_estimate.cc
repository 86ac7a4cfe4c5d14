#include "engine/serving/capacity_estimate.h"

#include <algorithm>
#include <vector>

#include "engine/workload/shares.h"

namespace engine {
namespace {

// Tokens that a sequence has room for on average: halfway through its output with half a block wasted, or what is set aside
// for it.
double tokens_held(const PoolSetup& pool, const TypicalWork& work) {
  const ServingSettings& settings = pool.settings;
  // Answers to one prompt hold it together.
  const double held_by_others = work.prompt * (1 - 1 / work.answers);
  if (!policy_of(settings.policy).reserves) {
    return work.prompt - held_by_others + work.output / 2 + double(settings.block_size) / 2;
  }
  const double answered = work.prompt + std::max(work.output, double(settings.max_output));
  const bool longest = policy_of(settings.policy).takes_longest();
  return (longest ? std::max(answered, double(pool.longest)) : answered) - held_by_others;
}

}  // namespace

CapacityEstimate capacity_estimate(const PoolSetup& pool, const TypicalWork& work, Duty duty) {
  const ServingSettings& settings = pool.settings;
  const StepContext& context = pool.context;
  CapacityEstimate estimate;
  const double states = double(pool.state * pool.pace.queries);
  const double held = tokens_held(pool, work) + states;
  const double fit = double(pool.kv_blocks * settings.block_size) / held;
  // Batches in flight share blocks and seats: as many are in as the pipeline has stages.
  const double stages = double(context.shard.parallel.pp);
  const std::int64_t seats =
      policy_of(settings.policy).seats_in_all(settings.max_num_seqs, context.shard.parallel.pp);
  estimate.batch = std::max(1.0, std::min(fit, double(seats)) / stages);

  const std::int64_t window = context.shard.model->window;
  const auto whole = [](double x) { return std::max<std::int64_t>(1, std::int64_t(x + 0.5)); };
  const std::vector<double> shares = summed_shares(work.adapters, work.adapter_skew);
  // Answers to one prompt have its adapter; no batch has more than there are slots for.
  const auto adapters = [&](double sequences, double answers) -> std::int64_t {
    if (work.adapters == 0) return 0;
    const double most = double(pool.adapters.slots > 0 ? pool.adapters.slots : work.adapters);
    return whole(std::min(most, expected_different(shares, std::max(1.0, sequences / answers))));
  };
  BatchShape decode;
  add_decode(decode, whole(estimate.batch), whole(work.prompt + work.output / 2), window);
  decode.adapters = adapters(estimate.batch, work.answers);
  const std::int64_t middle = whole(work.prompt + work.output / 2);
  // Seconds per token of one sequence with so many proposals, while other batches are in the other stages.
  const auto token_seconds = [&](std::int64_t queries, const DraftStep* draft, double made) {
    BatchShape verified = decode;
    verified.decode_queries = queries;
    verified.sampled = verified.decode_tokens();
    double step = step_time(verified, context, Phase::decode, nullptr).total().value;
    if (draft != nullptr) {
      Breakdown unused;
      const DecodeRun run{
          .sequences = verified.decode_sequences, .context = middle, .adapters = verified.adapters};
      const double drafting = draft_time(*draft, run, unused).total().value;
      step = stages * stage_seconds(draft->place, stages, step + drafting, drafting);
    }
    return step / (double(verified.decode_sequences) * made);
  };
  double each = token_seconds(pool.pace.queries, pool.draft, pool.made_in_a_step());
  for (const DraftLength& length : pool.lengths) {
    each = std::min(each, token_seconds(length.pace.queries, &length.draft, length.expected));
  }

  // Prompts share steps up to the token budget, and long ones need several.
  const double budget = double(std::min(settings.step_budget(), std::int64_t{1} << 20));
  BatchShape prompt;
  const double shared = std::max(1.0, budget / work.prompt);
  const std::int64_t together = std::max<std::int64_t>(1, std::int64_t(std::min(4.0, shared)));
  const double pieces = std::max(1.0, work.prompt / budget);
  add_prefill(prompt, together, whole(work.prompt / pieces),
              whole(work.prompt / 2 * (1 - 1 / pieces)), window);
  prompt.sampled = together;
  prompt.adapters = adapters(double(together), 1);
  const Seconds read =
      step_time(prompt, context, Phase::prefill, nullptr).total() * (pieces / double(together));
  const double write = work.answers * std::max(0.0, work.output - 1) * each;
  // A pool that writes answers of one token has nothing to do, and any rate will do.
  const double encoding = pool.encode_seconds.empty()
                              ? 0
                              : pool.encode_seconds.back() / double(pool.encode_seconds.size());
  const double reading = read.value + encoding;
  const double seconds = duty == Duty::reads    ? reading
                         : duty == Duty::writes ? std::max(write, 1e-3 * reading)
                                                : reading + write;
  const HostSettings& host = context.host;
  const double messages = work.answers * work.output / double(settings.stream_interval);
  const bool limits = duty != Duty::reads && !host.front_end_merges;
  const double streaming =
      limits ? messages * host.front_end_per_message.value / double(host.front_end_processes) : 0;
  estimate.requests =
      double(pool.replicas) / std::max(seconds / (stages * pool.turns.share()), streaming);
  return estimate;
}

}  // namespace engine
