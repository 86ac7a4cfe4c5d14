#include "sweep/language/load_spec.h"

#include <algorithm>

#include "sweep/language/hf_config.h"
#include "sweep/language/hub_name.h"
#include "sweep/language/read_fields.h"
#include "sweep/language/stated_rates.h"
#include "sweep/language/suggest.h"
#include "sweep/language/yaml_file.h"
#include "sweep/space/roles.h"

namespace sweep {
namespace {

using engine::Section;

// The section's defaults with these edits, completed by convention: every leaf of it.
std::vector<Edit> whole_section(const Section& section, const std::vector<Edit>& edits) {
  const std::vector<engine::Leaf>& leaves = engine::leaf_table().leaves;
  engine::Scenario scratch;
  for (const Edit& edit : edits) apply(edit, scratch);
  engine::complete_spec(scratch, section);
  std::vector<Edit> all;
  for (std::size_t i = section.first_leaf; i < section.last_leaf; ++i) {
    all.push_back({int(i), engine::get_leaf(scratch, leaves[i])});
  }
  return all;
}

int name_leaf(const Section& section) {
  return engine::leaf_table().find_leaf(section.path + ".name");
}

// Fields of a spec, with its own `from` before them.
std::vector<Edit> spec_fields(const Section& section, const Node& root, const std::string& said,
                              Reading& reading) {
  std::vector<Edit> edits;
  if (const Node* from = root.find("from"))
    edits = from_spec(section, *from, said + "from", reading);
  if (const Node* config = root.find("hf_config"); config && section.library == "models") {
    edits = hf_spec(section, *config, said + "hf_config", reading);
  }
  return made_from(section, {section.path, std::move(edits), root.where},
                   read_fields(root, {&section, said}, reading));
}

bool says_formats(const NodeEntry& entry) {
  return entry.key.text == "quant" || entry.key.text.starts_with("quant.");
}

// The file of a model also says in which formats it is published. They go with the model where a sweep states none
// (published_formats), and are only looked over here.
Node without_formats(const Section& section, const Node& root, Reading& reading) {
  if (section.library != "models") return root;
  const engine::LeafTable& table = engine::leaf_table();
  const Section& quant = table.sections[std::size_t(table.find_section("quant"))];
  read_section(quant, formats_of_file(root), "quant", reading);
  Node rest = root;
  std::erase_if(rest.entries, [](const NodeEntry& entry) { return says_formats(entry); });
  return rest;
}

std::vector<Edit> spec_file(const Section& section, const std::filesystem::path& file,
                            const engine::Location& named_at, Reading& reading) {
  const std::string key = file.lexically_normal().string();
  const auto known = reading.specs.find({section.path, key});
  if (known != reading.specs.end()) return known->second;
  if (std::find(reading.open.begin(), reading.open.end(), key) != reading.open.end()) {
    reading.mistake(named_at, "'" + file.stem().string() + "' is made from itself",
                    "break the circle of 'from'");
    return {};
  }
  if (!reading.may_read(named_at)) return {};
  const engine::Result<Node> root = read_yaml_file(file, reading.limits);
  reading.files.push_back(key);
  if (!root) {
    reading.mistakes.add(root.mistakes());
    return {};
  }
  reading.count(*root);
  if (!root->is_map()) {
    reading.mistake(root->where,
                    "a spec is a map of fields, not " + std::string(name_of(root->kind)),
                    "write one field a line, as in 'name: value'");
    return {};
  }
  reading.open.push_back(key);
  std::vector<Edit> edits =
      spec_fields(section, without_formats(section, *root, reading), "", reading);
  reading.open.pop_back();
  const int name = name_leaf(section);
  if (name >= 0 && root->find("name") == nullptr) {
    std::erase_if(edits, [&](const Edit& edit) { return edit.leaf == name; });
    edits.push_back({name, file.stem().string()});
  }
  edits = whole_section(section, edits);
  reading.specs.emplace(std::pair{section.path, key}, edits);
  return edits;
}

}  // namespace

std::filesystem::path relative_to(const engine::Location& said_in, const std::string& path) {
  return std::filesystem::path(said_in.file).parent_path() / path;
}

Node formats_of_file(const Node& model) {
  Node formats;
  formats.kind = Node::Kind::map;
  formats.where = model.where;
  for (const NodeEntry& entry : model.entries) {
    if (!says_formats(entry)) continue;
    if (entry.key.text == "quant" && !entry.value.is_map()) return entry.value;
    if (entry.key.text == "quant") {
      formats.entries.insert(formats.entries.end(), entry.value.entries.begin(),
                             entry.value.entries.end());
    } else {
      formats.entries.push_back(entry);
      formats.entries.back().key.text.erase(0, std::string_view("quant.").size());
    }
  }
  return formats;
}

std::filesystem::path hf_config_file(const Node& path) {
  std::filesystem::path file = relative_to(path.where, path.text);
  std::error_code error;
  return std::filesystem::is_directory(file, error) ? file / "config.json" : file;
}

std::vector<Edit> named_spec(const Section& section, const Node& name, std::string_view said,
                             Reading& reading) {
  if (name.text.ends_with(".yaml")) {
    const std::filesystem::path file = relative_to(name.where, name.text);
    std::error_code error;
    if (std::filesystem::is_regular_file(file, error)) {
      return spec_file(section, file, name.where, reading);
    }
    reading.mistake(name.where, std::string(said) + ": there is no file '" + name.text + "'",
                    [&] { return similar_file_hint(file); });
    return {};
  }
  // A file made from its own name alters the spec of that name in a later folder.
  auto file = reading.library.find(section.library, name.text, name.where.file);
  if (!file) file = reading.library.find(section.library, name.text);
  if (file) return spec_file(section, *file, name.where, reading);
  // One says "the devices", but not "the serving" or "the training".
  const bool settings = section.library == "serving" || section.library == "training";
  const std::string library = std::string(section.library) + (settings ? " settings" : "");
  const auto hint = [&] {
    const std::vector<std::string> names = reading.library.names(section.library);
    if (const auto hub = section.library == "models" ? hub_name_hint(name.text, name.where, names)
                                                     : std::nullopt) {
      return *hub;
    }
    if (!names.empty()) return suggestion(name.text, names, "known " + library);
    std::vector<std::string> folders;
    for (const auto& folder : reading.library.folders()) folders.push_back(folder.string());
    return "no " + library + " found in: " + listing(folders);
  };
  reading.mistake(name.where,
                  std::string(said) + ": there is no '" + name.text + "' among the " + library,
                  hint);
  return {};
}

std::vector<Edit> from_spec(const Section& section, const Node& from, std::string_view said,
                            Reading& reading) {
  if (from.is_scalar()) return named_spec(section, from, said, reading);
  if (from.is_map()) {
    return whole_section(section, spec_fields(section, from, std::string(said) + ".", reading));
  }
  reading.mistake(from.where, std::string(said) + ": 'from' is " + std::string(name_of(from.kind)),
                  "write the name of a spec");
  return {};
}

std::vector<Edit> hf_spec(const Section& section, const Node& path, std::string_view said,
                          Reading& reading) {
  if (!path.is_scalar()) {
    reading.mistake(path.where,
                    std::string(said) + ": 'hf_config' is " + std::string(name_of(path.kind)),
                    "write the path of a config.json");
    return {};
  }
  const std::filesystem::path file = hf_config_file(path);
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    const auto hub = hub_name_hint(path.text, path.where, reading.library.names(section.library));
    reading.mistake(path.where, std::string(said) + ": there is no file '" + path.text + "'",
                    [&] { return hub ? *hub : similar_file_hint(file); });
    return {};
  }
  if (!reading.may_read(path.where)) return {};
  const engine::Result<HfModel> config = read_hf_config(file);
  reading.files.push_back(file.lexically_normal().string());
  if (!config) {
    reading.mistakes.add(config.mistakes());
    return {};
  }
  engine::Scenario scratch;
  scratch.model = config->model;
  const std::vector<engine::Leaf>& leaves = engine::leaf_table().leaves;
  std::vector<Edit> edits;
  for (std::size_t i = section.first_leaf; i < section.last_leaf; ++i) {
    // The model of a role has the leaves of the main one.
    const int main = leaves[i].of_main;
    edits.push_back(
        {int(i), engine::get_leaf(scratch, main < 0 ? leaves[i] : leaves[std::size_t(main)])});
  }
  return edits;
}

}  // namespace sweep
