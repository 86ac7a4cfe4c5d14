#include "sweep/language/published_formats.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/scenario.h"
#include "sweep/language/companion_writer.h"
#include "sweep/language/hf_config.h"
#include "sweep/language/load_spec.h"
#include "sweep/language/read_fields.h"
#include "sweep/language/yaml_file.h"

namespace sweep {
namespace {

// Fields of `quant` that a model may come with. Those of matrices are stated together: what a sweep says of one of them is not
// meant for the rest of a file.
constexpr std::string_view kMatrices[] = {"weights", "activations"};

Entries entries_of(const HfQuantization& formats, const engine::Location& where) {
  Entries entries;
  const auto add = [&](std::string_view field, std::string text) {
    entries.push_back({scalar(std::string(field), where), scalar(std::move(text), where)});
  };
  if (formats.matrices) {
    add("weights", std::string(engine::name_of(formats.matrices->weights)));
    add("activations", std::string(engine::name_of(formats.matrices->activations)));
    add("group", std::to_string(formats.matrices->group));
    add("scope", std::string(engine::name_of(formats.matrices->scope)));
  }
  if (formats.kv) add("kv", std::string(engine::name_of(*formats.kv)));
  return entries;
}

// All fields a model may come with, as they are where nobody says anything.
Entries defaults(const engine::Location& where) {
  return entries_of({.matrices = HfQuantization::Matrices{}, .kv = engine::Quantization{}.kv},
                    where);
}

// ---- what a sweep says ---------------------------------------------------------------------------

void say(SaidOfFormats& said, std::string_view field, const engine::Location& where) {
  if (std::ranges::find(kMatrices, field) == std::end(kMatrices)) {
    said.besides.emplace_back(field);
    return;
  }
  if (!said.somewhere) said.where = where;
  said.somewhere = said.everywhere = true;
}

// Adds what else is said of the same points, or of some of them.
enum class Points : std::uint8_t { same, some };
void add_said(SaidOfFormats& said, const SaidOfFormats& more, Points points) {
  if (!said.somewhere) said.where = more.where;
  said.somewhere = said.somewhere || more.somewhere;
  said.everywhere = said.everywhere || (points == Points::same && more.everywhere);
  said.besides.insert(said.besides.end(), more.besides.begin(), more.besides.end());
}

// Looks for what is said of formats under one path, such as "quant" or "draft.quant".
class Listener {
 public:
  explicit Listener(std::string_view role)
      : path_(role.empty() ? "quant" : std::string(role) + ".quant") {}

  SaidOfFormats in_sweep(const Node& sweep) const {
    SaidOfFormats said;
    for (const auto& [key, value] : sweep.entries) {
      if (key.text == "base" || key.text == "derive")
        add_said(said, in_fields(value, ""), Points::same);
      if (key.text == "axes") add_said(said, in_axes(value), Points::same);
    }
    if (sweep.is_sequence()) add_said(said, in_axes(sweep), Points::same);
    return said;
  }

  SaidOfFormats on_axis(const std::string& path, const Node& axis) const {
    const Node* values = axis.find("values");
    const Node& list = values == nullptr ? axis : *values;
    SaidOfFormats said;
    if (path.starts_with(path_ + ".")) {
      say(said, path.substr(path_.size() + 1), axis.where);
    } else if (path == path_ || path_.starts_with(path + ".")) {
      said = in_all(list.items, [&](const Node& item) {
        const Node* labelled = item.find("value");
        return in_fields(labelled == nullptr ? item : *labelled, path + ".");
      });
    }
    if (axis.find("when") != nullptr) said.everywhere = false;
    return said;
  }

 private:
  // Of alternatives: everywhere where every one says it.
  template <class InOne>
  static SaidOfFormats in_all(const std::vector<Node>& items, InOne&& in_one) {
    SaidOfFormats said;
    bool everywhere = !items.empty();
    for (const Node& item : items) {
      const SaidOfFormats one = in_one(item);
      everywhere = everywhere && one.everywhere;
      add_said(said, one, Points::some);
    }
    said.everywhere = everywhere;
    return said;
  }

  SaidOfFormats in_fields(const Node& map, const std::string& prefix) const {
    SaidOfFormats said;
    for (const auto& [key, value] : map.entries) {
      const std::string path = prefix + key.text;
      if (path.starts_with(path_ + ".")) {
        say(said, path.substr(path_.size() + 1), key.where);
      } else if (path == path_ || path_.starts_with(path + ".")) {
        add_said(said, in_fields(value, path + "."), Points::same);
      }
    }
    return said;
  }

