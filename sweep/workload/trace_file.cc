#include "sweep/workload/trace_file.h"

#include <zlib.h>

#include <vector>

#include "sweep/workload/trace_rows.h"

namespace sweep {

TraceResult parse_trace(std::string_view text, const std::string& name,
                        const TraceOptions& options) {
  // Some editors put a mark before the first letter.
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  std::string_view plain = name;
  if (plain.ends_with(".gz")) plain.remove_suffix(3);
  if (plain.ends_with(".jsonl")) return parse_json_trace(text, name, options.block_tokens);
  if (plain.ends_with(".csv")) return parse_csv_trace(text, name, options.block_tokens);
  return engine::Mistake{{name, 0, 0},
                         "the name does not say what the trace is",
                         "name it .csv, .csv.gz, .jsonl or .jsonl.gz"};
}

TraceResult read_trace(const std::string& path, const TraceOptions& options) {
  // zlib reads plain files too.
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    return engine::Mistake{{path, 0, 0}, "the trace cannot be opened", "check load.trace"};
  }
  gzbuffer(file, 1 << 18);
  std::string text;
  std::vector<char> piece(1 << 20);
  int count = 0;
  while ((count = gzread(file, piece.data(), unsigned(piece.size()))) > 0) {
    text.append(piece.data(), std::size_t(count));
  }
  int error = Z_OK;
  gzerror(file, &error);
  const int closed = gzclose(file);
  if (count < 0 || error != Z_OK || closed != Z_OK) {
    return engine::Mistake{
        {path, 0, 0},
        "the trace is damaged or cut off after " + std::to_string(text.size()) + " bytes of text",
        "fetch the file again"};
  }
  return parse_trace(text, path, options);
}

}  // namespace sweep
