#include "engine/step/draft_table.h"

#include <algorithm>
#include <utility>

#include "engine/step/step_table.h"

namespace engine {

DraftTable::DraftTable() = default;
DraftTable::~DraftTable() = default;
DraftTable::DraftTable(DraftTable&&) noexcept = default;
DraftTable& DraftTable::operator=(DraftTable&&) noexcept = default;

void DraftTable::reset(const DraftStep& draft, double scale) {
  draft_ = &draft;
  scale_ = scale;
  seconds_ = reading_ = 0;
  rests_.clear();
  if (!draft.model) return;
  // Prompts are read in the first one, whether or not anything is proposed.
  models_.resize(std::max<std::size_t>(1, draft.rounds.size()));
  for (std::size_t i = 0; i < models_.size(); ++i) {
    if (models_[i] == nullptr) models_[i] = std::make_unique<StepTable>();
    Verification tokens;
    if (i < draft.rounds.size()) tokens.queries = draft.rounds[i].queries;
    tokens.made = double(tokens.queries);
    models_[i]->reset(*draft.model, {scale, scale, scale}, tokens);
  }
}

DraftTable::Rest& DraftTable::rest_of(std::int64_t sequences) {
  const std::size_t place = std::size_t(sequences);
  if (place >= rests_.size()) rests_.resize(place + 1);
  Rest& rest = rests_[place];
  if (rest.known) return rest;
  DraftStep without = *draft_;
  without.model.reset();
  Breakdown rows;
  rest.once = draft_time(without, {.sequences = sequences}, rows);
  rest.rows = std::move(rows).take();
  rest.seconds = rest.once.total().value * scale_;
  rest.known = true;
  return rest;
}

void DraftTable::extend(const Decodes& decodes, DecodeLine& line) {
  line.proposing = rest_of(decodes.sequences).seconds;
  if (!draft_->model) return;
  for (std::size_t i = 0; i < draft_->rounds.size(); ++i) extend_by(i, decodes, line);
}

void DraftTable::extend_by(std::size_t number, const Decodes& decodes, DecodeLine& line) {
  const DraftRound& round = draft_->rounds[number];
  // All of its steps are timed where the middle one is.
  const double later = double(round.middle(0)) * double(decodes.sequences);
  Decodes own = decodes;
  own.context += later;
  own.longest += double(round.middle(0));
  if (!draft_->has_adapters) own.adapters = 0;
  DecodeLine draft;
  models_[number]->decode_line(own, draft);
  const double times = double(round.steps);
  const double above = draft.device(own.context, own.window) + draft.added - draft.least;
  line.context_end = std::min(line.context_end, draft.context_end - later);
  line.window_end = std::min(line.window_end, draft.window_end);
  // Host or device sets the pace of its steps: the line ends where that may change. Windows grow no faster than contexts.
  const auto most = [](double slope) { return std::max(slope, 0.0); };
  const double change = above > 0 ? most(-draft.slope) + most(-draft.window_slope)
                                  : most(draft.slope) + most(draft.window_slope);
  if (change > 0) {
    const double reached = decodes.context + (above > 0 ? above : -above) / change;
    line.context_end = std::min(line.context_end, std::max(reached, decodes.context + 1));
  }
  if (number == 0) {
    line.proposal = {.batch = draft.batch,
                     .cell = draft.cell,
                     .window_cell = draft.window_cell,
                     .adapter_cell = draft.adapter_cell,
                     .adapters = own.adapters,
                     .overhang = draft.overhang,
                     .later = later};
  }
  if (above > 0) {
    line.proposing += times * (draft.fixed + draft.added + draft.slope * later);
    line.proposing_slope += times * draft.slope;
    line.proposing_window_slope += times * draft.window_slope;
  } else {
    line.proposing += times * draft.least;
  }
}

double DraftTable::count(const DecodeLine& line, double steps, double context_sum,
                         double window_sum) {
  const double seconds = steps * line.proposing + line.proposing_slope * context_sum +
                         line.proposing_window_slope * window_sum;
  seconds_ += seconds;
  Rest& rest = rests_[std::size_t(line.sequences)];
  rest.steps += steps;
  if (!draft_->model || draft_->rounds.empty()) return seconds;
  const double others =
      draft_->rounds.size() > 1 ? count_later_rounds(line, steps, context_sum, window_sum) : 0;
  const double times = double(draft_->rounds[0].steps);
  DecodeLine own;
  own.batch = line.proposal.batch;
  own.cell = line.proposal.cell;
  own.window_cell = line.proposal.window_cell;
  own.adapter_cell = line.proposal.adapter_cell;
  own.overhang = line.proposal.overhang;
  models_[0]->count_decode(own, times * steps, times * (context_sum + steps * line.proposal.later),
                           times * window_sum, seconds - steps * rest.seconds - others);
  return seconds;
}

// All steps lie on the same line, whose cells the mean of their contexts finds again.
double DraftTable::count_later_rounds(const DecodeLine& line, double steps, double context_sum,
                                      double window_sum) {
  double sum = 0;
  for (std::size_t i = 1; i < draft_->rounds.size(); ++i) {
    const DraftRound& round = draft_->rounds[i];
    const double sequences = double(line.sequences), times = double(round.steps);
    const double context = context_sum / steps + double(round.middle(0)) * sequences;
    const double window = window_sum / steps;
    DecodeLine own;
    models_[i]->decode_line({.sequences = line.sequences,
                             .context = context,
                             .window = window,
                             .longest = context / sequences + line.proposal.overhang,
                             .adapters = line.proposal.adapters},
                            own);
    const double seconds = times * steps * own.step(context, window);
    models_[i]->count_decode(own, times * steps, times * steps * context, times * window_sum,
                             seconds);
    sum += seconds;
  }
  return sum;
}

double DraftTable::run_decodes(const Decodes& decodes) {
  DecodeLine line;
  line.sequences = decodes.sequences;
  line.context_end = line.window_end = decodes.context;  // not looked at
  extend(decodes, line);
  return count(line, 1, decodes.context, decodes.window);
}

double DraftTable::read(const BatchShape& prompts) {
  const double seconds = models_[0]->run_mixed(prompts);
  reading_ += seconds;
  return seconds;
}

double DraftTable::run(const BatchShape& batch) {
  double seconds = 0;
  if (draft_->model && draft_->reads_prompts && batch.prefill_tokens > 0) {
    BatchShape prompts = batch;
    prompts.decode_sequences = 0;
    prompts.sampled = prompts.adapters = 0;
    seconds += read(prompts);
  }
  if (batch.decode_sequences > 0) {
    seconds += run_decodes({.sequences = batch.decode_sequences,
                            .context = batch.decode_kv_tokens,
                            .window = batch.decode_window_kv_tokens,
                            .longest = batch.decode_longest,
                            .adapters = std::min(batch.adapters, batch.decode_sequences)});
  }
  return seconds;
}

void DraftTable::report(Breakdown& rows, Savings& saved) {
  if (draft_->model) {
    std::vector<KernelRow> own;
    for (const auto& model : models_) {
      model->report(own);
      for (KernelRow& row : own) {
        row.role = DeploymentRole::draft;
        rows.add(row);
      }
      saved.add(model->saved());
    }
  }
  for (const Rest& rest : rests_) {
    if (rest.steps <= 0) continue;
    for (const KernelRow& row : rest.rows) rows.add(row, rest.steps);
    saved.add(rest.once.saved, rest.steps);
  }
}

}  // namespace engine
