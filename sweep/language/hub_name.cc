#include "sweep/language/hub_name.h"

#include "sweep/language/load_spec.h"
#include "sweep/language/suggest.h"

namespace sweep {
namespace {

// "owner/model": one slash, no path of ours and no file.
bool is_hub_name(const std::string& text) {
  const std::size_t slash = text.find('/');
  return slash != std::string::npos && slash > 0 && slash + 1 < text.size() &&
         text.find('/', slash + 1) == std::string::npos && text[0] != '.' && text[0] != '~' &&
         !text.ends_with(".json") && !text.ends_with(".yaml");
}

}  // namespace

std::optional<std::string> hub_name_hint(const std::string& written,
                                         const engine::Location& said_in,
                                         const std::vector<std::string>& models) {
  if (!is_hub_name(written)) return std::nullopt;
  const std::string place = (relative_to(said_in, written) / "config.json").string();
  std::string hint = "nothing is downloaded: save the config.json of '" + written + "' as '" +
                     place + "' and write 'model: {hf_config: " + written + "}'";
  const std::vector<std::string> known = likely(written.substr(written.find('/') + 1), models);
  if (!known.empty()) hint += "; of the library, " + did_you_mean(known);
  return hint;
}

}  // namespace sweep
