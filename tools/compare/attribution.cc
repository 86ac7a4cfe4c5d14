#include "tools/compare/attribution.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

namespace tools {
namespace {

// The time of a point that its kernels explain, by task.
constexpr const char* kTimes[] = {"step_time_s", "iteration_time_s", "e2e_s"};
constexpr std::string_view kQueueColumn = "queue_s";

constexpr std::array<std::string_view, 7> kCommunication = {
    "all_reduce", "all_gather",      "reduce_scatter", "all_to_all",
    "send_recv",  "expert_dispatch", "expert_combine"};
constexpr std::array<std::string_view, 2> kHost = {"host", "gap"};

// The kernels of one run, point by point, as seconds by family.
class KernelTimes {
 public:
  explicit KernelTimes(const RunRows& run)
      : folder_(run.runs().front().folder.string()), index_(run.numbers("index")) {
    order_.resize(index_.size());
    for (std::uint32_t row = 0; row < order_.size(); ++row) order_[row] = row;
    std::ranges::sort(order_, {}, [this](std::uint32_t row) { return index_[row]; });
  }

  // visit(row of the points table, seconds by family); a family is known by its place in `families`.
  template <class Visit>
  void each_point(std::vector<std::string>& families, Visit visit) const {
    for (const auto& path : results::table_files(folder_, "kernels")) {
      const results::ParquetReader file(path);
      const std::vector<std::int64_t> index = file.integers("index");
      const std::vector<double> seconds = file.numbers("seconds");
      const results::CodedTexts family = file.coded_texts("family");
      std::vector<std::size_t> places;
      places.reserve(family.names.size());
      for (const std::string& name : family.names) places.push_back(place_of(name, families));
      std::vector<double> sums(families.size());
      for (std::size_t i = 0; i < index.size(); ++i) {
        if (family.codes[i] != results::CodedTexts::kNone) {
          sums[places[family.codes[i]]] += seconds[i];
        }
        if (i + 1 < index.size() && index[i + 1] == index[i]) continue;
        if (const auto row = row_of(double(index[i]))) visit(*row, sums);
        std::ranges::fill(sums, 0);
      }
    }
  }

 private:
  static std::size_t place_of(const std::string& name, std::vector<std::string>& families) {
    const auto found = std::ranges::find(families, name);
    if (found != families.end()) return std::size_t(found - families.begin());
    families.push_back(name);
    return families.size() - 1;
  }

  std::optional<std::uint32_t> row_of(double index) const {
    const auto found = std::ranges::lower_bound(order_, index, {},
                                                [this](std::uint32_t row) { return index_[row]; });
    if (found == order_.end() || index_[*found] != index) return std::nullopt;
    return *found;
  }

  std::string folder_;
  std::vector<double> index_;
  std::vector<std::uint32_t> order_;
};

struct Times {
  std::vector<double> before, after;  // by pair; NaN: none
};

Times times_of(const RunPair& pair, std::string_view column) {
  const std::vector<double> olds = pair.old_run.numbers(column);
  const std::vector<double> news = pair.new_run.numbers(column);
  Times times;
  for (const RowPair& rows : pair.pairs) {
    times.before.push_back(olds[rows.old_row]);
    times.after.push_back(news[rows.new_row]);
  }
  return times;
}

// What is being taken apart.
class Account {
 public:
  Account(const RunPair& pair, const std::vector<std::uint8_t>& ok, std::string column,
          double tolerance)
      : pair_(pair),
        column_(std::move(column)),
        total_(times_of(pair, column_)),
        queue_(times_of(pair, column_ == kTimes[2] ? kQueueColumn : "")) {
    constexpr std::uint32_t no_slot = Coded::kNone;
    old_slots_.assign(pair.old_run.rows(), no_slot);
    new_slots_.assign(pair.new_run.rows(), no_slot);
    for (std::uint32_t i = 0; i < pair.pairs.size(); ++i) {
      const double change = relative_change(total_.before[i], total_.after[i]);
      if (ok[i] == 0 || !std::isfinite(change) || std::abs(change) <= tolerance) continue;
      old_slots_[pair.pairs[i].old_row] = new_slots_[pair.pairs[i].new_row] =
          std::uint32_t(drifted_.size());
      drifted_.push_back(i);
    }
    known_.assign(drifted_.size(), 0);
  }

  bool empty() const { return drifted_.empty(); }

  void read_kernels() {
    add_run(pair_.old_run, old_slots_, total_.before, queue_.before, -1);
    add_run(pair_.new_run, new_slots_, total_.after, queue_.after, 1);
  }

