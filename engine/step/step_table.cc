#include "engine/step/step_table.h"

#include <algorithm>
#include <limits>

namespace engine {

std::int32_t StepTable::cell_at(std::int32_t batch, std::int64_t sequences, double context,
                                DecodeKernel kernel) {
  const DecodeBatch& entry = batches_[std::size_t(batch)];
  const std::int64_t place = ContextGrid::place(context);
  const std::int64_t before = (kernel.window ? kContextPlaces : 0) +
                              (kernel.joined ? (windowed_ ? 2 : 1) * kContextPlaces : 0);
  const std::size_t first = entry.first_cell + std::size_t(before);
  std::int32_t& index = cell_index_[first + std::size_t(std::min(place, kContextPlaces - 1))];
  if (index < 0) {
    index = std::int32_t(cells_.size());
    cells_.push_back(
        cell_between(sequences, ContextGrid::point(place), ContextGrid::point(place + 1), kernel));
    cells_.back().batch = batch;
  }
  return index;
}

DecodeLine StepTable::decode_line(const Decodes& decodes) {
  const std::int64_t sequences = decodes.sequences;
  DecodeLine line;
  line.batch = batch_of(sequences);
  const DecodeBatch& batch = batches_[std::size_t(line.batch)];
  line.fixed = batch.fixed;
  line.added = batch.added;
  line.least = batch.least;
  if (uneven_) {
    line.overhang = std::max(0.0, decodes.longest - decodes.context / double(sequences));
    line.fixed += batch.alone.key_time * line.overhang;
  }
  line.context_end = line.window_end = std::numeric_limits<double>::infinity();
  if (full_) {
    line.cell = cell_at(line.batch, sequences, decodes.context, {});
    const Cell& cell = cells_[std::size_t(line.cell)];
    line.slope = cell.slope;
    line.fixed += cell.time_low - line.slope * cell.low;
    line.context_end = cell.high;
  }
  if (windowed_) {
    line.window_cell = cell_at(line.batch, sequences, decodes.window, {.window = true});
    const Cell& cell = cells_[std::size_t(line.window_cell)];
    line.window_slope = cell.slope;
    line.fixed += cell.time_low - line.window_slope * cell.low;
    line.window_end = cell.high;
  }
  const double scale = scale_[std::size_t(Phase::decode)];
  line.fixed *= scale;
  line.slope *= scale;
  line.window_slope *= scale;
  line.added *= scale;
  line.least *= scale;
  return line;
}

void StepTable::count_decode(const DecodeLine& line, double steps, double context_sum,
                             double window_sum, double seconds) {
  constexpr std::size_t phase = std::size_t(Phase::decode);
  DecodeBatch& batch = batches_[std::size_t(line.batch)];
  batch.steps += steps;
  batch.alone.keys[phase] += steps * line.overhang;
  if (line.cell >= 0) {
    cells_[std::size_t(line.cell)].steps[phase] += steps;
    cells_[std::size_t(line.cell)].sum[phase] += context_sum;
  }
  if (line.window_cell >= 0) {
    cells_[std::size_t(line.window_cell)].steps[phase] += steps;
    cells_[std::size_t(line.window_cell)].sum[phase] += window_sum;
  }
  seconds_[phase] += seconds;
  steps_[phase] += steps;
}

// Attention of several prompts, or of one that goes on: too many different ones for a table.
void StepTable::run_prompts(const BatchShape& batch, Phase phase, Kernels& kernels) {
  BatchShape prompts = batch;
  prompts.decode_sequences = 0;
  scratch_ops_.clear();
  attention_ops(context_->shard, prompts, scratch_ops_);
  scratch_rows_.clear();
  const DeviceTime attention = device_time(scratch_ops_, *context_, phase, &scratch_rows_);
  kernels.time += attention.total().value;
  kernels.launches += attention.launches();
  kernels.saved.add(attention.saved());
  for (const KernelRow& row : scratch_rows_) prompt_rows_.add(row);
}

double StepTable::run_mixed(const BatchShape& batch) {
  const Phase phase = batch.decode_sequences > 0 ? Phase::mixed : Phase::prefill;
  const std::size_t in_phase = std::size_t(phase);
  Kernels kernels;
  const auto add = [&](Part part, std::int64_t tokens) {
    Count& count = count_at(part, tokens);
    count.steps[in_phase] += 1;
    kernels.time += count.time;
    kernels.launches += count.launches;
    kernels.saved.add(count.saved);
  };
  add(Part::body, batch.tokens());
  if (exchanges_) add(Part::exchange, batch.tokens());
  if (batch.sampled > 0) add(Part::head, batch.sampled);
  if (batch.decode_sequences > 0) {
    if (latent_) add(Part::absorb, batch.decode_sequences);
    const std::int32_t decodes = batch_of(batch.decode_sequences);
    const auto attend = [&](double context, bool window) {
      Cell& cell = cells_[std::size_t(cell_at(decodes, batch.decode_sequences, context,
                                              {.window = window, .joined = joined_}))];
      cell.steps[in_phase] += 1;
      cell.sum[in_phase] += context;
      kernels.time += cell.time_low + cell.slope * (context - cell.low);
      kernels.saved.add(cell.saved_low);
      kernels.saved.add(cell.saved_slope, context - cell.low);
    };
    if (full_) attend(batch.decode_kv_tokens, false);
    if (windowed_) attend(batch.decode_window_kv_tokens, true);
    if (uneven_) {
      DecodeBatch& entry = batches_[std::size_t(decodes)];
      Overhang& overhang = joined_ ? entry.joined : entry.alone;
      const double keys = decode_overhang(batch, joined_);
      overhang.keys[in_phase] += keys;
      kernels.time += overhang.key_time * keys;
      kernels.saved.add(overhang.key_saved, keys);
    }
    kernels.launches += attention_launches_;
  }
  // One prompt read from its start on is what most steps with prompts have, and lengths recur.
  const bool fresh = batch.prefill_kv_tokens == double(batch.prefill_tokens);
  if (fresh && batch.prefill_sequences == 1) {
    add(Part::prompt, batch.prefill_tokens);
  } else {
    run_prompts(batch, phase, kernels);
  }
  const HostLine host = host_line({.launches = kernels.launches,
                                   .sequences = batch.prefill_sequences + batch.decode_sequences,
                                   .streamed = batch.sampled},
                                  LaunchMode::eager, context_->host);
  saved_.add(step_savings(kernels.saved, Seconds{kernels.time}, host));
  gaps_[in_phase] += host.gap.value;
  launches_[in_phase] += kernels.launches;
  const double seconds =
      std::max(kernels.time + host.added.value, host.least.value) * scale_[in_phase];
  seconds_[in_phase] += seconds;
  steps_[in_phase] += 1;
  return seconds;
}

}  // namespace engine
