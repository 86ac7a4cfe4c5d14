#include "engine/step/draft_lengths.h"

#include <algorithm>

#include "engine/step/octave_grid.h"
#include "engine/step/step_table.h"

namespace engine {
namespace {

using Contexts = OctaveGrid<4>;

}  // namespace

DraftLengths::DraftLengths() = default;
DraftLengths::~DraftLengths() = default;
DraftLengths::DraftLengths(DraftLengths&&) noexcept = default;
DraftLengths& DraftLengths::operator=(DraftLengths&&) noexcept = default;

void DraftLengths::reset(const StepContext& context, const ByPhase& scale,
                         std::span<const DraftLength> lengths) {
  lengths_ = lengths;
  choices_.clear();
  tables_.resize(lengths.size());
  window_ = context.shard.model->window;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (tables_[i] == nullptr) tables_[i] = std::make_unique<StepTable>();
    const DraftLength& length = lengths[i];
    if (length.draft.model) window_ = std::max(window_, length.draft.model->shard.model->window);
    tables_[i]->reset(
        context, scale,
        {.queries = length.pace.queries, .made = length.expected, .draft = &length.draft});
  }
}

int DraftLengths::choice(std::int64_t sequences, std::int64_t place) {
  if (std::size_t(sequences) >= choices_.size()) choices_.resize(std::size_t(sequences) + 1);
  std::vector<std::int8_t>& known = choices_[std::size_t(sequences)];
  if (std::size_t(place) >= known.size()) known.resize(std::size_t(place) + 1, -1);
  if (known[std::size_t(place)] >= 0) return known[std::size_t(place)];
  const double context = (Contexts::point(place) + Contexts::point(place + 1)) / 2;
  const double each = context / double(sequences);
  const double window = window_ > 0 ? std::min(context, double(sequences * window_)) : context;
  int best = 0;
  double most = 0;
  for (int i = 0; i < int(lengths_.size()); ++i) {
    DecodeLine line;
    table(i).decode_line(
        {.sequences = sequences, .context = context, .window = window, .longest = each}, line);
    const double rate = at(i).expected / line.step(context, window);
    if (rate <= most) continue;
    best = i;
    most = rate;
  }
  known[std::size_t(place)] = std::int8_t(best);
  return best;
}

int DraftLengths::pick(const Decodes& decodes) {
  return choice(decodes.sequences, Contexts::place(decodes.context));
}

void DraftLengths::line(int length, const Decodes& decodes, DecodeLine& line) {
  table(length).decode_line(decodes, line);
  line.length = length;
  std::int64_t place = Contexts::place(decodes.context);
  double end = Contexts::point(place + 1);
  while (end < line.context_end && choice(decodes.sequences, place + 1) == length) {
    ++place;
    end = Contexts::point(place + 1);
  }
  line.context_end = std::min(line.context_end, end);
}

void DraftLengths::report(Breakdown& rows, StepTable& all) {
  std::vector<KernelRow> own;
  for (const auto& table : tables_) {
    table->report(own);
    for (const KernelRow& row : own) rows.add(row);
    all.add_sums(*table);
  }
}

}  // namespace engine
