// Steps that replicas which share experts take together, as the table of step times has them.
#include "engine/step/lockstep.h"

#include <algorithm>

#include "engine/step/step_table.h"

namespace engine {

using Part = TokenTable::Part;

MemberStep StepTable::own_step(const BatchShape& batch, int length) {
  StepTable& own = of_length(length);
  MemberStep step = batch.prefill_tokens == 0 ? own.own_decodes(batch)
                    : own.verification_.plain()
                        ? own.own_mixed(batch, 0)
                        : own.own_mixed(own.wider(batch), own.propose(batch));
  step.length = length;
  return step;
}

[[gnu::always_inline]] inline MemberStep StepTable::own_mixed(const BatchShape& batch,
                                                              double before) {
  const PricedStep priced = price_step(batch);
  const double scale = scale_[std::size_t(priced.phase)];
  return {.device = priced.kernels.time * scale,
          .beside = halves_ ? tokens_.at(Part::beside, batch.tokens()).time * scale : 0,
          .added = priced.host.added.value * scale,
          .least = priced.host.least.value * scale,
          .before = before,
          .scale = scale,
          .rows = batch.tokens(),
          .phase = priced.phase,
          .saved = priced.kernels.saved};
}

MemberStep StepTable::own_decodes(const BatchShape& batch) {
  const double context = batch.decode_kv_tokens, window = batch.decode_window_kv_tokens;
  DecodeLine line;
  decode_line(decodes_of(batch), line);
  const DecodeBatch& known = batches_[std::size_t(line.batch)];
  const double before = line.proposals(context, window);
  const double listing = line.listing_slope * context;
  // Its proposals are counted with it; the rest of its time is not known yet.
  count_decode(line, 1, context, window, before);
  const double scale = scale_[std::size_t(Phase::decode)];
  return {.device = line.device(context, window),
          .beside = known.beside * scale,
          .added = line.added + listing,
          .least = line.least > 0 ? line.least + listing : 0,
          .before = before,
          .scale = scale,
          .rows = known.rows};
}

Senders StepTable::senders_of(const DecodeLine& line) {
  const DecodeBatch& batch = of_length(line.length).batches_[std::size_t(line.batch)];
  return {.rows = batch.rows,
          .length = line.length,
          .beside = batch.beside * scale_[std::size_t(Phase::decode)]};
}

StepTable::StepSeconds StepTable::seconds_among_alike(const Decodes& decodes) {
  DecodeLine line;
  own_line(decodes, line);
  double busy = line.device(decodes.context, decodes.window) + line.added;
  if (lockstep_) {
    Senders all = senders_of(line);
    all.members = double(context_->shard.expert_replicas);
    SharedStep shared;
    find_shared({}, {&all, 1}, shared);
    busy += all.shared;
  }
  return {.all = line.after_proposals(busy, decodes.context, decodes.window),
          .proposing = line.proposals(decodes.context, decodes.window)};
}

StepTable::AtExperts StepTable::at_experts(std::int64_t tokens, bool reads) {
  AtExperts there;
  there.experts_at = tokens_.spot(Part::experts, tokens);
  there.fuller_at = tokens_.spot(reads ? Part::fuller : Part::decode_fuller, tokens);
  there.experts = tokens_.at(there.experts_at);
  there.fuller = tokens_.at(there.fuller_at);
  there.fullest =
      tokens_.time_at(tokens_.spot(reads ? Part::fullest : Part::decode_fullest, tokens));
  return there;
}

const StepTable::AtExperts& StepTable::decodes_at_experts(std::int64_t tokens) {
  const std::size_t place = std::size_t(tokens);
  if (place >= at_experts_index_.size()) at_experts_index_.resize(place + 1, -1);
  if (at_experts_index_[place] < 0) {
    at_experts_.push_back(at_experts(tokens, false));
    at_experts_index_[place] = std::int32_t(at_experts_.size() - 1);
  }
  return at_experts_[std::size_t(at_experts_index_[place])];
}

const StepTable::AtExperts& StepTable::reads_at_experts(std::int64_t tokens) {
  constexpr std::size_t places = 1024;  // a quarter of a megabyte
  if (known_reads_.empty()) known_reads_.resize(places);
  KnownReads& known = known_reads_[std::size_t(tokens) % places];
  if (known.tokens != tokens) known = {.tokens = tokens, .found = at_experts(tokens, true)};
  return known.found;
}

void StepTable::find_shared(std::span<MemberStep> steps, std::span<Senders> senders,
                            SharedStep& shared) {
  shared.tokens = 0;
  bool reads = false;
  for (const MemberStep& own : steps) {
    shared.tokens += own.rows;
    reads = reads || own.phase != Phase::decode;
  }
  for (const Senders& each : senders) shared.tokens += each.rows * std::int64_t(each.members);
  // The kernels for many tokens are chosen by all for all: a prompt anywhere is one everywhere.
  shared.exchange = reads ? Part::exchange : Part::decode_exchange;
  static_cast<AtExperts&>(shared) =
      reads ? reads_at_experts(shared.tokens) : decodes_at_experts(shared.tokens);
  shared.part = {.experts = shared.experts.time,
                 .halves = halves_ && shared.tokens > context_->shard.expert_replicas};
  for (MemberStep& own : steps) {
    own.exchange = exchange_time(shared, own.rows);
    shared.part.exchange = std::max(shared.part.exchange, own.exchange);
  }
  const double scale = scale_[std::size_t(Phase::decode)];
  SharedPart alone = shared.part;
  for (Senders& each : senders) {
    if (each.members == 0) continue;
    alone.exchange = each.exchange = exchange_time(shared, each.rows);
    each.own_shared = shared_seconds(each.beside, scale, alone);
    shared.part.exchange = std::max(shared.part.exchange, alone.exchange);
  }
  for (Senders& each : senders) {
    if (each.members > 0) each.shared = shared_seconds(each.beside, scale, shared.part);
  }
}

[[gnu::always_inline]] inline KernelSums StepTable::count_sent(const SharedStep& shared,
                                                               const Sent& sent) {
  tokens_.use(shared.experts_at, sent.phase, sent.steps);
  KernelSums both = shared.experts;
  const KernelSums& sending = tokens_.use(shared.exchange, sent.rows, sent.phase, sent.steps);
  both.add(sending);
  const double longer = sent.exchange - sending.time;
  if (longer > 0) {
    const double share = longer / shared.fuller.time;
    tokens_.use(shared.fuller_at, sent.phase, sent.steps * share);
    both.add(shared.fuller, share);
  }
  hidden_[std::size_t(sent.phase)] += (both.time - sent.time) * sent.steps;
  both.time = sent.time;
  return both;
}

StepTable::SharedStep StepTable::found_here(SharedStep shared) {
  const bool reads = shared.exchange == Part::exchange;
  static_cast<AtExperts&>(shared) =
      reads ? reads_at_experts(shared.tokens) : decodes_at_experts(shared.tokens);
  return shared;
}

template <class Count>
[[gnu::always_inline]] inline void StepTable::at_length(int length, const SharedStep& shared,
                                                        Count count) {
  if (length < 0) return count(*this, shared);
  StepTable& table = lengths_.table(length);
  count(table, table.found_here(shared));
}

void StepTable::count_members(std::span<const MemberStep> members, const SharedStep& shared,
                              double seconds) {
  for (const MemberStep& own : members) {
    at_length(own.length, shared, [&](StepTable& table, const SharedStep& there) {
      table.count_member(own, there, seconds);
    });
  }
}

[[gnu::always_inline]] inline void StepTable::count_member(const MemberStep& own,
                                                           const SharedStep& shared,
                                                           double seconds) {
  const std::size_t phase = std::size_t(own.phase);
  SharedPart part = shared.part;
  part.exchange = own.exchange;
  waited_[phase] += seconds - member_seconds(own, part);
  seconds_[phase] += seconds - own.before;
  const double time = shared_seconds(own.beside, own.scale, part) / own.scale;
  KernelSums both = count_sent(
      shared, {.rows = own.rows, .exchange = part.exchange, .phase = own.phase, .time = time});
  if (own.phase == Phase::decode)
    return decodes_shared_.add(both);  // `save_decodes` knows the rest
  both.saved.add(own.saved);
  both.time += own.device / own.scale;
  const HostLine host{.added = Seconds{own.added / own.scale},
                      .least = Seconds{own.least / own.scale}};
  saved_.add(step_savings(both.saved, Seconds{both.time}, host));
}

void StepTable::count_senders(std::span<const Senders> senders, const SharedStep& shared,
                              double steps) {
  for (const Senders& each : senders) {
    if (each.members == 0) continue;
    at_length(each.length, shared, [&](StepTable& table, const SharedStep& there) {
      table.count_alike(each, there, steps);
    });
  }
}

[[gnu::always_inline]] inline void StepTable::count_alike(const Senders& senders,
                                                          const SharedStep& shared, double steps) {
  const double time = senders.own_shared / scale_[std::size_t(Phase::decode)];
  const double times = senders.members * steps;
  const Sent sent{.rows = senders.rows, .exchange = senders.exchange, .steps = times, .time = time};
  decodes_shared_.add(count_sent(shared, sent), times);
}

// Members that have nothing to do run their experts for the others, and wait.
void StepTable::count_idle(const SharedStep& shared, double idle, double steps, double seconds) {
  const std::size_t decodes = std::size_t(Phase::decode);
  tokens_.use(shared.experts_at, Phase::decode, idle * steps);
  seconds_[decodes] += idle * seconds;
  idle_seconds_ += idle * seconds;
  idle_steps_ += idle * steps;
  waited_[decodes] += idle * (seconds - steps * shared.experts.time * scale_[decodes]);
}

}  // namespace engine