  SaidOfFormats in_axes(const Node& list) const {
    SaidOfFormats said;
    for (const Node& item : list.items) {
      SaidOfFormats one;
      for (const auto& [key, value] : item.entries)
        add_said(one, in_entry(key.text, value), Points::same);
      if (item.find("when") != nullptr) one.everywhere = false;
      add_said(said, one, Points::same);
    }
    return said;
  }

  SaidOfFormats in_entry(const std::string& key, const Node& value) const {
    if (key == "product") return in_axes(value);
    if (key == "concat") {
      return in_all(value.items, [this](const Node& branch) { return in_sweep(branch); });
    }
    if (key == "zip" && value.is_sequence()) return in_axes(value);
    if (key != "zip" && key != "sample") return on_axis(key, value);
    SaidOfFormats said;
    const Node* members = key == "zip" ? &value : value.find("of");
    if (members == nullptr) return said;
    for (const auto& [path, values] : members->entries)
      add_said(said, on_axis(path.text, values), Points::same);
    if (value.find("when") != nullptr) said.everywhere = false;
    return said;
  }

  std::string path_;
};

std::vector<std::string> all_deployments() {
  std::vector<std::string> names{""};
  static const engine::Scenario any;
  engine::each_role(any,
                    [&](std::string_view role, const engine::Role&) { names.emplace_back(role); });
  return names;
}

// ---- what models have ----------------------------------------------------------------------------

enum class Pass : std::uint8_t { look, write };
using Fields = std::set<std::string, std::less<>>;

// What is around are the formats of the base's model.
class Formats : public Companion {
 public:
  // Adds to the fields that models `bring`, or writes these but for those that a sweep `states`.
  Formats(Pass pass, Fields& brought, std::vector<std::string> stated, Reading& reading)
      : pass_(pass), brought_(brought), stated_(std::move(stated)), reading_(reading) {}

  std::string_view named() const override { return "model"; }

  std::optional<Entries> of(const Node& settings) const override {
    auto found = published(settings);
    if (found && pass_ == Pass::look) look_at(*found);
    if (!found && pass_ == Pass::write && whole(settings)) found = defaults(settings.where);
    return found;
  }

  Entries written(const std::optional<Entries>& found, const Node& settings,
                  const Entries& around) const override {
    Entries formats = defaults(settings.where);
    add_fields(formats, found ? *found : around);
    std::erase_if(formats, [this](const NodeEntry& format) {
      return !brought_.contains(format.key.text) ||
             std::ranges::find(stated_, format.key.text) != stated_.end();
    });
    // The same paths in the same order, whatever is found.
    std::ranges::sort(formats, {}, [](const NodeEntry& format) { return format.key.text; });
    for (NodeEntry& format : formats) format.key.text = "quant." + format.key.text;
    return formats;
  }

  Entries around(const std::optional<Entries>& found, const Entries& outer, Node&,
                 const PathOf&) const override {
    return found ? *found : outer;
  }

 private:
  void look_at(const Entries& found) const {
    const Node usual = map_of(defaults({}), {});
    for (const auto& [field, format] : found) {
      const Node* other = usual.find(field.text);
      if (other != nullptr && other->text != format.text) brought_.insert(field.text);
    }
  }

  // Formats that the file of these settings states, or that of what they are made from.
  std::optional<Entries> published(const Node& settings) const {
    const Node* at = &settings;
    Node own;
    for (std::int64_t made_from = 0; made_from < reading_.limits.file_depth; ++made_from) {
      if (const Node* labelled = at->find("value")) at = labelled;
      if (const Node* config = at->find("hf_config")) return in_config(*config);
      const Node* name = name_in(*at);
      if (name == nullptr) return std::nullopt;
      const auto file = file_of(*name);
      if (!file) return std::nullopt;
      // One that cannot be read is a mistake where it is named.
      auto read = read_yaml_file(*file, reading_.limits);
      if (!read) return std::nullopt;
      own = std::move(read).value();
      if (const Node* formats = own.find("quant")) return formats->entries;
      at = &own;
    }
    return std::nullopt;
  }

