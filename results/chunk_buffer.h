// The rows of one chunk, column by column, in memory that is used again by later chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/leaves/leaves.h"
#include "engine/outcome.h"
#include "results/column_block.h"
#include "results/detail_rows.h"
#include "results/schema.h"
#include "results/table.h"
#include "sweep/space/row_sink.h"

namespace results {

// Texts seen so far, each with a number.
class TextPool {
 public:
  // `last` is the number this column got last: the same text again costs one comparison.
  std::uint32_t code(const std::string& text, std::uint32_t& last);
  const std::vector<std::string>& texts() const { return texts_; }
  void clear();

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::uint32_t> codes_;
};

// A constant of the run: what needs a value per row. All other leaves are those of the base, and all other
// figures are null.
struct RowLayout {
  explicit RowLayout(const SchemaInputs& inputs);

  std::vector<engine::Leaf> varied;  // in the order of slots
  std::vector<int> slot_of_leaf;     // by leaf; -1: constant
  std::vector<std::size_t> figures;  // by their number in metric_table()
  std::vector<int> slot_of_figure;   // by that number; -1: null
  std::size_t labels = 0;
  ByTable<std::vector<Column>> details;                // of the rows of the tables beside points
  bool keeps_details = true;                           // false: only points are asked for
  std::shared_ptr<const engine::Resources> resources;  // of SchemaInputs
};

class ChunkBuffer final : public sweep::ChunkRows {
 public:
  explicit ChunkBuffer(const RowLayout& layout);

  void add(const sweep::Point& point, const engine::Outcome& outcome) override;
  void clear();
  // Memory in use, with what is reserved for more rows.
  std::size_t bytes() const;
  // Gives back what is reserved where that is more than the rows themselves take: thousands of chunks
  // of a slow point each may wait for their part to fill.
  void trim();

  std::size_t rows() const { return rows_; }
  const std::uint64_t* indices() const { return indices_.data(); }
  const engine::Key* keys() const { return keys_.data(); }
  // A leaf that varies: the bits of a double or integer, the code of an enumeration, the number of a
  // text in texts(); kNullSlot where its role is not there.
  static constexpr std::uint64_t kNullSlot = UINT64_MAX;
  const std::uint64_t* slot(std::size_t number) const { return slots_.column(number); }
  const double* figure(std::size_t number) const { return figures_.column(number); }
  const std::int32_t* label(std::size_t number) const { return labels_.column(number); }
  // Status, bound and tier as codes; a reason and a calibration are numbers in texts(), absent ones kNoText.
  static constexpr std::uint32_t kNoText = UINT32_MAX;
  struct Verdict {
    std::uint32_t reason = kNoText;
    std::uint32_t calibration = kNoText;
    engine::Status status = engine::Status::ok;
    engine::ReasonClass reason_class = engine::ReasonClass::none;
    engine::Saturation saturation = engine::Saturation::none;
    engine::Bound bound = engine::Bound::compute;
    engine::Tier tier = engine::Tier::roofline;
    bool extrapolated = false;
    double extrapolated_share = 0;  // NaN: there are no kernels
    double power_limited_share = 0;
  };
  const Verdict* verdicts() const { return verdicts_.data(); }
  const DetailRows& details(Table table) const { return details_[std::size_t(table) - 1]; }
  ByTable<std::size_t> row_counts() const;
  const std::vector<std::string>& texts() const { return texts_.texts(); }

 private:
  void resize(std::size_t capacity, std::size_t slack);
  void grow();
  std::uint64_t slot_value(const engine::Leaf& leaf, const engine::Scenario& scenario,
                           std::uint32_t& last_text);

  const RowLayout& layout_;
  std::size_t rows_ = 0;
  std::size_t capacity_ = 0;
  ColumnBlock<std::uint64_t> slots_;
  ColumnBlock<double> figures_;
  ColumnBlock<std::int32_t> labels_;
  std::vector<std::uint64_t> indices_;
  std::vector<engine::Key> keys_;
  std::vector<Verdict> verdicts_;
  std::vector<DetailRows> details_;  // by table, without points
  TextPool texts_;
  std::vector<std::uint32_t> last_texts_;  // by slot, of the reason, and of the calibration
};

}  // namespace results
