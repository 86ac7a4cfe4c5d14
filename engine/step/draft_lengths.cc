#include "engine/step/draft_lengths.h"

#include <algorithm>
#include <cmath>

#include "engine/step/octave_grid.h"
#include "engine/step/step_table.h"

namespace engine {
namespace {

using Contexts = OctaveGrid<4>;

std::int64_t picoseconds(double seconds) { return std::llround(seconds * 1e12); }

}  // namespace

DraftLengths::DraftLengths() = default;
DraftLengths::~DraftLengths() = default;
DraftLengths::DraftLengths(DraftLengths&&) noexcept = default;
DraftLengths& DraftLengths::operator=(DraftLengths&&) noexcept = default;

void DraftLengths::reset(const StepContext& context, const ByPhase& scale, const ClockChoice& clock,
                         std::span<const DraftLength> lengths) {
  lengths_ = lengths;
  alone_.clear();
  beside_.clear();
  tables_.resize(lengths.size());
  window_ = context.shard.model->window;
  stages_ = double(context.shard.parallel.pp);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (tables_[i] == nullptr) tables_[i] = std::make_unique<StepTable>();
    const DraftLength& length = lengths[i];
    if (length.draft.model) window_ = std::max(window_, length.draft.model->shard.model->window);
    ClockChoice own = clock;
    own.limit = std::min(clock.limit, length.limit);
    tables_[i]->reset(
        context, scale,
        {.queries = length.pace.queries, .made = length.expected, .draft = &length.draft}, own);
  }
}

DraftLengths::Choice& DraftLengths::chosen(std::vector<Choices>& choices, const Decodes& decodes,
                                           std::int64_t place) {
  const auto in = [](auto& list, std::int64_t index) -> auto& {
    if (std::size_t(index) >= list.size()) list.resize(std::size_t(index) + 1);
    return list[std::size_t(index)];
  };
  return in(in(in(choices, decodes.batches), decodes.sequences), place);
}

Decodes DraftLengths::middle(const Decodes& decodes, std::int64_t place) const {
  const double context = (Contexts::point(place) + Contexts::point(place + 1)) / 2;
  const std::int64_t sequences = decodes.sequences;
  return {.sequences = sequences,
          .context = context,
          .window = window_ > 0 ? std::min(context, double(sequences * window_)) : context,
          .longest = context / double(sequences),
          .batches = decodes.batches};
}

// In a pipeline all of its batches pass before it comes round.
double DraftLengths::round_seconds(int length, const Decodes& decodes) {
  const auto [seconds, proposing] = table(length).seconds_among_alike(decodes);
  if (stages_ == 1) return seconds;
  const double apart = stage_seconds(at(length).draft.place, stages_, seconds, proposing);
  return std::max(seconds, double(decodes.batches) * apart);
}

double DraftLengths::proposing_seconds(int length, const Decodes& decodes) {
  const bool all = at(length).draft.place == DraftPlace::last_stage;
  const double proposing = table(length).seconds_among_alike(decodes).proposing;
  return proposing * (all ? double(decodes.batches) : 1);
}

// Most tokens a second.
const DraftLengths::Choice& DraftLengths::alone(const Decodes& asked, std::int64_t place) {
  Choice& best = chosen(alone_, asked, place);
  if (best.length >= 0) return best;
  const Decodes decodes = middle(asked, place);
  const double plain = round_seconds(0, decodes);
  double least = plain;
  best.length = 0;
  for (int i = 1; i < int(lengths_.size()); ++i) {
    const double seconds = round_seconds(i, decodes) / at(i).expected;
    if (seconds >= least) continue;
    best.length = std::int8_t(i);
    least = seconds;
  }
  const double otherwise = plain - least;
  best.saving = {picoseconds(otherwise * at(best.length).expected), picoseconds(otherwise)};
  return best;
}

// A token more of a step with prompts takes as long as one of a prompt; one that holds is worth what it takes in a step
// without prompts, with proposals where they are made there, and without where they are not.
const DraftLengths::Choice& DraftLengths::beside_prompts(const Decodes& asked, std::int64_t place) {
  Choice& best = chosen(beside_, asked, place);
  if (best.length >= 0) return best;
  const int most = alone(asked, place).length;
  const Decodes decodes = middle(asked, place);
  const double all = double(asked.sequences), row = table(0).prompt_token_seconds();
  const double worth = round_seconds(most, decodes) / at(most).expected;
  double least = 0, taken = 0;
  best.length = 0;
  for (int i = 1; i <= most; ++i) {
    const double more = all * double(at(i).pace.queries - 1) * row + proposing_seconds(i, decodes);
    if (more - worth * (at(i).expected - 1) >= least) continue;
    best.length = std::int8_t(i);
    taken = more;
    least = more - worth * (at(i).expected - 1);
  }
  const double saved = round_seconds(0, decodes) * (at(best.length).expected - 1) - taken;
  best.saving = {picoseconds(saved), picoseconds(-least)};
  return best;
}

int DraftLengths::pick_beside_prompts(const Decodes& decodes, int picked) {
  const std::int64_t place = Contexts::place(decodes.context);
  return std::min(picked, int(beside_prompts(decodes, place).length));
}

const DraftLengths::Saving& DraftLengths::saving(const Decodes& decodes) {
  return alone(decodes, Contexts::place(decodes.context)).saving;
}

const DraftLengths::Saving& DraftLengths::saving_beside_prompts(const Decodes& decodes) {
  return beside_prompts(decodes, Contexts::place(decodes.context)).saving;
}

double DraftLengths::read(const BatchShape& prompts) {
  return table(int(lengths_.size()) - 1).read_draft(prompts);
}

int DraftLengths::pick(const Decodes& decodes) {
  return alone(decodes, Contexts::place(decodes.context)).length;
}

void DraftLengths::line(int length, const Decodes& decodes, DecodeLine& line) {
  table(length).decode_line(decodes, line);
  line.length = length;
  std::int64_t place = Contexts::place(decodes.context);
  double end = Contexts::point(place + 1);
  // Batches of a pipeline take single steps.
  const bool goes_on = !at(length).reads_late && stages_ == 1;
  while (goes_on && end < line.context_end && alone(decodes, place + 1).length == length) {
    ++place;
    end = Contexts::point(place + 1);
  }
  line.context_end = std::min(line.context_end, end);
}

ClockLevels::Sums DraftLengths::clock_sums() const {
  ClockLevels::Sums sums;
  for (const auto& table : tables_) sums.add(table->clock_sums());
  return sums;
}

void DraftLengths::report(Breakdown& rows, StepTable& all) {
  std::vector<KernelRow> own;
  for (const auto& table : tables_) {
    table->report_one_by_one(own);
    for (const KernelRow& row : own) rows.add(row);
    all.add_sums(*table);
  }
}

}  // namespace engine
