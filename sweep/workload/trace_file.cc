#include "sweep/workload/trace_file.h"

#include "sweep/input/read_text.h"
#include "sweep/workload/trace_rows.h"

namespace sweep {

TraceResult parse_trace(std::string_view text, const std::string& name) {
  // Some editors put a mark before the first letter.
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  std::string_view plain = name;
  if (plain.ends_with(".gz")) plain.remove_suffix(3);
  if (plain.ends_with(".jsonl")) return parse_json_trace(text, name);
  if (plain.ends_with(".csv")) return parse_csv_trace(text, name);
  return engine::Mistake{{name, 0, 0},
                         "the name does not say what the trace is",
                         "name it .csv, .csv.gz, .jsonl or .jsonl.gz"};
}

TraceResult read_trace(const std::string& path) {
  const engine::Result<std::string> text = read_table_text(path);
  if (!text) return text.mistakes();
  return parse_trace(*text, path);
}

}  // namespace sweep
