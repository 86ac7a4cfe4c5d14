// Steps that replicas which share experts take together, as the table of step times has them.
#include "engine/step/lockstep.h"

#include <algorithm>

#include "engine/step/step_table.h"

namespace engine {

using Part = TokenTable::Part;

MemberStep StepTable::own_step(const BatchShape& batch) {
  return batch.prefill_tokens > 0 ? own_mixed(batch) : own_decodes(batch);
}

MemberStep StepTable::own_mixed(const BatchShape& batch) {
  const bool plain = verification_.plain();
  const double before = plain ? 0 : propose(batch);
  const BatchShape all = plain ? batch : wider(batch);
  const PricedStep priced = price_step(all);
  const double scale = scale_[std::size_t(priced.phase)];
  return {.device = priced.kernels.time * scale,
          .beside = halves_ ? tokens_.at(Part::beside, all.tokens()).time * scale : 0,
          .added = priced.host.added.value * scale,
          .least = priced.host.least.value * scale,
          .before = before,
          .scale = scale,
          .rows = all.tokens(),
          .phase = priced.phase,
          .saved = priced.kernels.saved};
}

MemberStep StepTable::own_decodes(const BatchShape& batch) {
  const double context = batch.decode_kv_tokens, window = batch.decode_window_kv_tokens;
  DecodeLine line;
  decode_line(decodes_of(batch), line);
  const DecodeBatch& known = batches_[std::size_t(line.batch)];
  const double before = line.proposals(context, window);
  // Its proposals are counted with it; the rest of its time is not known yet.
  count_decode(line, 1, context, window, before);
  const double scale = scale_[std::size_t(Phase::decode)];
  return {.device = line.device(context, window),
          .beside = known.beside * scale,
          .added = line.added,
          .least = line.least,
          .before = before,
          .scale = scale,
          .rows = known.rows};
}

double StepTable::run_together(std::span<const MemberStep> steps, std::size_t idle) {
  std::int64_t tokens = 0;
  bool reads = false;
  for (const MemberStep& own : steps) {
    tokens += own.rows;
    reads = reads || own.phase != Phase::decode;
  }
  // The kernels for many tokens are chosen by all for all: a prompt anywhere is one everywhere.
  exchange_part_ = reads ? Part::exchange : Part::decode_exchange;
  const TokenTable::Spot spot = tokens_.spot(Part::experts, tokens);
  const TokenTable::Spot fuller = tokens_.spot(reads ? Part::fuller : Part::decode_fuller, tokens);
  const MetExperts met{.experts = tokens_.at(spot), .fuller = tokens_.at(fuller)};
  SharedPart shared{.experts = met.experts.time,
                    .halves = halves_ && tokens > context_->shard.expert_replicas};
  for (const MemberStep& own : steps) {
    shared.exchange = std::max(shared.exchange, tokens_.at(exchange_part_, own.rows).time);
  }
  shared.exchange += met.fuller.time;
  double seconds = 0;
  for (const MemberStep& own : steps) seconds = std::max(seconds, member_seconds(own, shared));
  for (const MemberStep& own : steps) {
    tokens_.use(spot, own.phase, 1);
    tokens_.use(fuller, own.phase, 1);
    count_member(own, shared, met, seconds);
  }
  if (idle == 0) return seconds;
  // Those that have nothing to do hold experts for the others, and wait.
  const std::size_t decodes = std::size_t(Phase::decode);
  const double others = double(idle), working = met.experts.time * scale_[decodes];
  tokens_.use(spot, Phase::decode, others);
  seconds_[decodes] += others * seconds;
  idle_seconds_ += others * seconds;
  idle_steps_ += others;
  waited_[decodes] += others * (seconds - working);
  return seconds;
}

// One step of a member, which lasts `seconds` because somebody takes so long.
void StepTable::count_member(const MemberStep& own, SharedPart shared, const MetExperts& met,
                             double seconds) {
  const std::size_t phase = std::size_t(own.phase);
  const KernelSums& exchange = tokens_.use(exchange_part_, own.rows, own.phase);
  shared.exchange = exchange.time + met.fuller.time;
  waited_[phase] += seconds - member_seconds(own, shared);
  seconds_[phase] += seconds - own.before;
  KernelSums both = met.experts;
  both.add(exchange);
  both.add(met.fuller);
  const double apart = both.time;
  both.time = shared_seconds(own, shared) / own.scale;
  hidden_[phase] += apart - both.time;
  if (own.phase == Phase::decode)
    return decodes_shared_.add(both);  // `save_decodes` knows the rest
  both.saved.add(own.saved);
  both.time += own.device / own.scale;
  const HostLine host{.added = Seconds{own.added / own.scale},
                      .least = Seconds{own.least / own.scale}};
  saved_.add(step_savings(both.saved, Seconds{both.time}, host));
}

}  // namespace engine
