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

// All fields that a model may come with, with their defaults.
Entries defaults(const engine::Location& where) {
  return entries_of({.matrices = HfQuantization::Matrices{}, .kv = engine::Quantization{}.kv},
                    where);
}

std::vector<std::string> all_deployments() {
  std::vector<std::string> names{""};
  static const engine::Scenario any;
  engine::each_role(any,
                    [&](std::string_view role, const engine::Role&) { names.emplace_back(role); });
  return names;
}

enum class Pass : std::uint8_t { look, write };
using Fields = std::set<std::string, std::less<>>;

// What is around are the formats of the base's model.
class Formats : public Companion {
 public:
  // Adds to the fields that models `bring`, or writes these but for those that a sweep states. What it says of the main deployment
  // counts for others as well.
  Formats(Pass pass, Fields& brought, const SaidOfFormats& own, const SaidOfFormats* main,
          Reading& reading)
      : pass_(pass), brought_(brought), own_(own), main_(main), reading_(reading) {}

  std::string_view named() const override { return "model"; }

  std::optional<Entries> of(const Node& settings) const override {
    auto found = published(settings);
    if (found && pass_ == Pass::look) look_at(*found);
    if (!found && pass_ == Pass::write && whole(settings)) found = defaults(settings.where);
    return found;
  }

  Entries written(const std::optional<Entries>& found, const Node& settings,
                  const Around& around) const override {
    Entries formats = defaults(settings.where);
    add_fields(formats, found ? *found : around.said);
    std::erase_if(formats, [&](const NodeEntry& format) {
      const std::string& field = format.key.text;
      return !brought_.contains(field) || own_.says_always(field, around.trail) ||
             (main_ != nullptr && main_->says_at_times(field, around.trail));
    });
    // The same paths in the same order, whatever is found.
    std::ranges::sort(formats, {}, [](const NodeEntry& format) { return format.key.text; });
    for (NodeEntry& format : formats) format.key.text.insert(0, kSection);
    return formats;
  }

  bool yields(std::string_view path, const Around& around) const override {
    return own_.says_at_times(path.substr(kSection.size()), around.trail);
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

  // Formats that the file of these settings states, or those of what they are made from: a file that states weights says it all,
  // one that does not alters what it is made from.
  std::optional<Entries> published(const Node& settings) const {
    std::optional<Entries> found;
    const auto take = [&found](const Entries& deeper) {
      Entries all = deeper;
      if (found) add_fields(all, *found);
      if (!all.empty()) found = std::move(all);
    };
    const Node* at = &settings;
    Node own;
    for (std::int64_t made_from = 0; made_from < reading_.limits.file_depth; ++made_from) {
      if (const Node* labelled = at->find("value")) at = labelled;
      if (const Node* config = at->find("hf_config")) {
        take(in_config(*config));
        return found;
      }
      const Node* from = at->is_scalar() ? at : at->find("from");
      if (from == nullptr) return found;
      if (from->is_map()) {
        at = from;
        continue;
      }
      const auto file = from->is_scalar() ? file_of(*from) : std::nullopt;
      if (!file) return found;
      // One that cannot be read is a mistake where it is named.
      auto read = read_yaml_file(*file, reading_.limits);
      if (!read) return found;
      own = std::move(read).value();
      const Node formats = formats_of_file(own);
      take(formats.entries);
      if (formats.find("weights") != nullptr) return found;
      at = &own;
    }
    return found;
  }

  std::optional<std::filesystem::path> file_of(const Node& name) const {
    if (name.text.ends_with(".yaml")) return relative_to(name.where, name.text);
    auto file = reading_.library.find("models", name.text, name.where.file);
    return file ? file : reading_.library.find("models", name.text);
  }

  Entries in_config(const Node& config) const {
    if (!config.is_scalar()) return {};
    const auto read = read_hf_config(hf_config_file(config));
    if (!read) return {};
    if (const auto& unknown = read->formats.unknown; unknown && pass_ == Pass::look) {
      reading_.mistake(unknown->where, unknown->what, unknown->hint);
    }
    return entries_of(read->formats, config.where);
  }

  static constexpr std::string_view kSection = "quant.";

  Pass pass_;
  Fields& brought_;
  const SaidOfFormats& own_;
  const SaidOfFormats* main_;  // null: that is the main one
  Reading& reading_;
};

}  // namespace

std::vector<NodeEntry> formats_of_model(const Node& name, Reading& reading) {
  Fields all_count;
  const SaidOfFormats nothing;
  return Formats(Pass::write, all_count, nothing, nullptr, reading).of(name).value_or(Entries{});
}

// Hands `write` a writer for each deployment whose formats are not stated: first to look whether any model has its own, on what is
// forgotten again, and then, where one has, to write. Whether anything was to be written.
template <class Write>
bool PublishedFormats::each_writer(const Said& said, Fields& brought, Write&& write) {
  const SaidOfFormats& main = said.find("")->second;
  if (main.everywhere) return false;
  const auto each = [&](Pass pass) {
    for (const auto& [role, of_role] : said) {
      if (!role.empty() && of_role.somewhere) continue;
      const Formats formats(pass, brought, of_role, role.empty() ? nullptr : &main, reading_);
      write(CompanionWriter(role, formats, NamedBy::own), pass);
    }
  };
  each(Pass::look);
  if (brought.empty()) return false;
  if (main.somewhere) {
    reading_.mistake(main.where,
                     "formats are stated for some points only, and a model here is published in "
                     "formats of its own",
                     "state 'quant.weights' for all points, under 'base:' or in every value of an "
                     "axis");
    return false;
  }
  each(Pass::write);
  return true;
}

