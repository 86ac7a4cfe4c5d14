#include "tools/import/traced_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace tools {
namespace {

constexpr std::string_view kColumns[] = {
    "family", "impl",      "dtype",       "kv_dtype", "m",        "n",        "k",
    "batch",  "query_len", "context_len", "q_heads",  "kv_heads", "head_dim", "window",
    "tokens", "hidden",    "inter",       "topk",     "experts",  "tp",       "ep",
    "skew",   "bytes",     "ranks",       "seconds"};

// "void cutlass::Kernel2<...>(...)" is "cutlass::Kernel2".
std::string short_name(std::string_view whole) {
  if (whole.starts_with("void ")) whole.remove_prefix(5);
  std::string name(whole.substr(0, std::min<std::size_t>(whole.find_first_of("<("), 80)));
  std::ranges::replace_if(
      name, [](char c) { return c == ',' || c == '"' || c == '\n'; }, '_');
  return name;
}

void add_row(const KernelShape& shape, std::vector<double>& seconds, results::TextTable& table) {
  const auto middle = seconds.begin() + std::ptrdiff_t(seconds.size() / 2);
  std::ranges::nth_element(seconds, middle);
  for (results::TextColumn& column : table.columns) {
    const auto cell = shape.find(column.name());
    column.append(column.name() == "seconds" ? fmt::format("{}", *middle)
                  : cell != shape.end()      ? cell->second
                                             : "");
  }
}

}  // namespace

void TracedCalls::add_operator(std::int64_t call, std::string name,
                               const std::vector<Argument>& arguments) {
  auto shape = kernel_shape(name, arguments);
  operators_[call] = {std::move(name), std::move(shape)};
}

void TracedCalls::add_kernel(std::int64_t number, std::string_view name, double microseconds) {
  Call& call = calls_[number];
  call.microseconds += microseconds;
  ++call.kernels;
  if (call.kernel.empty() || microseconds > call.longest) {
    call.longest = microseconds;
    call.kernel = short_name(name);
  }
}

TracedKernels TracedCalls::table(std::string_view tool) const {
  TracedKernels made;
  std::map<KernelShape, std::vector<double>> times;
  std::map<std::string, double> left_out;
  for (const auto& [number, call] : calls_) {
    const double seconds = call.microseconds * 1e-6;
    made.kernels += call.kernels;
    made.seconds += seconds;
    const auto found = operators_.find(number);
    if (found == operators_.end() || !found->second.shape) {
      left_out[found == operators_.end() ? call.kernel : found->second.name] += seconds;
      continue;
    }
    if (seconds <= 0) {
      ++made.timeless;
      continue;
    }
    made.taken += call.kernels;
    made.taken_seconds += seconds;
    KernelShape shape = *found->second.shape;
    shape["impl"] = fmt::format("{}:{}", tool, call.kernel);
    times[shape].push_back(seconds);
  }
  made.left_out.assign(left_out.begin(), left_out.end());
  std::ranges::stable_sort(made.left_out, std::greater<>(),
                           [](const auto& entry) { return entry.second; });
  for (const std::string_view column : kColumns)
    made.table.columns.emplace_back(std::string(column));
  for (auto& [shape, seconds] : times) add_row(shape, seconds, made.table);
  return made;
}

}  // namespace tools
