#include "engine/step/step_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "engine/step/together.h"

namespace engine {
namespace {

using Part = TokenTable::Part;

// Rows kept from run to run, some ten megabytes of them: what lengths and batches of a sweep share.
constexpr std::size_t kMostRows = 100'000;

// Whether decodes have products of their own besides those of all tokens, as in latent attention.
bool has_decode_products(const ModelShard& shard) {
  BatchShape decode;
  decode.decode_sequences = 1;
  OpList ops;
  token_ops(shard, decode, ops);
  return std::ranges::any_of(ops, [](const PlannedOp& op) { return op.grows == Grows::decodes; });
}

}  // namespace

void StepTable::reset(const StepContext& context, const StepScale& scale,
                      const Verification& verification, const ClockChoice& clock,
                      std::span<const DraftLength> lengths) {
  const bool same =
      verification.queries == verification_.queries && verification.made == verification_.made;
  context_ = &context;
  scale_ = scale;
  verification_ = verification;
  mixed_decodes_ = overlapped_ = drafting_ = 0;
  decode_sums_ = {};
  clock_varies_ = clock.varies();
  lines_recur_ = !clock_varies_ && lengths.empty() && verification.draft == nullptr;
  if (clock_varies_) clocks_.reset(context, scale, verification, clock);
  if (!lengths.empty() || lengths_.any()) lengths_.reset(context, scale, clock, lengths);
  if (verification.draft != nullptr) {
    draft_.reset(*verification.draft, scale[std::size_t(Phase::decode)]);
  }
  prompt_rows_.clear();
  for (ByPhase* sums : {&seconds_, &steps_, &gaps_, &launches_, &waited_, &hidden_}) sums->fill(0);
  idle_seconds_ = idle_steps_ = 0;
  decodes_shared_ = {};
  saved_ = {};
  counts_savings_ = true;
  StepInputs inputs(context);
  const bool known = same && inputs.recognisable() && inputs == inputs_;
  if (known && tokens_.rows() + attention_.rows() <= kMostRows) {
    tokens_.reset(context);
    attention_.reset(context);
    adapters_.reset(context);
    for (DecodeBatch& batch : batches_) batch.steps = batch.kv_tokens = 0;
  } else {
    forget_times();
    inputs_ = std::move(inputs);
  }
  line_of_cell_.clear();
  kept_counts_.clear();
  keeps_lines_ =
      lines_recur_ && attention_.full() && !attention_.windowed() && !attention_.uneven();
}

void StepTable::forget_times() {
  const StepContext& context = *context_;
  tokens_.forget(context);
  known_prompts_.forget();
  at_experts_index_.clear();
  at_experts_.clear();
  known_reads_.clear();
  attention_.forget(context, verification_.queries);
  adapters_.forget(context);
  batch_index_.clear();
  batches_.clear();
  decode_products_ = has_decode_products(context.shard);
  lockstep_ = context.shard.lockstep;
  halves_ = lockstep_ && context.shard.two_halves;
  exchanges_ = context.shard.expert_replicas > 1 && !lockstep_;
  if (lockstep_) {
    const std::int64_t some = 2 * context.shard.expert_replicas;
    shared_launches_ = tokens_.at(tokens_.spot(Part::experts, some)).launches +
                       tokens_.at(Part::exchange, 2).launches;
  }
}

void StepTable::add_batch(std::int64_t sequences) {
  const DecodeSize size{sequences, verification_.queries};
  const std::int64_t tokens = size.tokens();
  const LaunchMode mode = launch_mode(true, size, context_->host);
  DecodeBatch batch;
  batch.rows = mode == LaunchMode::replay ? captured_tokens(size, context_->host) : tokens;
  batch.fixed.add(tokens_.at(Part::body, batch.rows));
  if (exchanges_) batch.fixed.add(tokens_.at(Part::decode_exchange, batch.rows));
  batch.fixed.add(tokens_.at(Part::head, tokens));
  if (decode_products_) batch.fixed.add(tokens_.at(Part::absorb, batch.rows));
  if (halves_) {
    const KernelSums& beside = tokens_.at(Part::beside, batch.rows);
    batch.beside = beside.time;
    batch.fixed.add(beside);
  }
  if (lockstep_) batch.fixed.launches += shared_launches_;
  const HostLine host =
      host_line({.launches = batch.fixed.launches + attention_.launches(), .sequences = sequences},
                mode, context_->host);
  batch.added = host.added.value;
  batch.least = host.least.value;
  batch.gap = host.gap.value;
  if (std::size_t(sequences) >= batch_index_.size()) {
    batch_index_.resize(std::size_t(sequences) + 1, -1);
  }
  batch_index_[std::size_t(sequences)] = std::int32_t(batches_.size());
  batches_.push_back(batch);
  attention_.add_batch(sequences);
}

void StepTable::chosen_line(const Decodes& decodes, DecodeLine& line) {
  if (decodes.length < 0) {
    if (!clocks_.choose(decodes, line)) own_line(decodes, line);
    line.context_end = std::min(line.context_end, ClockLevels::chosen_until(decodes.context));
    return;
  }
  Decodes own = decodes;
  own.length = -1;
  lengths_.line(decodes.length, own, line);
}

// Its figures are worked out beside the line, which may lie anywhere, and written once.
void StepTable::own_line(const Decodes& decodes, DecodeLine& line) {
  const std::int32_t number = batch_of(decodes.sequences);
  const DecodeBatch& batch = batches_[std::size_t(number)];
  const double scale = scale_[std::size_t(Phase::decode)];
  double fixed = batch.fixed.time, overhang = 0, slope = 0, window_slope = 0;
  line.clock_level = line.length = line.kept = -1;
  line.batch = number;
  line.sequences = decodes.sequences;
  line.cell = line.window_cell = line.adapter_cell = -1;
  line.context_end = line.window_end = std::numeric_limits<double>::infinity();
  line.context_begin = line.window_begin = -line.context_end;
  if (attention_.uneven()) {
    overhang = std::max(0.0, decodes.longest - decodes.context / double(decodes.sequences));
    fixed += attention_.overhang(number, false).per_key.time * overhang;
  }
  if (attention_.full()) {
    line.cell = attention_.cell_at(number, decodes.context, {});
    const AttentionTable::Cell& cell = attention_.cell(line.cell);
    slope = cell.per_token.time;
    fixed += cell.at_low.time - slope * cell.low;
    line.context_begin = cell.low;
    line.context_end = cell.high;
  }
  if (attention_.windowed()) {
    line.window_cell = attention_.cell_at(number, decodes.window, {.window = true});
    const AttentionTable::Cell& cell = attention_.cell(line.window_cell);
    window_slope = cell.per_token.time;
    fixed += cell.at_low.time - window_slope * cell.low;
    line.window_begin = cell.low;
    line.window_end = cell.high;
  }
  if (decodes.adapters > 0) {
    line.adapter_cell = adapters_.cell_at(batch.rows, decodes.adapters);
    fixed += adapters_.at(line.adapter_cell).time;
  }
  line.overhang = overhang;
  line.fixed = fixed * scale;
  line.slope = slope * scale;
  line.window_slope = window_slope * scale;
  line.added = batch.added * scale;
  line.least = batch.least * scale;
  line.listing_slope = time_per_kv_token(context_->host).value * scale;
  line.proposing = line.proposing_slope = line.proposing_window_slope = 0;
  if (verification_.draft != nullptr) draft_.extend(decodes, line);
  line.plain = !attention_.windowed() && line.listing_slope == 0 && verification_.draft == nullptr;
}

const DecodeLine& StepTable::add_line(std::size_t cell, const Decodes& decodes) {
  if (cell >= line_of_cell_.size()) line_of_cell_.resize(cell + 1, nullptr);
  const std::size_t place = kept_counts_.size();
  if (place == lines_.size()) lines_.emplace_back();
  kept_counts_.emplace_back();
  DecodeLine& line = lines_[place];
  own_line(decodes, line);
  line.kept = std::int32_t(place);
  return *(line_of_cell_[cell] = &line);
}

void StepTable::count_chosen(DecodeLine line, double steps, double context_sum, double window_sum,
                             double seconds) {
  // A length has clocks of its own.
  const std::int32_t length = std::exchange(line.length, -1);
  if (length >= 0) {
    return lengths_.table(length).count_decode(line, steps, context_sum, window_sum, seconds);
  }
  StepTable& slower = clocks_.at(std::exchange(line.clock_level, -1));
  slower.count_decode(line, steps, context_sum, window_sum, seconds);
  drafting_ = slower.drafting();
}

void StepTable::gather_kept_counts() {
  for (std::size_t i = 0; i < kept_counts_.size(); ++i) {
    const KeptCount count = std::exchange(kept_counts_[i], {});
    DecodeBatch& batch = batches_[std::size_t(lines_[i].batch)];
    batch.steps += count.steps;
    batch.kv_tokens += count.context_sum;
    attention_.use(lines_[i].cell, Phase::decode, count.steps, count.context_sum);
    steps_[std::size_t(Phase::decode)] += count.steps;
  }
}

void StepTable::count_other(const DecodeLine& line, double steps, double context_sum,
                            double window_sum, double seconds) {
  if (line.clock_level >= 0 || line.length >= 0) {
    return count_chosen(line, steps, context_sum, window_sum, seconds);
  }
  constexpr Phase phase = Phase::decode;
  batches_[std::size_t(line.batch)].steps += steps;
  batches_[std::size_t(line.batch)].kv_tokens += context_sum;
  if (line.overhang > 0) {
    attention_.use_overhang(line.batch, false, phase, steps * line.overhang);
  }
  if (line.cell >= 0) attention_.use(line.cell, phase, steps, context_sum);
  if (line.window_cell >= 0) attention_.use(line.window_cell, phase, steps, window_sum);
  if (line.adapter_cell >= 0) adapters_.use(line.adapter_cell, phase, steps);
  if (verification_.draft != nullptr) {
    drafting_ = draft_.count(line, steps, context_sum, window_sum);
    seconds -= drafting_;
  }
  seconds_[std::size_t(phase)] += seconds;
  steps_[std::size_t(phase)] += steps;
}

[[gnu::always_inline]] inline void StepTable::run_decodes(const BatchShape& batch, Phase phase,
                                                          KernelSums& kernels) {
  const std::int32_t number = batch_of(batch.decode_sequences);
  const bool joined = attention_.joined();
  const auto attend = [&](double context, bool window) {
    const std::int32_t index =
        attention_.cell_at(number, context, {.window = window, .joined = joined});
    const AttentionTable::Cell& cell = attention_.cell(index);
    add(kernels, cell.at_low);
    add(kernels, cell.per_token, context - cell.low);
    attention_.use(index, phase, 1, context);
  };
  if (attention_.full()) attend(batch.decode_kv_tokens, false);
  if (attention_.windowed()) attend(batch.decode_window_kv_tokens, true);
  if (!attention_.uneven()) return;
  const double keys = decode_overhang(batch, joined);
  add(kernels, attention_.overhang(number, joined).per_key, keys);
  attention_.use_overhang(number, joined, phase, keys);
}

[[gnu::always_inline]] inline double StepTable::run_prompts(const BatchShape& batch, Phase phase,
                                                            KernelSums& kernels) {
  // One prompt read from its start on is what most steps with prompts have, and lengths recur.
  const bool fresh = batch.prefill_kv_tokens == double(batch.prefill_tokens);
  if (fresh && batch.prefill_sequences == 1) {
    add(kernels, tokens_.use(Part::prompt, batch.prefill_tokens, phase));
    if (!context_->shard.overlapped_attention) return 0;
    return tokens_.at(Part::prompt_attention, batch.prefill_tokens).time;
  }
  const auto shape = KnownPrompts::Shape::of(batch);
  const KnownPrompts::Known known = known_prompts_.at(shape, [&](KnownPrompts::Timed& timed) {
    OpList ops;
    attention_ops(context_->shard, shape.batch(), ops);
    timed.sums = sums_of(device_time(ops, *context_, phase, &timed.rows));
  });
  add(kernels, known.sums);
  double attention = known.sums.time;
  for (const KernelRow& row : known.rows) {
    prompt_rows_.add(row, phase, 1);
    if (!is_attention(row.family)) attention -= row.work.exposed().value;
  }
  return attention;
}

// Scans of prompts, and what devices that read one together exchange, are no part of such a kernel.
void StepTable::run_overlapped(const BatchShape& batch, Phase phase, KernelSums& kernels) {
  KernelSums decodes, prompts;
  run_decodes(batch, phase, decodes);
  const double attention = run_prompts(batch, phase, prompts);
  const double hidden = decodes.time + attention - time_together(decodes.time, attention);
  decodes.add(prompts);
  overlapped_ += hidden;
  kernels.time += decodes.time - hidden;
  kernels.launches += decodes.launches;
  kernels.saved.add(decodes.saved, decodes.time > 0 ? 1 - hidden / decodes.time : 1);
}

// A step in which sequences have several new tokens, all of which need logits, and before which they were proposed.
BatchShape StepTable::wider(const BatchShape& batch) const {
  BatchShape wider = batch;
  wider.decode_queries = verification_.queries;
  wider.sampled += batch.decode_sequences * (verification_.queries - 1);
  return wider;
}

double StepTable::propose(const BatchShape& batch) {
  mixed_decodes_ += double(batch.decode_sequences);
  drafting_ = verification_.draft != nullptr ? draft_.run(batch) : 0;
  return drafting_;
}

StepTable::PricedStep StepTable::price_step(const BatchShape& batch) {
  const Phase phase = batch.decode_sequences > 0 ? Phase::mixed : Phase::prefill;
  PricedStep priced{.kernels = tokens_.use(Part::body, batch.tokens(), phase), .phase = phase};
  KernelSums& kernels = priced.kernels;
  if (exchanges_) add(kernels, tokens_.use(Part::exchange, batch.tokens(), phase));
  if (halves_) add(kernels, tokens_.use(Part::beside, batch.tokens(), phase));
  if (lockstep_) kernels.launches += shared_launches_;
  if (batch.sampled > 0) add(kernels, tokens_.use(Part::head, batch.sampled, phase));
  run_attention(batch, phase, kernels);
  if (batch.adapters > 0) {
    const std::int32_t cell = adapters_.cell_at(batch.tokens(), batch.adapters);
    add(kernels, adapters_.at(cell));
    adapters_.use(cell, phase, 1);
  }
  priced.host = host_line({.launches = kernels.launches,
                           .layers = double(context_->shard.layers.all()),
                           .sequences = batch.prefill_sequences + batch.decode_sequences,
                           .kv_tokens = batch.prefill_kv_tokens + batch.decode_kv_tokens},
                          LaunchMode::eager, context_->host);
  const std::size_t in_phase = std::size_t(phase);
  gaps_[in_phase] += priced.host.gap.value;
  launches_[in_phase] += kernels.launches;
  steps_[in_phase] += 1;
  return priced;
}

double StepTable::run_step(const BatchShape& batch) {
  const auto [kernels, host, phase] = price_step(batch);
  if (counts_savings_) saved_.add(step_savings(kernels.saved, Seconds{kernels.time}, host));
  const double seconds =
      std::max(kernels.time + host.added.value, host.least.value) * scale_[std::size_t(phase)];
  seconds_[std::size_t(phase)] += seconds;
  return seconds;
}

double StepTable::prompt_token_seconds() {
  constexpr std::int64_t tokens = 2048;
  double seconds = tokens_.at(Part::body, tokens).time;
  if (halves_) seconds += tokens_.at(Part::beside, tokens).time;
  if (lockstep_) {
    const std::int64_t all = tokens * context_->shard.expert_replicas;
    seconds += tokens_.at(tokens_.spot(Part::experts, all)).time;
  }
  return seconds / double(tokens);
}

}  // namespace engine