  Attribution finish() const {
    Attribution result{.column = column_};
    std::vector<double> queue(drifted_.size()), rest(drifted_.size());
    std::vector<double> total(drifted_.size());
    for (std::size_t slot = 0; slot < drifted_.size(); ++slot) {
      const std::uint32_t i = drifted_[slot];
      total[slot] = total_.after[i] - total_.before[i];
      if (!std::isnan(queue_.before[i]) && !std::isnan(queue_.after[i])) {
        queue[slot] = queue_.after[i] - queue_.before[i];
      }
      rest[slot] = total[slot] - queue[slot];
      for (const auto& part : changes_) rest[slot] -= part[slot];
    }
    for (std::size_t f = 0; f < families_.size(); ++f) {
      add_part(families_[f], kind_of_family(families_[f]), changes_[f], result);
    }
    add_part("queue", "waiting", queue, result);
    add_part("rest", "waiting", rest, result);
    std::ranges::stable_sort(result.parts, std::greater{},
                             [](const TimePart& part) { return std::abs(part.mean); });
    result.mean = summed("", "", total).mean;
    result.points = std::size_t(std::ranges::count(known_, kInBoth));
    return result;
  }

 private:
  static constexpr std::uint8_t kInBoth = 2;

  void add_run(const RunRows& run, const std::vector<std::uint32_t>& slots,
               const std::vector<double>& total, const std::vector<double>& queue, double sign) {
    KernelTimes(run).each_point(families_, [&](std::uint32_t row, const auto& seconds) {
      const std::uint32_t slot = slots[row];
      if (slot == Coded::kNone) return;
      ++known_[slot];
      const std::uint32_t i = drifted_[slot];
      double sum = 0;
      for (const double part : seconds) sum += part;
      const double scale = kernel_scale(sum, total[i], queue[i]);
      make_room();
      for (std::size_t f = 0; f < seconds.size(); ++f)
        changes_[f][slot] += sign * scale * seconds[f];
    });
    make_room();
  }

  void make_room() {
    while (changes_.size() < families_.size()) changes_.emplace_back(drifted_.size());
  }

  TimePart summed(std::string name, std::string_view kind,
                  const std::vector<double>& changes) const {
    TimePart part{.name = std::move(name), .kind = kind};
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t slot = 0; slot < changes.size(); ++slot) {
      if (known_[slot] != kInBoth) continue;
      const double share = changes[slot] / total_.before[drifted_[slot]];
      sum += share;
      ++count;
      if (std::abs(share) > std::abs(part.worst)) {
        part.worst = share;
        part.worst_pair = drifted_[slot];
      }
    }
    part.mean = count == 0 ? 0 : sum / double(count);
    return part;
  }

  void add_part(const std::string& name, std::string_view kind, const std::vector<double>& changes,
                Attribution& result) const {
    // Sums of floating-point numbers leave crumbs that explain nothing.
    constexpr double kCrumb = 1e-12;
    TimePart part = summed(name, kind, changes);
    if (std::abs(part.worst) > kCrumb) result.parts.push_back(std::move(part));
  }

  const RunPair& pair_;
  std::string column_;
  Times total_, queue_;
  std::vector<std::uint32_t> drifted_;                // pairs whose time did
  std::vector<std::uint32_t> old_slots_, new_slots_;  // place in drifted_, by row
  std::vector<std::uint8_t> known_;                   // runs that have its kernels
  std::vector<std::string> families_;
  std::vector<std::vector<double>> changes_;  // seconds, by family and place in drifted_
};

bool has_kernels(const RunRows& run) {
  return !results::table_files(run.runs().front().folder, "kernels").empty();
}

}  // namespace

std::string_view kind_of_family(std::string_view family) {
  if (std::ranges::find(kCommunication, family) != kCommunication.end()) return "communication";
  if (std::ranges::find(kHost, family) != kHost.end()) return "host";
  return "kernel";
}

double kernel_scale(double kernels, double total, double queue) {
  return std::isnan(queue) || kernels == 0 ? 1 : (total - queue) / kernels;
}

Attribution attribution(const RunPair& pair, const std::vector<std::uint8_t>& both_ok,
                        const Tolerances& tolerances) {
  if (!has_kernels(pair.old_run) || !has_kernels(pair.new_run)) return {};
  for (const char* column : kTimes) {
    Account account(pair, both_ok, column, tolerances.for_column(column));
    if (account.empty()) continue;
    account.read_kernels();
    return account.finish();
  }
  return {};
}

}  // namespace tools
