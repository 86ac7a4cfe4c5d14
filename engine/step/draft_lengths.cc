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
  alone_.clear();
  beside_.clear();
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

std::int8_t& DraftLengths::chosen(Choices& choices, std::int64_t sequences, std::int64_t place) {
  if (std::size_t(sequences) >= choices.size()) choices.resize(std::size_t(sequences) + 1);
  std::vector<std::int8_t>& known = choices[std::size_t(sequences)];
  if (std::size_t(place) >= known.size()) known.resize(std::size_t(place) + 1, -1);
  return known[std::size_t(place)];
}

Decodes DraftLengths::middle(std::int64_t sequences, std::int64_t place) const {
  const double context = (Contexts::point(place) + Contexts::point(place + 1)) / 2;
  return {.sequences = sequences,
          .context = context,
          .window = window_ > 0 ? std::min(context, double(sequences * window_)) : context,
          .longest = context / double(sequences)};
}

// Most tokens a second, where the draft's reading of prompts counts with each token that it is used for.
int DraftLengths::choice(std::int64_t sequences, std::int64_t place) {
  std::int8_t& best = chosen(alone_, sequences, place);
  if (best >= 0) return best;
  const Decodes decodes = middle(sequences, place);
  double most = 0;
  for (int i = 0; i < int(lengths_.size()); ++i) {
    DecodeLine line;
    table(i).decode_line(decodes, line);
    const double tokens = double(sequences) * at(i).expected;
    const double seconds = line.step(decodes.context, decodes.window) + tokens * at(i).reading;
    if (tokens / seconds <= most) continue;
    best = std::int8_t(i);
    most = tokens / seconds;
  }
  return best;
}

// A token more of a step with prompts takes as long as one of a prompt; one that holds is worth what it takes in a step
// without prompts.
int DraftLengths::beside_prompts(std::int64_t sequences, std::int64_t place) {
  std::int8_t& best = chosen(beside_, sequences, place);
  if (best >= 0) return best;
  const int alone = choice(sequences, place);
  const Decodes decodes = middle(sequences, place);
  const double all = double(sequences), row = table(0).prompt_token_seconds();
  DecodeLine line;
  table(alone).decode_line(decodes, line);
  const double worth = line.step(decodes.context, decodes.window) / at(alone).expected;
  double least = 0;
  best = 0;
  for (int i = 1; i <= alone; ++i) {
    table(i).decode_line(decodes, line);
    const double proposing = line.after_proposals(0, decodes.context, decodes.window) - line.least;
    const double more =
        all * double(at(i).pace.queries - 1) * row + proposing - worth * (at(i).expected - 1);
    if (more >= least) continue;
    best = std::int8_t(i);
    least = more;
  }
  return best;
}

int DraftLengths::pick_beside_prompts(const Decodes& decodes, int picked) {
  return std::min(picked, beside_prompts(decodes.sequences, Contexts::place(decodes.context)));
}

double DraftLengths::read(const BatchShape& prompts) {
  return table(int(lengths_.size()) - 1).read_draft(prompts);
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
