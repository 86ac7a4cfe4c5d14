// What goes with what a sweep names: an engine has a host, a model has its number formats. A sweep that names the one and not the other
// means the usual companion, which is written beside it here, in a base or on an axis.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/language/batch_reader.h"
#include "sweep/language/node.h"
#include "sweep/language/trail.h"

namespace sweep {

using Entries = std::vector<NodeEntry>;

Node scalar(std::string text, const engine::Location& where);
Node map_of(Entries entries, const engine::Location& where);

// Puts what is said further in on top of what is said around it. A field that one place says twice stays there twice, which is a
// mistake to tell.
void add_fields(Entries& fields, const Entries& more);

// The name that these settings are, or are made from; null: the sweep states them itself.
const Node* name_in(const Node& settings);
// Whether these settings are whole, not only some that differ from the base's.
bool whole(const Node& settings);

// What counts where settings stand, and which sub-sweep that is.
struct Around {
  Entries said;
  Trail trail;
};

// What goes with settings, as paths (without the deployment they are of) and values.
class Companion {
 public:
  virtual ~Companion() = default;

  // The section of what is named.
  virtual std::string_view named() const = 0;
  // What goes with these settings, or with what they are made from.
  virtual std::optional<Entries> of(const Node& settings) const = 0;
  // That, as it is to be written, always with the same paths. `around` is what counts where these settings are.
  virtual Entries written(const std::optional<Entries>& found, const Node& settings,
                          const Around& around) const = 0;
  // Whether a sweep itself says something else of such a path for some of the points there, which counts before it.
  virtual bool yields(std::string_view path, const Around& around) const {
    static_cast<void>(path), static_cast<void>(around);
    return false;
  }
  // What counts inside a base whose settings have this companion, and takes out of the base what is to be written anew. `path` is
  // how the base calls a section of the deployment.
  using PathOf = std::function<std::string(std::string_view section)>;
  virtual Entries around(const std::optional<Entries>& found, const Entries& outer, Node& base,
                         const PathOf& path) const = 0;
};

// Takes what a base says of fields under this path out of it.
Entries take_fields(Node& base, std::string_view path);
// What the base of a sweep says of them.
Entries fields_of(const Node& sweep, std::string_view path);

// Which settings say what a deployment has: its own, or the main one's as well, where it has no other.
enum class NamedBy : std::uint8_t { own, main_too };

// Writes the companions of one deployment.
class CompanionWriter {
 public:
  CompanionWriter(std::string_view role, const Companion& companion, NamedBy named)
      : role_(role), companion_(companion), named_(named) {}

  // `around` is what counts around this sweep.
  void sweep(Node& node, Around around) const;
  void batch(std::vector<BatchField>& fields, const Around& around) const;
  // What counts inside the base of a sweep.
  Entries around_in(const Node& sweep, Entries said) const;
  bool of_main() const { return role_.empty(); }

 private:
  std::string path(std::string_view section) const;
  NodeEntry of_role(NodeEntry companion) const;
  bool is_settings(std::string_view key) const;
  const Node* settings_in(const Node& base) const;
  Entries base(Node& node, Around& around) const;
  bool axes(Node& node, const Around& around) const;
  bool axis(Node& item, const Around& around) const;
  bool beside_them(Node& item, const NodeEntry& said, const Around& around) const;
  bool drawn(Node& sample, const Around& around) const;
  bool members(Node& zip, const Around& around) const;
  void of_deployment(Node& item, const Around& outer) const;
  std::optional<Entries> companions_of(const Node& axis, const Around& around) const;

  std::string role_;
  const Companion& companion_;
  NamedBy named_;
};

}  // namespace sweep
