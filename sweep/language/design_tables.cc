#include "sweep/language/design_tables.h"

#include <algorithm>
#include <system_error>

#include "engine/base/check.h"
#include "engine/leaves/leaves.h"
#include "sweep/language/load_spec.h"
#include "sweep/language/parse_quantity.h"
#include "sweep/language/read_value.h"
#include "sweep/language/suggest.h"

namespace sweep {
namespace {

// What a table's entry says: the file, the columns that count (none named: all), and a condition.
struct Asked {
  const Node* file = nullptr;
  std::vector<std::string> columns;
  const Node* when = nullptr;
};

class TableExpansion {
 public:
  explicit TableExpansion(Reading& reading) : reading_(reading) {}

  // A list of axes, or whatever else stands there: what is wrong with that, its reader says.
  void list(Node& axes) {
    for (Node& item : axes.items) {
      for (NodeEntry& entry : item.entries) this->entry(entry);
    }
  }

 private:
  void entry(NodeEntry& entry) {
    if (entry.key.text == "table") return expand(entry);
    if (entry.key.text == "product") return list(entry.value);
    if (entry.key.text == "zip") {
      list(entry.value);
      for (NodeEntry& member : entry.value.entries) this->entry(member);
    }
    if (entry.key.text != "concat") return;
    for (Node& branch : entry.value.items) {
      list(branch);
      for (NodeEntry& said : branch.entries) {
        if (said.key.text == "axes") list(said.value);
      }
    }
  }

  void expand(NodeEntry& entry) {
    const Asked asked = asked_by(entry.value);
    Node zip{.kind = Node::Kind::map, .where = entry.value.where};
    if (asked.file != nullptr) add_columns(asked, zip);
    if (asked.when != nullptr) {
      zip.entries.push_back(
          {{.kind = Node::Kind::scalar, .text = "when", .where = asked.when->where}, *asked.when});
    }
    entry.key.text = "zip";
    entry.value = std::move(zip);
  }

  Asked asked_by(const Node& node) {
    if (node.is_scalar()) return {.file = &node};
    Asked asked;
    for (const NodeEntry& said : node.entries) {
      if (said.key.text == "file") {
        asked.file = &said.value;
      } else if (said.key.text == "when") {
        asked.when = &said.value;
      } else if (said.key.text == "columns" && said.value.is_sequence()) {
        for (const Node& column : said.value.items) asked.columns.push_back(column.text);
      } else {
        reading_.mistake(said.key.where, "table: unknown key '" + said.key.text + "'",
                         suggestion(said.key.text, {"file", "columns", "when"}, "known keys"));
      }
    }
    if (asked.file == nullptr) {
      reading_.mistake(node.where, "table names no file", "write '- table: designs.csv'");
    }
    return asked;
  }

  void add_columns(const Asked& asked, Node& zip) {
    const auto name = read_text(*asked.file, "table", reading_);
    if (!name || !reading_.may_read(asked.file->where)) return;
    const std::filesystem::path file = relative_to(asked.file->where, *name);
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) {
      return reading_.mistake(asked.file->where, "table: there is no file '" + *name + "'",
                              [&] { return similar_file_hint(file); });
    }
    reading_.files.push_back(file.string());
    engine::check(bool(reading_.library.table_reader()), "this program reads tables");
    engine::Result<Node> table = reading_.library.table_reader()(file);
    if (!table) return reading_.mistakes.add(table.mistakes());
    for (const std::string& wanted : asked.columns) {
      if (table->find(wanted) != nullptr) continue;
      std::vector<std::string> names;
      for (const NodeEntry& column : table->entries) names.push_back(column.key.text);
      reading_.mistake(asked.file->where, "table: there is no column '" + wanted + "'",
                       suggestion(wanted, names, "columns of the file"));
    }
    for (NodeEntry& column : table->entries) {
      const bool counts = asked.columns.empty() ||
                          std::ranges::find(asked.columns, column.key.text) != asked.columns.end();
      if (!counts) continue;
      if (complete(column)) zip.entries.push_back(std::move(column));
    }
  }

  // Numbers without a unit are in base units, as in the tables that a run writes. False: a cell is empty.
  bool complete(NodeEntry& column) {
    bool whole = true;
    const int number = engine::leaf_table().find_leaf(column.key.text);
    const bool quantity = number >= 0 && engine::leaf_at(number).kind == engine::LeafKind::quantity;
    for (Node& cell : column.value.items) {
      if (cell.text.empty()) {
        whole = false;
        reading_.mistake(cell.where, "'" + column.key.text + "' is empty in this design",
                         "a design states every column; designs that state others are a table of "
                         "their own, in another sub-sweep of a concat");
      } else if (quantity) {
        if (const auto value = parse_number(cell.text)) {
          cell.text = base_quantity(*value, engine::leaf_at(number).unit);
        }
      }
    }
    return whole;
  }

  static std::string base_quantity(double value, const engine::Unit& unit) {
    const std::string readable = format_quantity(value, unit);
    const auto read = parse_quantity(readable);
    return read && read->value == value ? readable : format_number(value) + " " + unit.symbol;
  }

  Reading& reading_;
};

}  // namespace

void expand_tables(Node& document, Reading& reading) {
  for (NodeEntry& entry : document.entries) {
    if (entry.key.text == "axes") TableExpansion(reading).list(entry.value);
  }
}

}  // namespace sweep
