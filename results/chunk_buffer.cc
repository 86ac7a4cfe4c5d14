#include "results/chunk_buffer.h"

#include <algorithm>
#include <bit>

#include "engine/base/check.h"

namespace results {
namespace {

// A cache line of slack after each column: columns a power of two apart would all compete for the
// same few cache sets while a row is written across them.
constexpr std::size_t kSlack = 8;

template <class T>
void spread(std::vector<T>& table, std::size_t columns, std::size_t from, std::size_t to,
            std::size_t rows) {
  std::vector<T> wider(columns * to);
  for (std::size_t i = 0; i < columns; ++i) {
    std::copy_n(table.data() + i * from, rows, wider.data() + i * to);
  }
  table = std::move(wider);
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

RowLayout::RowLayout(const SchemaInputs& inputs) : labels(inputs.labels.size()) {
  const auto& leaves = engine::leaf_table().leaves;
  slot_of_leaf.assign(leaves.size(), -1);
  for (const int leaf : inputs.varied_leaves) {
    int& slot = slot_of_leaf.at(std::size_t(leaf));
    if (slot >= 0) continue;
    slot = int(varied.size());
    varied.push_back(leaves[std::size_t(leaf)]);
  }
}

ChunkBuffer::ChunkBuffer(const RowLayout& layout)
    : layout_(layout), last_texts_(layout.varied.size() + 1) {}

void ChunkBuffer::grow() { resize(std::max<std::size_t>(64, 2 * capacity_), kSlack); }

void ChunkBuffer::resize(std::size_t capacity, std::size_t slack) {
  const std::size_t stride = capacity + slack;
  spread(slots_, layout_.varied.size(), stride_, stride, rows_);
  spread(metrics_, kMetrics, stride_, stride, rows_);
  spread(labels_, layout_.labels, stride_, stride, rows_);
  capacity_ = capacity;
  stride_ = stride;
}

void ChunkBuffer::add(const sweep::Point& point, const engine::Outcome& outcome) {
  if (rows_ == capacity_) grow();
  engine::check(point.labels.size() == layout_.labels, "a point has a code for every label column");
  indices_.push_back(point.index);
  keys_.push_back(point.key);
  for (std::size_t i = 0; i < layout_.labels; ++i) labels_[i * stride_ + rows_] = point.labels[i];
  std::uint64_t* slot = slots_.data() + rows_;
  std::uint32_t* last_text = last_texts_.data();
  for (const engine::Leaf& leaf : layout_.varied) {
    switch (leaf.kind) {
      case engine::LeafKind::quantity:
      case engine::LeafKind::number:
        *slot = std::bit_cast<std::uint64_t>(engine::leaf_double(point.scenario, leaf));
        break;
      case engine::LeafKind::text:
        *slot = texts_.code(engine::leaf_text(point.scenario, leaf), *last_text);
        break;
      default:
        *slot = std::uint64_t(engine::leaf_integer(point.scenario, leaf));
        break;
    }
    slot += stride_;
    ++last_text;
  }
  const double* figures = metric_values(outcome.metrics);
  for (std::size_t i = 0; i < kMetrics; ++i) metrics_[i * stride_ + rows_] = figures[i];
  verdicts_.push_back(
      {.reason = outcome.reason.empty() ? kNoReason : texts_.code(outcome.reason, *last_text),
       .status = outcome.status,
       .reason_class = outcome.reason_class,
       .saturation = outcome.saturation,
       .bound = outcome.bound,
       .tier = outcome.tier,
       .extrapolated = outcome.extrapolated});
  std::get<DetailRows<engine::KernelRow>>(details_).add(outcome.kernels);
  std::get<DetailRows<engine::RequestRow>>(details_).add(outcome.requests);
  std::get<DetailRows<engine::TimelineRow>>(details_).add(outcome.timeline);
  ++rows_;
}

std::size_t ChunkBuffer::bytes_a_row() const {
  return layout_.varied.size() * sizeof(std::uint64_t) + kMetrics * sizeof(double) +
         layout_.labels * sizeof(std::int32_t) + sizeof(std::uint64_t) + sizeof(engine::Key) +
         sizeof(Verdict);
}

std::size_t ChunkBuffer::bytes() const {
  std::size_t bytes = stride_ * bytes_a_row();
  std::apply([&bytes](const auto&... details) { ((bytes += details.bytes()), ...); }, details_);
  return bytes;
}

void ChunkBuffer::trim() {
  std::apply([](auto&... details) { (details.trim(), ...); }, details_);
  if (2 * rows_ >= capacity_) return;
  resize(rows_, 0);
  indices_.shrink_to_fit();
  keys_.shrink_to_fit();
  verdicts_.shrink_to_fit();
}

ByTable<std::size_t> ChunkBuffer::row_counts() const {
  ByTable<std::size_t> counts;
  counts[Table::points] = rows_;
  counts[Table::kernels] = details<engine::KernelRow>().rows.size();
  counts[Table::requests] = details<engine::RequestRow>().rows.size();
  counts[Table::timeline] = details<engine::TimelineRow>().rows.size();
  return counts;
}

void ChunkBuffer::clear() {
  rows_ = 0;
  indices_.clear();
  keys_.clear();
  verdicts_.clear();
  std::apply([](auto&... details) { (details.clear(), ...); }, details_);
  texts_.clear();
}

}  // namespace results
