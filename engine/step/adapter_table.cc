#include "engine/step/adapter_table.h"

#include <algorithm>
#include <tuple>

#include "engine/step/octave_grid.h"

namespace engine {
namespace {

// Steps with prompts have any number of tokens: those within a sixteenth of one another are timed as one.
std::int64_t nearest_count(std::int64_t tokens) {
  using CountGrid = OctaveGrid<3>;
  const std::int64_t place = CountGrid::place(double(tokens));
  const double low = CountGrid::point(place), high = CountGrid::point(place + 1);
  return std::int64_t(double(tokens) - low < high - double(tokens) ? low : high);
}

}  // namespace

void AdapterTable::reset(const StepContext& context) {
  context_ = &context;
  for (Cell& cell : cells_) cell.steps.fill(0);
}

void AdapterTable::forget(const StepContext& context) {
  context_ = &context;
  index_.clear();
  cells_.clear();
  rows_.clear();
}

std::int32_t AdapterTable::cell_at(std::int64_t asked, std::int64_t adapters) {
  const std::int64_t tokens = nearest_count(asked);
  const std::uint64_t place = std::uint64_t(tokens) << 32 | std::uint64_t(adapters);
  const auto [found, added] = index_.try_emplace(place, std::int32_t(cells_.size()));
  if (!added) return found->second;
  BatchShape batch;
  batch.prefill_tokens = tokens;
  batch.adapters = adapters;
  OpList all, ops;
  token_ops(context_->shard, batch, all);
  for (const PlannedOp& op : all) {
    if (op.name == OpName::adapter) ops.add(op);
  }
  Cell cell{.tokens = tokens, .adapters = adapters, .first_row = std::uint32_t(rows_.size())};
  cell.sums = sums_of(device_time(ops, *context_, Phase::decode, &rows_));
  cell.last_row = std::uint32_t(rows_.size());
  cells_.push_back(cell);
  return found->second;
}

std::vector<const AdapterTable::Cell*> AdapterTable::ordered() const {
  std::vector<const Cell*> cells;
  for (const Cell& cell : cells_) cells.push_back(&cell);
  std::ranges::sort(cells, {},
                    [](const Cell* cell) { return std::tuple(cell->tokens, cell->adapters); });
  return cells;
}

void AdapterTable::report(Phase phase, Breakdown& rows) const {
  for (const Cell* cell : ordered()) {
    const double steps = cell->steps[std::size_t(phase)];
    if (steps <= 0) continue;
    for (std::uint32_t i = cell->first_row; i < cell->last_row; ++i) {
      rows.add(rows_[i], phase, steps);
    }
  }
}

void AdapterTable::save(Phase phase, Savings& saved) const {
  for (const Cell* cell : ordered()) saved.add(cell->sums.saved, cell->steps[std::size_t(phase)]);
}

}  // namespace engine
