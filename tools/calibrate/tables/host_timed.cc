#include "tools/calibrate/tables/host_timed.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tools/calibrate/tables/predict.h"
#include "tools/calibrate/tables/quantile.h"

namespace tools {
namespace {

// Short calls of a kernel take at most `kSame` times what the shortest twentieth of its rows does.
constexpr double kSame = 1.5;
constexpr double kShort = 0.05;
constexpr double kWork = 10;  // a roofline is a launch at least, so this is also ten launches
// Kernels that quantise by themselves, or join splits with a second kernel, are some four times slower than the
// fastest where launches are all there is.
constexpr double kSlower = 4;
constexpr std::size_t kLeastRows = 20;  // fewer say nothing about a kernel

// The same sizes in any format.
KernelCall sizes_of(const KernelCall& call) {
  return {.family = call.family, .gated = call.gated, .skew = call.skew, .sizes = call.sizes};
}

// The fastest kernel for a size, and the fastest of another kind.
struct Fastest {
  KernelKind kind;
  double first = 0;
  double second = 0;  // 0: there is no other

  void add(const KernelKind& other, double seconds) {
    const auto shorter = [](double a, double b) {
      return a == 0 || b == 0 ? a + b : std::min(a, b);
    };
    if (first == 0 || (other == kind && seconds < first)) {
      kind = other;
      first = seconds;
    } else if (other != kind && seconds < first) {
      second = first;
      kind = other;
      first = seconds;
    } else if (other != kind) {
      second = shorter(second, seconds);
    }
  }
  double but(const KernelKind& own) const { return own == kind ? second : first; }
};

using RecordList = std::vector<const KernelRecord*>;

HostTimed compared(const KernelKind& kind, const RecordList& rows, const Predictor& roofline,
                   const std::map<KernelCall, Fastest>& fastest) {
  std::vector<double> times, work, slower;
  for (const KernelRecord* row : rows) times.push_back(row->seconds);
  const double most = kSame * quantile(times, kShort);
  times.clear();
  for (const KernelRecord* row : rows) {
    if (row->seconds > most) continue;
    times.push_back(row->seconds);
    work.push_back(roofline(row->call).seconds);
    const double rival = fastest.at(sizes_of(row->call)).but(kind);
    if (rival > 0) slower.push_back(row->seconds / rival);
  }
  HostTimed found{.kind = kind, .rows = rows.size(), .seconds = quantile(times, 0.5)};
  const auto [least, longest] = std::ranges::minmax(work);
  if (least > 0) found.work = longest / least;
  if (slower.size() >= kLeastRows) found.slower = quantile(slower, 0.5);
  return found;
}

}  // namespace

KernelKind kind_of(const KernelRecord& record) {
  return {record.impl, record.call.family, record.call.dtype, record.call.kv_dtype};
}

std::vector<HostTimed> host_timed(const KernelTable& table, const engine::Device& device) {
  std::map<KernelKind, RecordList> kinds;
  std::map<KernelCall, Fastest> fastest;
  for (const KernelRecord& record : table.records) {
    if (record.call[Size::ranks] > 0) continue;
    kinds[kind_of(record)].push_back(&record);
    fastest[sizes_of(record.call)].add(kind_of(record), record.seconds);
  }
  const Predictor roofline(device, nullptr);
  std::vector<HostTimed> found;
  for (const auto& [kind, rows] : kinds) {
    if (rows.size() < kLeastRows) continue;
    const HostTimed kernel = compared(kind, rows, roofline, fastest);
    if (kernel.work > kWork && kernel.slower > kSlower) found.push_back(kernel);
  }
  return found;
}

bool is_host_timed(const std::vector<HostTimed>& kernels, const KernelRecord& record) {
  return std::ranges::find(kernels, kind_of(record), &HostTimed::kind) != kernels.end();
}

std::vector<std::string> remarks_on(const std::vector<HostTimed>& kernels,
                                    const KernelTable& table) {
  std::vector<std::string> remarks;
  for (const HostTimed& kernel : kernels) {
    remarks.push_back(fmt::format(
        "{} rows of {} ({}, {}): its short calls take {:.3g} us although their work differs {:.3g} "
        "times, {:.2g} times as long as the fastest kernel for the same sizes: the host was timed",
        kernel.rows, table.impls[kernel.kind.impl], engine::name_of(kernel.kind.family),
        engine::name_of(kernel.kind.dtype), 1e6 * kernel.seconds, kernel.work, kernel.slower));
  }
  return remarks;
}

}  // namespace tools
