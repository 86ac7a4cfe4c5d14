// Rows on their way into a trace: checked one by one, mistakes collected with their places.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/workload/trace.h"

namespace sweep {

// What a column means, and how its numbers become ours.
enum class TraceField { none, arrival, prompt, output, session, priority, tenant, model, hashes };
constexpr std::size_t kTraceFields = std::size_t(TraceField::hashes) + 1;
// Column of the text each field was read from, by field.
using TracePlaces = std::array<int, kTraceFields>;

struct TraceColumn {
  TraceField field = TraceField::none;
  double scale = 1;               // to seconds
  bool timestamp = false;         // a date and time of day
  std::int64_t block_tokens = 0;  // implied by the name; 0: nothing
};
TraceColumn trace_column(std::string_view name);

// One row as read; what is absent keeps its default.
struct TraceRowText {
  double arrival = 0;
  double prompt = 0;
  double output = 0;
  double session = -1;
  double priority = 0;
  std::string_view tenant;
  std::string_view model;
};

class TraceBuilder {
 public:
  explicit TraceBuilder(std::string file);

  void mistake(int line, int column, std::string what, std::string hint = {});
  bool full() const;  // so many mistakes that reading on helps nobody

  // Which columns there are; called once, before the rows.
  void columns(const std::vector<TraceColumn>& columns, int line);
  bool has(TraceField field) const { return present_[std::size_t(field)]; }

  // One block of the present row's prompt, in order; the row follows.
  void add_hash(std::uint64_t id) { hashes_.push_back(id); }
  void add_row(const TraceRowText& row, int line, const TracePlaces& places);

  engine::Result<std::shared_ptr<const engine::Trace>> finish(std::string_view content,
                                                              std::int64_t block_tokens);

 private:
  bool check_tokens(double value, const char* what, int line, int column);

  std::string file_;
  std::vector<engine::Mistake> mistakes_;
  std::shared_ptr<engine::Trace> trace_;
  std::array<bool, kTraceFields> present_{};
  std::vector<std::uint64_t> hashes_;
  // Names, numbered in the order they appear.
  using Names = std::map<std::string, std::int32_t, std::less<>>;
  static std::int32_t number_of(std::string_view name, Names& names);
  Names tenants_, models_;
  double last_arrival_ = -1;
  std::int64_t implied_block_tokens_ = 0;
};

}  // namespace sweep
