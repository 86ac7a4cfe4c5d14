#include <array>
#include <bit>
#include <string_view>

#include "engine/leaves.h"
#include "engine/outcome.h"
#include "results/page_encoding.h"
#include "results/part_encoder.h"
#include "results/work_columns.h"

namespace results {
namespace {

// Every column at once: the rows are read from memory a single time.
struct KernelColumns {
  explicit KernelColumns(const PartRows& part) {
    const std::size_t rows = part.rows[Table::kernels];
    for (auto* codes : {&phase, &op, &family, &algorithm, &bound, &tier}) codes->resize(rows);
    for (auto& numbers : work) numbers.resize(rows);
    extrapolated.resize(rows);
    for (const ChunkBuffer* chunk : part.chunks) add(*chunk);
  }

  void add(const ChunkBuffer& chunk) {
    index.insert(index.end(), chunk.indices(), chunk.indices() + chunk.rows());
    key.insert(key.end(), chunk.keys(), chunk.keys() + chunk.rows());
    const auto& kernels = chunk.details<engine::KernelRow>();
    count.insert(count.end(), kernels.counts.begin(), kernels.counts.end());
    for (const engine::KernelRow& row : kernels.rows) {
      phase[at] = std::int8_t(row.phase);
      op[at] = std::int8_t(row.op);
      family[at] = std::int8_t(row.family);
      algorithm[at] = std::int8_t(row.algorithm);
      auto* numbers = work.data();
      visit_written(row.work,
                    [&](double value) { (*numbers++)[at] = std::bit_cast<std::uint64_t>(value); });
      bound[at] = std::int8_t(row.bound);
      tier[at] = std::int8_t(row.tier);
      extrapolated[at] = std::uint8_t(row.extrapolated);
      ++at;
    }
  }

  std::size_t at = 0;
  // By point.
  std::vector<std::uint64_t> index;
  std::vector<engine::Key> key;
  std::vector<std::uint32_t> count;
  // By kernel.
  std::vector<std::int8_t> phase, op, family, algorithm, bound, tier;
  std::array<std::vector<std::uint64_t>, kWorkColumns> work;
  std::vector<std::uint8_t> extrapolated;
};

template <class E>
ColumnPages names(const Column& column, const std::vector<std::int8_t>& codes) {
  constexpr auto all = enum_names(E{});
  return text_pages(column, codes, all);
}

}  // namespace

std::vector<ColumnPages> PartEncoder::kernel_pages(const PartRows& part) const {
  const KernelColumns rows(part);
  const std::vector<Column>& columns = formats_[Table::kernels].columns();
  std::vector<ColumnPages> pages;
  const auto next = [&]() -> const Column& { return columns[pages.size()]; };
  pages.push_back(repeated_numbers(rows.index, rows.count));
  pages.push_back(repeated_keys(rows.key, rows.count));
  pages.push_back(names<engine::Phase>(next(), rows.phase));
  pages.push_back(names<engine::OpName>(next(), rows.op));
  pages.push_back(names<engine::Family>(next(), rows.family));
  pages.push_back(names<engine::Algorithm>(next(), rows.algorithm));
  for (const auto& numbers : rows.work) pages.push_back(number_pages(next(), numbers));
  pages.push_back(names<engine::Bound>(next(), rows.bound));
  pages.push_back(names<engine::Tier>(next(), rows.tier));
  pages.push_back(boolean_pages(rows.extrapolated));
  return pages;
}

}  // namespace results
