// Rows on their way into a trace: checked one by one, mistakes collected with their places.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/result.h"
#include "engine/workload/trace.h"
#include "sweep/input/limits.h"
#include "sweep/input/mistake_list.h"

namespace sweep {

// What a column means, and how its numbers become ours.
enum class TraceField {
  none,
  arrival,
  prompt,
  output,
  session,
  priority,
  tenant,
  model,
  hashes,
  id,
};
constexpr std::size_t kTraceFields = 10;

struct TraceColumn {
  TraceField field = TraceField::none;
  double scale = 1;               // to seconds
  bool timestamp = false;         // a date and time of day
  std::int64_t block_tokens = 0;  // implied by the name; 0: nothing
};
TraceColumn trace_column(std::string_view name);

// Spaces, tabs and the carriage return of a line that ends as on Windows.
std::string_view trimmed(std::string_view text);

// One row as read.
struct TraceRowText {
  // Where a field stands in the text: its column from 1 on, 0: it is not there.
  static constexpr int kAfterItsName = -1;
  std::array<int, kTraceFields> places{};

  double arrival = 0;
  double prompt = 0;
  double output = 0;
  double session = -1;
  double priority = 0;
  std::string_view tenant;
  std::string_view model;
  std::string_view id;
  std::vector<std::uint64_t> hashes;  // of the prompt's blocks, in order

  void clear();
  // Takes a number of any field that is one.
  void set(const TraceColumn& column, double value);
};

class TraceBuilder {
 public:
  // `whole` is the text that all lines are of; it outlives the builder.
  TraceBuilder(std::string file, std::string_view whole);

  void mistake(int line, int column, std::string what, std::string hint = {});
  // Whether a line is short enough to be looked at; a mistake where it is not.
  bool within(std::string_view text, int line);

  struct Name {
    std::string text;
    int place;  // column of the text
  };
  // The names of the columns; called once, before the rows. False: nothing can be made of them.
  bool columns(const std::vector<Name>& names, int line);
  bool has(TraceField field) const { return !names_[std::size_t(field)].empty(); }

  // `text` is the line the row was read from.
  void add_row(const TraceRowText& row, int line, std::string_view text);

  engine::Result<std::shared_ptr<const engine::Trace>> finish();

 private:
  // The row being checked.
  struct Checked {
    const TraceRowText& row;
    int line;
    std::string_view text;
    bool good = true;
  };
  void wrong(Checked& checked, TraceField field, std::string what, std::string hint = {});
  void check_whole(Checked& checked, TraceField field, double value, double low, double high);
  void check_present(Checked& checked);
  void check_arrival(Checked& checked);
  void check_id(Checked& checked);
  void check_blocks(Checked& checked);
  void append(const TraceRowText& row, std::string_view text);
  void make_room(std::size_t blocks, std::string_view text);

  std::string file_;
  std::string_view whole_;
  std::int64_t line_bytes_ = input_limits().line_bytes;
  MistakeList mistakes_;
  std::shared_ptr<engine::Trace> trace_;
  std::array<std::string, kTraceFields>
      names_;  // what the file calls each field; empty: it has none
  // Names, numbered as they appear.
  using Names = std::map<std::string, std::int32_t, std::less<>>;
  static std::int32_t number_of(std::string_view name, Names& names);
  Names tenants_, models_;
  std::unordered_map<std::string, int> id_lines_;
  double last_arrival_ = 0;
};

// The two formats.
engine::Result<std::shared_ptr<const engine::Trace>> parse_csv_trace(std::string_view text,
                                                                     const std::string& name);
engine::Result<std::shared_ptr<const engine::Trace>> parse_json_trace(std::string_view text,
                                                                      const std::string& name);

}  // namespace sweep
