#include "tools/import/json_file.h"

#include <algorithm>
#include <string>

#include "sweep/input/read_text.h"

namespace tools {

engine::Result<nlohmann::json> read_json_file(const std::filesystem::path& file) {
  const auto text = sweep::read_table_text(file);
  if (!text) return text.mistakes();
  try {
    return nlohmann::json::parse(*text);
  } catch (const nlohmann::json::parse_error& error) {
    const std::size_t at = std::min(error.byte > 0 ? error.byte - 1 : 0, text->size());
    const std::string_view before = std::string_view(*text).substr(0, at);
    const auto line = std::ranges::count(before, '\n') + 1;
    const std::size_t begin = before.rfind('\n');
    const std::size_t column = begin == std::string_view::npos ? at + 1 : at - begin;
    const bool cut = at >= text->size();
    return engine::Mistake{
        {file.string(), int(line), int(column)},
        cut ? "the file ends in the middle" : "this is not JSON",
        cut ? "was it copied while it was written?" : "it may be damaged, or of another kind"};
  } catch (const nlohmann::json::out_of_range&) {
    return engine::Mistake{{.file = file.string()},
                           "a number in it is larger than any that a computer keeps",
                           "it may be damaged"};
  }
}

}  // namespace tools