Entries PublishedFormats::usual_beside(const SaidOfFormats& said, const std::string& section,
                                       const engine::Location& where) const {
  Entries usual;
  for (auto& [field, format] : defaults(where)) {
    const bool stated = field.text == "weights" ||
                        std::ranges::find(said.besides, field.text, &SaidOfFormats::Field::name) !=
                            said.besides.end();
    if (stated || !brought_.contains(field.text)) continue;
    usual.push_back({scalar(section + field.text, where), format});
  }
  return usual;
}

void PublishedFormats::leave_main(Node& sweep, const std::string& role,
                                  const SaidOfFormats& said) const {
  const auto add_to = [&](Node& map, const std::string& section) {
    for (NodeEntry& format : usual_beside(said, section, map.where)) {
      map.entries.push_back(std::move(format));
    }
  };
  for (Node& item : sweep.items) leave_main(item, role, said);
  for (auto& [key, value] : sweep.entries) {
    if (key.text == "base") {
      const bool there = std::ranges::any_of(value.entries, [&role](const NodeEntry& entry) {
        return entry.key.text == role || entry.key.text.starts_with(role + ".");
      });
      if (there) add_to(value, role + ".quant.");
    } else if (key.text == role) {
      for (Node& item : value.items) {
        if (item.is_map() && item.find("quant") != nullptr) add_to(item, "quant.");
      }
    } else {
      leave_main(value, role, said);
    }
  }
}

Node PublishedFormats::wider_where_trained(const Said& said, const Fields& brought,
                                           const engine::Location& where) {
  const SaidOfFormats& main = said.find("")->second;
  Entries wider;
  for (const auto& [field, format] : defaults(where)) {
    if (!brought.contains(field.text) || main.says_always(field.text, {})) continue;
    if (main.says_at_times(field.text, {})) {
      reading_.mistake(where,
                       "'quant." + field.text +
                           "' is stated for some points only, where some points train and a model "
                           "is published in formats of its own",
                       "state it for all points, under 'base:' or in every value of an axis");
      continue;
    }
    const std::string path = "quant." + field.text;
    const bool number = field.text == "group";
    const std::string usual = number ? format.text : "'" + format.text + "'";
    wider.push_back(
        {scalar(path, where), scalar("task == 'train' ? " + usual + " : " + path, where)});
  }
  return map_of(std::move(wider), where);
}

void PublishedFormats::add(std::vector<std::unique_ptr<const Node>>& documents,
                           const SaidOfHosts& tasks, Documents kind) {
  for (const std::string& role : all_deployments()) {
    SaidOfFormats& said = said_[role];  // also where no document could be read
    for (const auto& document : documents) {
      said.add(said_in_sweep(*document, role), SaidOfFormats::Points::same);
    }
  }
  if (kind == Documents::of_sweep && tasks.trains) {
    // Points that train may leave formats out that others state: then nothing is brought, as where all points train.
    if (!tasks.serves || said_.find("")->second.somewhere) return;
  }
  const bool written = each_writer(said_, brought_, [&](const CompanionWriter& writer, Pass pass) {
    for (auto& document : documents) {
      Node with = *document;
      writer.sweep(with, {around_, {}});
      if (pass == Pass::look) continue;
      if (writer.of_main()) around_ = writer.around_in(*document, around_);
      document = std::make_unique<const Node>(std::move(with));
    }
  });
  for (const auto& [role, said] : said_) {
    if (!written || role.empty() || !said.somewhere) continue;
    for (auto& document : documents) {
      Node with = *document;
      leave_main(with, role, said);
      document = std::make_unique<const Node>(std::move(with));
    }
  }
  if (!written || kind == Documents::of_batches || !tasks.trains) return;
  Node with = *documents.front();
  Node wider = wider_where_trained(said_, brought_, with.where);
  const auto derive = std::ranges::find(with.entries, "derive",
                                        [](const NodeEntry& entry) { return entry.key.text; });
  if (derive == with.entries.end()) {
    with.entries.push_back({scalar("derive", with.where), std::move(wider)});
  } else if (derive->value.is_null()) {
    derive->value = std::move(wider);
  } else {
    // Before those of the sweep, which may follow from formats.
    Entries& entries = derive->value.entries;
    entries.insert(entries.begin(), wider.entries.begin(), wider.entries.end());
  }
  documents.front() = std::make_unique<const Node>(std::move(with));
}

Node PublishedFormats::add(std::vector<BatchField>& fields, const SaidOfHosts& tasks) {
  const engine::Location where =
      fields.empty() ? engine::Location{} : fields[0].path_and_values.key.where;
  const Node nothing = map_of({}, where);
  Said said = said_;
  for (auto& [role, of_role] : said) {
    for (const BatchField& field : fields) {
      of_role.add(said_on_axis(field.path_and_values, role), SaidOfFormats::Points::same);
    }
  }
  if (said[""].everywhere && !said_[""].everywhere) {
    // Nothing stays of what the base's model brought.
    const std::size_t count = fields[0].order.size();
    for (auto& [path, usual] : usual_beside(said[""], "quant.", where)) {
      Node values = map_of({}, where);
      values.kind = Node::Kind::sequence;
      values.items = {std::move(usual)};
      fields.push_back(
          {{std::move(path), std::move(values)}, std::vector<std::uint32_t>(count, 0)});
    }
    return nothing;
  }
  Fields brought = brought_;
  each_writer(said, brought, [&](const CompanionWriter& writer, Pass pass) {
    std::vector<BatchField> with = fields;
    writer.batch(with, {around_, {}});
    if (pass == Pass::write) fields = std::move(with);
  });
  if (!tasks.trains || said.find("")->second.everywhere) return nothing;
  return wider_where_trained(said, brought, where);
}

}  // namespace sweep
