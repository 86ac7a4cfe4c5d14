#include "sweep/language/engine_hosts.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/deployment_role.h"
#include "sweep/language/companion_writer.h"
#include "sweep/language/load_spec.h"
#include "sweep/language/yaml_file.h"

namespace sweep {
namespace {

// Where engines, or training libraries, are named, and the library that has them.
struct EngineKind {
  std::string_view section, library;
};
constexpr EngineKind kEngines{"serving", "serving"};
constexpr EngineKind kTraining{"train", "training"};

// The name of the host of what these settings are, or are made from.
std::optional<Node> host_of(const Node& settings, const EngineKind& kind, const Library& library,
                            const InputLimits& limits) {
  const Node* named = name_in(settings);
  Node own;
  for (std::int64_t made_from = 0; named != nullptr && made_from < limits.file_depth; ++made_from) {
    if (library.find("hosts", named->text)) return scalar(named->text, named->where);
    const auto file = named->text.ends_with(".yaml")
                          ? std::optional(relative_to(named->where, named->text))
                          : library.find(kind.library, named->text);
    if (!file) return std::nullopt;
    // One that cannot be read is a mistake where it is named.
    auto read = read_yaml_file(*file, limits);
    if (!read) return std::nullopt;
    own = std::move(read).value();
    named = name_in(own);
  }
  return std::nullopt;
}

// The host of this name, or one of round figures, with these fields of its own.
Node host_node(const Node* name, const Entries& fields, const engine::Location& where) {
  if (name != nullptr && fields.empty()) return scalar(name->text, where);
  Entries entries{
      {scalar("from", where), name != nullptr ? scalar(name->text, where) : map_of({}, where)}};
  add_fields(entries, fields);
  return map_of(std::move(entries), where);
}

// What is around are the fields that a sweep states of its hosts.
class Hosts : public Companion {
 public:
  // The name of the host that goes with settings of a section.
  using Find = std::function<std::optional<Node>(const Node& settings)>;
  // `said` is what the sweep names itself, of the deployment `of`.
  Hosts(std::string_view section, Find find, const SaidOfHosts& said, std::string_view of)
      : section_(section), find_(std::move(find)), said_(said), of_(of) {}

  std::string_view named() const override { return section_; }

  std::optional<Entries> of(const Node& settings) const override {
    auto name = find_(settings);
    if (!name) return std::nullopt;
    return Entries{{scalar("host", settings.where), *std::move(name)}};
  }

  // Settings that differ from the base's leave its host, and whole ones without a host have round figures.
  Entries written(const std::optional<Entries>& found, const Node& settings,
                  const Around& around) const override {
    if (said_.names_always(of_, around.trail)) return {};
    Node node = map_of({}, settings.where);
    if (found || whole(settings)) {
      node = host_node(found ? &found->front().value : nullptr, around.said, settings.where);
    }
    return {{scalar("host", settings.where), std::move(node)}};
  }

  bool yields(std::string_view, const Around& around) const override {
    return said_.names_at_times(of_, around.trail);
  }

  Entries around(const std::optional<Entries>&, const Entries& outer, Node& base,
                 const PathOf& path) const override {
    Entries fields = outer;
    add_fields(fields, take_fields(base, path("host")));
    return fields;
  }

