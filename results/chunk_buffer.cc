#include "results/chunk_buffer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/base/check.h"
#include "engine/chosen_calibration.h"
#include "results/kernel_format.h"

namespace results {
namespace {

// Of the time of all kernels. Rounded, because kernels of a row that is taken over from another run were written and read again: their sums
// may differ in the last digit, and the row must not.
template <class Part>
double share_of_time(const std::vector<engine::KernelRow>& kernels, const Part& part) {
  engine::Seconds all, some;
  for (const engine::KernelRow& kernel : kernels) {
    all += kernel.work.exposed();
    some += part(kernel);
  }
  return all.value > 0 ? std::round(some / all * 1e4) / 1e4 : NAN;
}

engine::Seconds time_extrapolated(const engine::KernelRow& kernel) {
  return kernel.extrapolated ? kernel.work.exposed() : engine::Seconds{0};
}

// What of a kernel is hidden is limited in vain.
engine::Seconds time_limited(const engine::KernelRow& kernel) {
  return std::min(kernel.work.limited, kernel.work.exposed());
}

// Of the main deployment; null where nothing is looked up.
const engine::Calibration* calibration_of(const engine::Scenario& scenario,
                                          const engine::Resources* resources) {
  if (resources == nullptr) return nullptr;
  return engine::chosen_calibration(scenario.calibration, scenario, resources->calibrations)
      .calibration;
}

}  // namespace

std::uint32_t TextPool::code(const std::string& text, std::uint32_t& last) {
  if (last < texts_.size() && texts_[last] == text) return last;
  const auto [place, added] = codes_.try_emplace(text, std::uint32_t(texts_.size()));
  if (added) texts_.push_back(text);
  return last = place->second;
}

void TextPool::clear() {
  texts_.clear();
  codes_.clear();
}

RowLayout::RowLayout(const SchemaInputs& inputs)
    : labels(inputs.labels.size()), resources(inputs.resources) {
  const auto& leaves = engine::leaf_table().leaves;
  slot_of_leaf.assign(leaves.size(), -1);
  for (const int leaf : inputs.varied_leaves) {
    int& slot = slot_of_leaf.at(std::size_t(leaf));
    if (slot >= 0) continue;
    slot = int(varied.size());
    varied.push_back(leaves[std::size_t(leaf)]);
  }
  figures = figures_of(inputs);
  slot_of_figure.assign(kMetrics, -1);
  for (std::size_t i = 0; i < figures.size(); ++i) slot_of_figure[figures[i]] = int(i);
  each_detail([this]<class Row>(Table table, const engine::DetailTable<Row>&) {
    details[table] = RowFormat<Row>::columns();
  });
}

ChunkBuffer::ChunkBuffer(const RowLayout& layout)
    : layout_(layout),
      slots_(layout.varied.size()),
      figures_(layout.figures.size()),
      labels_(layout.labels),
      last_texts_(layout.varied.size() + 2) {
  each_detail([this](Table table, const auto&) { details_.emplace_back(layout_.details[table]); });
}

void ChunkBuffer::grow() { resize(std::max<std::size_t>(64, 2 * capacity_), kColumnSlack); }

void ChunkBuffer::resize(std::size_t capacity, std::size_t slack) {
  slots_.resize(capacity + slack, rows_);
  figures_.resize(capacity + slack, rows_);
  labels_.resize(capacity + slack, rows_);
  capacity_ = capacity;
}

std::uint64_t ChunkBuffer::slot_value(const engine::Leaf& leaf, const engine::Scenario& scenario,
                                      std::uint32_t& last_text) {
  if (leaf.presence >= 0 && !engine::is_present(scenario, leaf)) return kNullSlot;
  switch (leaf.kind) {
    case engine::LeafKind::quantity:
    case engine::LeafKind::number:
      return std::bit_cast<std::uint64_t>(engine::leaf_double(scenario, leaf));
    case engine::LeafKind::text:
      return texts_.code(engine::leaf_text(scenario, leaf), last_text);
    default:
      return std::uint64_t(engine::leaf_integer(scenario, leaf));
  }
}

void ChunkBuffer::add(const sweep::Point& point, const engine::Outcome& outcome) {
  if (rows_ == capacity_) grow();
  engine::check(point.labels.size() == layout_.labels, "a point has a code for every label column");
  indices_.push_back(point.index);
  keys_.push_back(point.key);
  for (std::size_t i = 0; i < layout_.labels; ++i) labels_.column(i)[rows_] = point.labels[i];
  std::uint64_t* slot = slots_.column(0) + rows_;
  std::uint32_t* last_text = last_texts_.data();
  for (const engine::Leaf& leaf : layout_.varied) {
    *slot = slot_value(leaf, point.scenario, *last_text++);
    slot += slots_.stride();
  }
  const double* values = metric_values(outcome.metrics);
  double* figure = figures_.column(0) + rows_;
  for (const std::size_t number : layout_.figures) {
    *figure = values[number];
    figure += figures_.stride();
  }
  // What was measured has no kernels, nor has a point that does not work.
  const engine::Calibration* calibration =
      outcome.kernels.empty() ? nullptr : calibration_of(point.scenario, layout_.resources.get());
  verdicts_.push_back(
      {.reason = outcome.reason.empty() ? kNoText : texts_.code(outcome.reason, last_text[0]),
       .calibration =
           calibration == nullptr ? kNoText : texts_.code(calibration->name, last_text[1]),
       .status = outcome.status,
       .reason_class = outcome.reason_class,
       .saturation = outcome.saturation,
       .bound = outcome.bound,
       .tier = outcome.tier,
       .extrapolated = outcome.extrapolated,
       .extrapolated_share = share_of_time(outcome.kernels, time_extrapolated),
       .power_limited_share = share_of_time(outcome.kernels, time_limited)});
  if (layout_.keeps_details) {
    each_detail([&](Table table, const auto& entry) {
      details_[std::size_t(table) - 1].add(rows_, outcome.*entry.rows);
    });
  }
  ++rows_;
}

std::size_t ChunkBuffer::bytes() const {
  std::size_t bytes = slots_.bytes() + figures_.bytes() + labels_.bytes();
  bytes += capacity_ * (sizeof(std::uint64_t) + sizeof(engine::Key) + sizeof(Verdict));
  for (const DetailRows& details : details_) bytes += details.bytes();
  return bytes;
}

void ChunkBuffer::trim() {
  for (DetailRows& details : details_) details.trim();
  if (2 * rows_ >= capacity_) return;
  resize(rows_, 0);
  indices_.shrink_to_fit();
  keys_.shrink_to_fit();
  verdicts_.shrink_to_fit();
}

ByTable<std::size_t> ChunkBuffer::row_counts() const {
  ByTable<std::size_t> counts;
  counts[Table::points] = rows_;
  each_detail([&](Table table, const auto&) { counts[table] = details(table).rows(); });
  return counts;
}

void ChunkBuffer::clear() {
  rows_ = 0;
  indices_.clear();
  keys_.clear();
  verdicts_.clear();
  for (DetailRows& details : details_) details.clear();
  texts_.clear();
}

}  // namespace results