  std::optional<std::filesystem::path> file_of(const Node& name) const {
    if (name.text.ends_with(".yaml")) return relative_to(name.where, name.text);
    auto file = reading_.library.find("models", name.text, name.where.file);
    return file ? file : reading_.library.find("models", name.text);
  }

  std::optional<Entries> in_config(const Node& config) const {
    if (!config.is_scalar()) return std::nullopt;
    const auto read = read_hf_config(hf_config_file(config));
    if (!read || read->formats == HfQuantization{}) return std::nullopt;
    if (const auto& unknown = read->formats.unknown; unknown && pass_ == Pass::look) {
      reading_.mistake(unknown->where, unknown->what, unknown->hint);
    }
    return entries_of(read->formats, config.where);
  }

  Pass pass_;
  Fields& brought_;
  std::vector<std::string> stated_;
  Reading& reading_;
};

}  // namespace

// Hands `write` a writer for each deployment whose formats are not stated: first to look whether any model has its own, on what is
// forgotten again, and then, where one has, to write.
template <class Write>
void PublishedFormats::each_writer(const Said& said, Fields& brought, Write&& write) {
  const SaidOfFormats& main = said.find("")->second;
  if (main.everywhere) return;
  const auto each = [&](Pass pass) {
    for (const auto& [role, of_role] : said) {
      if (!role.empty() && of_role.somewhere) continue;
      std::vector<std::string> stated = main.besides;
      stated.insert(stated.end(), of_role.besides.begin(), of_role.besides.end());
      const Formats formats(pass, brought, std::move(stated), reading_);
      write(CompanionWriter(role, formats, NamedBy::own), pass);
    }
  };
  each(Pass::look);
  if (brought.empty()) return;
  if (!main.somewhere) {
    each(Pass::write);
    return;
  }
  reading_.mistake(main.where,
                   "formats are stated for some points only, and a model here is published in "
                   "formats of its own",
                   "state 'quant.weights' or 'quant.activations' for all points, under 'base:' or "
                   "in every value of an axis");
}

void PublishedFormats::add(std::vector<std::unique_ptr<const Node>>& documents, bool trains) {
  for (const std::string& role : all_deployments()) {
    const Listener listener(role);
    for (const auto& document : documents) {
      add_said(said_[role], listener.in_sweep(*document), Points::same);
    }
  }
  if (trains) return;
  each_writer(said_, brought_, [&](const CompanionWriter& writer, Pass pass) {
    for (auto& document : documents) {
      Node with = *document;
      writer.sweep(with, around_);
      if (pass == Pass::look) continue;
      if (writer.of_main()) around_ = writer.around_in(*document, around_);
      document = std::make_unique<const Node>(std::move(with));
    }
  });
}

// Where a batch states formats, nothing stays of those that the base's model brought.
void PublishedFormats::leave_base(const SaidOfFormats& said,
                                  std::vector<BatchField>& fields) const {
  const engine::Location where = fields[0].path_and_values.key.where;
  for (const auto& [field, usual] : defaults(where)) {
    const std::string path = "quant." + field.text;
    const bool stated = std::ranges::find(said.besides, field.text) != said.besides.end() ||
                        std::ranges::any_of(fields, [&](const BatchField& other) {
                          return other.path_and_values.key.text == path;
                        });
    if (stated || !brought_.contains(field.text)) continue;
    Node values = map_of({}, where);
    values.kind = Node::Kind::sequence;
    values.items = {usual};
    fields.push_back({{scalar(path, where), std::move(values)},
                      std::vector<std::uint32_t>(fields[0].order.size(), 0)});
  }
}

void PublishedFormats::add(std::vector<BatchField>& fields, bool trains) {
  Said said = said_;
  for (auto& [role, of_role] : said) {
    const Listener listener(role);
    for (const BatchField& field : fields) {
      const auto& [key, values] = field.path_and_values;
      add_said(of_role, listener.on_axis(key.text, values), Points::same);
    }
  }
  if (trains) return;
  if (said[""].everywhere && !said_[""].everywhere) {
    leave_base(said[""], fields);
    return;
  }
  Fields brought = brought_;
  each_writer(said, brought, [&](const CompanionWriter& writer, Pass pass) {
    std::vector<BatchField> with = fields;
    writer.batch(with, around_);
    if (pass == Pass::write) fields = std::move(with);
  });
}

}  // namespace sweep
