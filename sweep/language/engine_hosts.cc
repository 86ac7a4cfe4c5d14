#include "sweep/language/engine_hosts.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

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
  Hosts(const EngineKind& kind, const Library& library, const InputLimits& limits)
      : kind_(kind), library_(library), limits_(limits) {}

  std::string_view named() const override { return kind_.section; }

  std::optional<Entries> of(const Node& settings) const override {
    auto name = host_of(settings, kind_, library_, limits_);
    if (!name) return std::nullopt;
    return Entries{{scalar("host", settings.where), *std::move(name)}};
  }

  // Settings that differ from the base's leave its host, and whole ones without a host have round figures.
  Entries written(const std::optional<Entries>& found, const Node& settings,
                  const Entries& around) const override {
    Node node = map_of({}, settings.where);
    if (found || whole(settings)) {
      node = host_node(found ? &found->front().value : nullptr, around, settings.where);
    }
    return {{scalar("host", settings.where), std::move(node)}};
  }

  Entries around(const std::optional<Entries>&, const Entries& outer, Node& base,
                 const PathOf& path) const override {
    Entries fields = outer;
    add_fields(fields, take_fields(base, path("host")));
    return fields;
  }

 private:
  const EngineKind& kind_;
  const Library& library_;
  const InputLimits& limits_;
};

// A document that gives a deployment the host of round figures, for others to be put on top of.
std::unique_ptr<const Node> round_host(std::string_view role, const engine::Location& where) {
  Node base =
      map_of({{scalar(std::string(role) + ".host", where), host_node(nullptr, {}, where)}}, where);
  return std::make_unique<const Node>(map_of({{scalar("base", where), std::move(base)}}, where));
}

// Whether samples would be written by a host of training, unless another one is put below what is said.
bool needs_round_host(const SaidOfHosts& said) {
  return said.trains && !said.serves && said.samples && !said.named.contains("rollout");
}

// Hands `write` a writer for each deployment whose host is not named, and the fields that its host has beside its own.
template <class Write>
void each_writer(const SaidOfHosts& said, const Library& library, const InputLimits& limits,
                 Write&& write) {
  if (said.trains && said.serves) return;
  const Hosts engines(kEngines, library, limits);
  const bool main_is_named = said.named.contains("");
  if (!main_is_named) {
    const Hosts trained(kTraining, library, limits);
    write(CompanionWriter("", said.trains ? trained : engines, NamedBy::own), said.fields);
  }
  for (const std::string_view role : enum_names(engine::DeploymentRole{})) {
    if (role == "main" || said.named.contains(role)) continue;
    if (role == "rollout" && needs_round_host(said)) {
      write(CompanionWriter(role, engines, NamedBy::main_too), Entries{});
    } else if (!main_is_named) {
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
      writer.sweep(with, stated);
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
    writer.batch(fields, stated);
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
