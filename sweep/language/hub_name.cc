#include "sweep/language/hub_name.h"

#include <string_view>

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

// "owner--model" as "owner/model"; empty where it is not of that form.
std::string hub_name_of_folder(std::string_view folder) {
  constexpr std::string_view between = "--";
  const std::size_t at = folder.find(between);
  if (at == 0 || at == std::string_view::npos) return "";
  const std::string_view model = folder.substr(at + between.size());
  if (model.empty() || model.find(between) != std::string_view::npos) return "";
  return std::string(folder.substr(0, at)) + "/" + std::string(model);
}

}  // namespace

std::optional<std::string> hub_name_hint(const std::string& written,
                                         const engine::Location& said_in,
                                         const std::vector<std::string>& models) {
  if (!is_hub_name(written)) return std::nullopt;
  const std::string place = (relative_to(said_in, written) / "config.json").string();
  std::string hint = "nothing is downloaded: save the config.json of '" + written + "' as '" +
                     place + "' and write 'model: {hf_config: " + written + ", hub: " + written +
                     "}'";
  const std::vector<std::string> known = likely(written.substr(written.find('/') + 1), models);
  if (!known.empty()) hint += "; of the library, " + did_you_mean(known);
  return hint;
}

std::string hub_name_of_file(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  if (folder.parent_path().filename() != "snapshots") {
    return hub_name_of_folder(folder.filename().string());
  }
  constexpr std::string_view kind = "models--";
  const std::string cached = folder.parent_path().parent_path().filename().string();
  return cached.starts_with(kind) ? hub_name_of_folder(cached.substr(kind.size())) : "";
}

}  // namespace sweep