 private:
  std::string_view section_;
  Find find_;
  const SaidOfHosts& said_;
  std::string_view of_;
};

Hosts hosts_of(const EngineKind& kind, const Library& library, const InputLimits& limits,
               const SaidOfHosts& said, std::string_view of) {
  return {kind.section,
          [&](const Node& settings) { return host_of(settings, kind, library, limits); }, said, of};
}

// The host of all that is named; nothing, where none is or they have several.
struct OnlyHost {
  std::optional<Node> name;
  bool several = false;
};
OnlyHost only_host(const std::vector<Node>& named, const EngineKind& kind, const Library& library,
                   const InputLimits& limits) {
  OnlyHost only;
  for (std::size_t i = 0; i < named.size(); ++i) {
    auto name = host_of(named[i], kind, library, limits);
    const std::string text = name ? name->text : "", before = only.name ? only.name->text : "";
    only.several = only.several || (i > 0 && text != before);
    if (i == 0) only.name = std::move(name);
  }
  return only;
}

// A document that gives a deployment the host of round figures, for others to be put on top of.
std::unique_ptr<const Node> round_host(std::string_view role, const engine::Location& where) {
  Node base =
      map_of({{scalar(std::string(role) + ".host", where), host_node(nullptr, {}, where)}}, where);
  return std::make_unique<const Node>(map_of({{scalar("base", where), std::move(base)}}, where));
}

// Whether samples would be written by a host of training, unless another one is put below what is said.
bool needs_round_host(const SaidOfHosts& said) {
  return said.trains && said.samples && !said.names_at_times("rollout");
}

// Where some points train and others do not: what hands `write` a writer that goes by their task. False where several engines, or several
// libraries, are named, of which a task does not say which.
template <class Write>
bool by_task(const SaidOfHosts& said, const Library& library, const InputLimits& limits,
             Write&& write) {
  const OnlyHost engine = only_host(said.engines, kEngines, library, limits);
  const OnlyHost trained = only_host(said.libraries, kTraining, library, limits);
  if (engine.several || trained.several) return false;
  const Hosts hosts(
      "task",
      [&](const Node& task) -> std::optional<Node> {
        const Node* const name = name_in(task);
        if (name == nullptr) return std::nullopt;
        auto host = name->text == "train" ? trained.name : engine.name;
        if (host) host->where = task.where;
        return host;
      },
      said, "");
  write(CompanionWriter("", hosts, NamedBy::own), said.fields);
  return true;
}

// Hands `write` a writer for each deployment whose host is not named, and the fields that its host has beside its own.
template <class Write>
void each_writer(const SaidOfHosts& said, const Library& library, const InputLimits& limits,
                 Write&& write) {
  const bool main_is_named = said.names_always("");
  if (said.trains && said.serves) {
    if (!main_is_named && !by_task(said, library, limits, write)) return;
  } else if (!main_is_named) {
    const Hosts hosts = hosts_of(said.trains ? kTraining : kEngines, library, limits, said, "");
    write(CompanionWriter("", hosts, NamedBy::own), said.fields);
  }
  for (const engine::RoleTraits& traits : engine::kRoleTraits) {
    const std::string_view role = traits.name;
    if (role == "main" || !traits.has_engine || said.names_always(role)) continue;
    const Hosts engines = hosts_of(kEngines, library, limits, said, role);
    if (role == "rollout" && needs_round_host(said)) {
      write(CompanionWriter(role, engines, NamedBy::main_too), Entries{});
    } else if (!said.names_at_times("")) {
      write(CompanionWriter(role, engines, NamedBy::own), said.fields);
    }
  }
}

}  // namespace

SaidOfHosts add_hosts(std::vector<std::unique_ptr<const Node>>& documents, const Library& library,
                      const InputLimits& limits) {
  SaidOfHosts said;
  for (const auto& document : documents) {
    read_said(*document, said);
    add_fields(said.fields, fields_of(*document, "host"));
  }
  each_writer(said, library, limits, [&](const CompanionWriter& writer, const Entries& stated) {
    for (auto& document : documents) {
      Node with = *document;
      writer.sweep(with, {stated, {}});
      document = std::make_unique<const Node>(std::move(with));
    }
  });
  if (needs_round_host(said)) {
    documents.insert(documents.begin(), round_host("rollout", documents.front()->where));
  }
  return said;
}

void add_hosts(std::vector<BatchField>& fields, SaidOfHosts said, const Library& library,
               const InputLimits& limits) {
  const bool base_has_round_host = needs_round_host(said);
  for (const BatchField& field : fields) read_said(field.path_and_values, said);
  each_writer(said, library, limits, [&](const CompanionWriter& writer, const Entries& stated) {
    writer.batch(fields, {stated, {}});
  });
  const bool written = std::ranges::any_of(fields, [](const BatchField& field) {
    return field.path_and_values.key.text == "rollout.host";
  });
  if (!needs_round_host(said) || base_has_round_host || written) return;
  const engine::Location where = fields[0].path_and_values.key.where;
  Node hosts = map_of({}, where);
  hosts.kind = Node::Kind::sequence;
  hosts.items = {host_node(nullptr, {}, where)};
  fields.push_back({{scalar("rollout.host", where), std::move(hosts)},
                    std::vector<std::uint32_t>(fields[0].order.size(), 0)});
}

}  // namespace sweep
