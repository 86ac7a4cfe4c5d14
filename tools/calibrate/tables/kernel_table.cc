#include "tools/calibrate/tables/kernel_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "sweep/input/mistake_list.h"
#include "sweep/language/suggest.h"
#include "tools/calibrate/tables/call_names.h"
#include "tools/calibrate/tables/table_families.h"

namespace tools {
namespace {

using engine::Family;

constexpr std::size_t kAbsent = std::size_t(-1);

std::optional<double> number_in(std::string_view cell) {
  double value = 0;
  const char* end = cell.data() + cell.size();
  const auto [stop, error] = std::from_chars(cell.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

// "power_law_1.2" is 1.2, "balanced" is 0, and so is nothing at all.
std::optional<double> skew_in(std::string_view cell) {
  constexpr std::string_view law = "power_law_";
  if (says_nothing(cell) || cell == "balanced" || cell == "uniform") return 0;
  if (cell.starts_with(law)) cell.remove_prefix(law.size());
  const auto value = number_in(cell);
  return value && *value >= 0 ? value : std::nullopt;
}

class Reader {
 public:
  Reader(results::TextTable text, Times times) : times_(times) {
    table_.text = std::move(text);
    for (std::size_t i = 0; i < kSizes; ++i) {
      sizes_[i] = column(engine::name_of(static_cast<Size>(i)));
    }
    family_ = column("family");
    dtype_ = column("dtype");
    kv_dtype_ = column("kv_dtype");
    skew_ = column("skew");
    impl_ = column("impl");
    seconds_ = column("seconds");
  }

  engine::Result<KernelTable> read() {
    const bool timed = times_ == Times::needed;
    require("family");
    if (timed) require("seconds");
    if (table_.text.rows() == 0) {
      mistake({table_.text.file, 1, 1}, "the table has no rows", "");
    }
    if (!mistakes_.empty()) return std::move(mistakes_).finish();
    table_.records.reserve(table_.text.rows());
    for (std::size_t row = 0; row < table_.text.rows(); ++row) {
      KernelRecord record{.row = std::uint32_t(row)};
      if (read_call(row, record) && (!timed || read_time(row, record))) {
        table_.records.push_back(record);
      }
    }
    if (!mistakes_.empty()) return std::move(mistakes_).finish();
    spread_gating();
    for (auto& [what, skipped] : skipped_) table_.skipped.push_back(std::move(skipped));
    return std::move(table_);
  }

 private:
  std::size_t column(std::string_view name) const {
    return table_.text.find(name).value_or(kAbsent);
  }

  std::string_view cell(std::size_t row, std::size_t column) const {
    return column == kAbsent ? std::string_view{} : table_.text.columns[column][row];
  }

  void mistake(engine::Location where, std::string what, std::string hint) {
    mistakes_.add({std::move(where), std::move(what), std::move(hint)});
  }

  void require(const std::string& name) {
    if (column(name) != kAbsent) return;
    std::vector<std::string> names;
    for (const auto& other : table_.text.columns) names.push_back(other.name());
    mistake({table_.text.file, 1, 1}, "the table has no column '" + name + "'",
            sweep::suggestion(name, names, "columns"));
  }

  void skip(std::size_t row, std::size_t column, std::string what) {
    auto& skipped = skipped_[what];
    if (skipped.rows++ == 0) {
      skipped.what = std::move(what);
      skipped.first = table_.text.where(row, column);
    }
  }

  bool read_call(std::size_t row, KernelRecord& record) {
    const std::string_view name = cell(row, family_);
    const auto family = family_named(name);
    if (!family || table_family(*family) == nullptr) {
      skip(row, family_, "family '" + std::string(name) + "'");
      return false;
    }
    KernelCall& call = record.call;
    call.family = *family;
    if (!read_format(row, dtype_, Format::bf16, call.dtype)) return false;
    const bool narrow = call.dtype == Format::fp8 || call.dtype == Format::fp8_block;
    if (!read_format(row, kv_dtype_, narrow ? Format::fp8 : Format::bf16, call.kv_dtype)) {
      return false;
    }
    if (!has_kv(*family)) call.kv_dtype = Format::bf16;
    const auto skew = skew_in(cell(row, skew_));
    if (!skew) {
      mistake(table_.text.where(row, skew_),
              "skew: '" + std::string(cell(row, skew_)) + "' is no routing law",
              "write 'balanced' or 'power_law_1.2'");
      return false;
    }
    if (*family == Family::moe) call.skew = *skew;
    read_impl(row, record);
    return read_sizes(row, call) && consistent(row, call);
  }

  bool read_format(std::size_t row, std::size_t column, Format fallback, Format& format) {
    const std::string_view name = cell(row, column);
    const auto known = says_nothing(name) ? fallback : format_named(name);
    if (!known) {
      skip(row, column, table_.text.columns[column].name() + " '" + std::string(name) + "'");
      return false;
    }
    format = *known;
    return true;
  }

  void read_impl(std::size_t row, KernelRecord& record) {
    const std::string_view name = cell(row, impl_);
    // Runs of one implementation are long: the last one is nearly always right.
    if (table_.impls.empty() || table_.impls[last_impl_] != name) {
      const auto [found, added] =
          impl_numbers_.emplace(std::string(name), std::uint32_t(table_.impls.size()));
      if (added) table_.impls.emplace_back(name);
      last_impl_ = found->second;
    }
    record.impl = last_impl_;
    describe(table_.impls[last_impl_], record.call);
  }

  // Experts that one implementation calls not gated are not gated for the others either.
  void spread_gating() {
    const auto experts = [](const KernelCall& call) {
      return std::array{call[Size::hidden], call[Size::inter], call[Size::topk],
                        call[Size::experts]};
    };
    std::set<std::array<double, 4>> plain;
    for (const KernelRecord& record : table_.records) {
      if (!record.call.gated) plain.insert(experts(record.call));
    }
    if (plain.empty()) return;
    for (KernelRecord& record : table_.records) {
      if (record.call.family == Family::moe && plain.contains(experts(record.call))) {
        record.call.gated = false;
      }
    }
  }

  bool read_sizes(std::size_t row, KernelCall& call) {
    bool good = true;
    for (const Need& need : table_family(call.family)->needs) {
      const std::size_t column = sizes_[static_cast<std::size_t>(need.size)];
      const std::string_view text = cell(row, column);
      const std::string name(engine::name_of(need.size));
      double least = need.size == Size::window ? 0 : 1;
      if (says_nothing(text)) {
        if (need.fallback < 0) {
          const std::string family(engine::name_of(call.family));
          mistake(table_.text.where(row, column == kAbsent ? family_ : column),
                  "family " + family + " needs '" + name + "'",
                  column == kAbsent ? "the table has no such column" : "the cell is empty");
          good = false;
        }
        call[need.size] = need.fallback;
        continue;
      }
      const auto value = number_in(text);
      if (!value || !(*value >= least) || !std::isfinite(*value)) {
        mistake(table_.text.where(row, column), name + ": '" + std::string(text) + "' is no size",
                least > 0 ? "write a number of at least 1" : "write a number of at least 0");
        good = false;
        continue;
      }
      call[need.size] = *value;
    }
    return good;
  }

  bool consistent(std::size_t row, KernelCall& call) {
    const bool prefill = call.family == Family::attn_prefill || call.family == Family::mla_prefill;
    if (prefill && call[Size::context_len] == 0) call[Size::context_len] = call[Size::query_len];
    if (has_kv(call.family) && call[Size::context_len] < call[Size::query_len]) {
      const auto column = sizes_[static_cast<std::size_t>(Size::context_len)];
      mistake(table_.text.where(row, column), "context_len is less than query_len",
              "context_len counts the query tokens too");
      return false;
    }
    if (call[Size::nodes] > 1) {
      const double per_node = call[Size::ranks] / call[Size::nodes];
      if (per_node < 1 || per_node != std::floor(per_node)) {
        mistake(table_.text.where(row, sizes_[static_cast<std::size_t>(Size::nodes)]),
                "ranks do not lie evenly on the nodes", "ranks counts those of all nodes");
        return false;
      }
    }
    return true;
  }

  bool read_time(std::size_t row, KernelRecord& record) {
    const auto value = number_in(cell(row, seconds_));
    if (!value || !(*value > 0) || !std::isfinite(*value)) {
      mistake(table_.text.where(row, seconds_),
              "seconds: '" + std::string(cell(row, seconds_)) + "' is no time",
              "a measured time is a positive number; remove the row if it failed");
      return false;
    }
    record.seconds = *value;
    return true;
  }

  Times times_;
  KernelTable table_;
  std::array<std::size_t, kSizes> sizes_{};
  std::size_t family_ = kAbsent, dtype_ = kAbsent, kv_dtype_ = kAbsent, skew_ = kAbsent,
              impl_ = kAbsent, seconds_ = kAbsent;
  std::map<std::string, std::uint32_t> impl_numbers_;
  std::uint32_t last_impl_ = 0;
  std::map<std::string, SkippedRows> skipped_;
  sweep::MistakeList mistakes_;
};

}  // namespace

engine::Result<KernelTable> kernel_table_of(results::TextTable text, Times times) {
  return Reader(std::move(text), times).read();
}

engine::Result<KernelTable> read_kernel_table(const std::filesystem::path& file, Times times) {
  auto text = results::read_table(file);
  if (!text) return text.mistakes();
  return kernel_table_of(std::move(text).value(), times);
}

}  // namespace tools
