// Rows of everything that a table of step times has counted.
#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "engine/kernels/power.h"
#include "engine/step/hidden_rows.h"
#include "engine/step/step_table.h"

namespace engine {

using Part = TokenTable::Part;

// Decode steps are counted by batch; the counts of tokens they have follow here, once.
void StepTable::count_decode_tokens() {
  constexpr Phase phase = Phase::decode;
  for (std::size_t sequences = 0; sequences < batch_index_.size(); ++sequences) {
    if (batch_index_[sequences] < 0) continue;
    const DecodeBatch& batch = batches_[std::size_t(batch_index_[sequences])];
    tokens_.use(Part::body, batch.rows, phase, batch.steps);
    if (exchanges_) tokens_.use(Part::decode_exchange, batch.rows, phase, batch.steps);
    if (halves_) tokens_.use(Part::beside, batch.rows, phase, batch.steps);
    tokens_.use(Part::head, std::int64_t(sequences) * verification_.queries, phase, batch.steps);
    decode_sums_.sequence_steps += double(sequences) * batch.steps;
    if (decode_products_) tokens_.use(Part::absorb, batch.rows, phase, batch.steps);
    gaps_[std::size_t(phase)] += batch.gap * batch.steps;
    launches_[std::size_t(phase)] += (batch.fixed.launches + attention_.launches()) * batch.steps;
  }
}

// What decode steps would save. The host's maximum is taken of the mean step of each batch size: its steps differ in
// context only.
void StepTable::save_decodes() {
  std::vector<KernelSums> sums(batches_.size());
  attention_.sum_by_batch(Phase::decode, sums);
  for (const std::int32_t index : batch_index_) {
    if (index < 0 || batches_[std::size_t(index)].steps <= 0) continue;
    const DecodeBatch& batch = batches_[std::size_t(index)];
    KernelSums mean = batch.fixed;
    mean.add(sums[std::size_t(index)], 1 / batch.steps);
    if (lockstep_) mean.add(decodes_shared_, 1 / steps_[std::size_t(Phase::decode)]);
    const Seconds listing = time_per_kv_token(inputs_->host) * (batch.kv_tokens / batch.steps);
    HostLine line{.added = Seconds{batch.added} + listing, .least = Seconds{batch.least}};
    if (batch.least > 0) line.least += listing;
    saved_.add(step_savings(mean.saved, Seconds{mean.time}, line), batch.steps);
  }
  adapters_.save(Phase::decode, saved_);
}

// What the host took of a phase whose kernels took `device` seconds.
HostTime StepTable::host_rest(Phase phase, double device) const {
  const std::size_t in_phase = std::size_t(phase);
  const double seconds = (seconds_[in_phase] - waited_[in_phase]) / scale_[in_phase];
  HostTime host;
  host.low = inputs_->host.low;
  host.high = inputs_->host.high;
  host.gap = Seconds{gaps_[in_phase]};
  host.between = Seconds{std::max(0.0, seconds - device - host.gap.value)};
  // Rounding leaves crumbs where the host takes nothing.
  if (host.between.value < 1e-12 * seconds) host.between = Seconds{0};
  return host;
}

void StepTable::report(std::vector<KernelRow>& rows) {
  report_one_by_one(rows);
  if (overlapped_ > 0) hide_overlapped(rows);
  if (halves_) hide_exchange(rows);
}

void StepTable::report_one_by_one(std::vector<KernelRow>& rows) {
  gather_kept_counts();
  count_decode_tokens();
  decode_sums_.sequence_steps += mixed_decodes_;
  decode_sums_.seconds =
      seconds_[std::size_t(Phase::decode)] + seconds_[std::size_t(Phase::mixed)] - idle_seconds_;
  std::vector<std::int32_t> batches;
  std::ranges::copy_if(batch_index_, std::back_inserter(batches),
                       [](std::int32_t index) { return index >= 0; });
  tokens_.weigh();
  attention_.order(batches);
  save_decodes();
  Breakdown sums;
  for (std::size_t p = 0; p < seconds_.size(); ++p) {
    const Phase phase = static_cast<Phase>(p);
    const std::size_t first = sums.rows().size();
    tokens_.report(phase, sums);
    attention_.report(phase, sums);
    adapters_.report(phase, sums);
    for (const KernelRow& row : prompt_rows_.rows()) {
      if (row.phase == phase) sums.add(row);
    }
    double device = phase == Phase::mixed ? -overlapped_ : 0;
    device -= hidden_[p];
    for (const KernelRow& row : std::span(sums.rows()).subspan(first)) {
      device += row.work.exposed().value;
    }
    scratch_rows_.clear();
    add_host_rows(host_rest(phase, device), {.launches = launches_[p], .steps = steps_[p]},
                  power_at_rest(context_->device), phase, scratch_rows_);
    const Seconds own{seconds_[p] - waited_[p]};
    add_wait_row(own * (1 - 1 / scale_[p]), steps_[p], phase, scratch_rows_);
    if (lockstep_) add_lockstep_row(phase);
    for (const KernelRow& row : scratch_rows_) sums.add(row);
  }
  if (verification_.draft != nullptr) {
    draft_.report(sums, saved_);
    decode_sums_.proposing = draft_.seconds();
    decode_sums_.seconds += draft_.seconds();
  }
  if (clock_varies_) clocks_.report(sums, *this);
  if (lengths_.any()) lengths_.report(sums, *this);
  rows = std::move(sums).take();
}

void StepTable::add_sums(const StepTable& other) {
  saved_.add(other.saved_);
  overlapped_ += other.overlapped_;
  for (std::size_t p = 0; p < hidden_.size(); ++p) hidden_[p] += other.hidden_[p];
  decode_sums_.sequence_steps += other.decode_sums_.sequence_steps;
  decode_sums_.seconds += other.decode_sums_.seconds;
  decode_sums_.proposing += other.decode_sums_.proposing;
}

ClockLevels::Sums StepTable::clock_sums() const {
  ClockLevels::Sums sums{clocked_seconds(), clocked_seconds()};
  if (clock_varies_) sums.add(clocks_.sums());
  if (lengths_.any()) sums.add(lengths_.clock_sums());
  return sums;
}

// Attention of prompts and that of decodes hide one another alike. Together they draw no more than the limit allows, as each does alone.
void StepTable::hide_overlapped(std::vector<KernelRow>& rows) const {
  const auto overlaps = [](const KernelRow& row) {
    return row.role == DeploymentRole::main && row.phase == Phase::mixed &&
           is_attention(row.family);
  };
  const Device& device = context_->device;
  hide_rows(overlapped_, device, rows, overlaps);
  Joules drawn, most;
  for (const KernelRow& row : rows) {
    if (!overlaps(row)) continue;
    drawn += row.work.energy;
    most += device.power_limit * row.work.exposed();
  }
  if (drawn <= most) return;
  for (KernelRow& row : rows) {
    if (overlaps(row)) row.work.energy *= most / drawn;
  }
}

// By whichever kernels tokens travel: all-to-alls, or gathering and scattering.
void StepTable::hide_exchange(std::vector<KernelRow>& rows) const {
  for (std::size_t p = 0; p < hidden_.size(); ++p) {
    hide_rows(hidden_[p], context_->device, rows, [p](const KernelRow& row) {
      const bool travels = row.op == OpName::expert_dispatch || row.op == OpName::expert_combine;
      return row.phase == static_cast<Phase>(p) && travels;
    });
  }
}

// The device draws what it does at rest.
void StepTable::add_lockstep_row(Phase phase) {
  const Seconds time{waited_[std::size_t(phase)]};
  if (time.value <= 0) return;
  const double idle = phase == Phase::decode ? idle_steps_ : 0;
  scratch_rows_.push_back({.phase = phase,
                           .op = OpName::lockstep,
                           .family = Family::host,
                           .bound = Bound::host,
                           .work = {.calls = steps_[std::size_t(phase)] + idle,
                                    .time = time,
                                    .low = time,
                                    .high = time,
                                    .energy = power_at_rest(context_->device) * time}});
}

}  // namespace engine
