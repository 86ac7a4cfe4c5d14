#include "sweep/language/load_resources.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "engine/calibration/calibration.h"
#include "engine/workload/arrivals.h"
#include "sweep/input/read_text.h"
#include "sweep/language/calibration_files.h"
#include "sweep/space/powers.h"
#include "sweep/space/text_code.h"
#include "sweep/workload/acceptance_file.h"
#include "sweep/workload/trace_file.h"

namespace sweep {
namespace {

int trace_leaf() {
  static const int leaf = engine::leaf_table().find_leaf("load.trace");
  return leaf;
}

int curve_leaf() {
  static const int leaf = engine::leaf_table().find_leaf("load.curve");
  return leaf;
}

int acceptance_leaf() {
  static const int leaf = engine::leaf_table().find_leaf("speculation.acceptance_file");
  return leaf;
}

int acceptance_checksum_leaf() {
  static const int leaf = engine::leaf_table().find_leaf("speculation.acceptance_checksum");
  return leaf;
}

int checksum_leaf() {
  static const int leaf = engine::leaf_table().find_leaf("load.trace_checksum");
  return leaf;
}

// Checksum of the trace, read once a reading; empty after a mistake.
std::string trace_checksum(const std::string& path, const engine::Location& where,
                           Reading& reading) {
  const auto known = reading.resources->traces.find(path);
  if (known != reading.resources->traces.end()) return known->second->checksum;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    reading.mistake(where, "there is no trace '" + path + "'",
                    "paths are relative to the file that names them");
    return "";
  }
  const TraceResult trace = read_trace(path);
  if (!trace) {
    reading.mistakes.add(trace.mistakes());
    return "";
  }
  reading.resources->traces.emplace(path, *trace);
  return (*trace)->checksum;
}

// The same of a file of acceptances.
std::string acceptance_checksum(const std::string& path, const engine::Location& where,
                                Reading& reading) {
  const auto known = reading.resources->acceptances.find(path);
  if (known != reading.resources->acceptances.end()) return known->second.checksum;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    reading.mistake(where, "there is no file '" + path + "'",
                    "paths are relative to the file that names them");
    return "";
  }
  const engine::Result<engine::AcceptanceTable> table = read_acceptance_file(path);
  if (!table) {
    reading.mistakes.add(table.mistakes());
    return "";
  }
  return reading.resources->acceptances.emplace(path, *table).first->second.checksum;
}

// What a value of an axis sets a leaf to; empty where it does not.
std::string text_set(const Axis& axis, const Setting& setting, int leaf) {
  for (std::uint32_t i = setting.first_edit; i < setting.last_edit; ++i) {
    if (axis.edits[i].leaf == leaf) return std::get<std::string>(axis.edits[i].value);
  }
  return "";
}

}  // namespace

std::vector<Edit> leaf_edits(int leaf, engine::LeafValue value, const engine::Location& where,
                             Reading& reading) {
  check_calibration_name(engine::leaf_table().leaves[std::size_t(leaf)], value, where, reading);
  std::vector<Edit> edits;
  for (const Edit& edit : taken_back_by(leaf)) edits.push_back(edit);
  if (leaf == trace_leaf() && !std::get<std::string>(value).empty()) {
    edits.push_back(
        {checksum_leaf(), trace_checksum(std::get<std::string>(value), where, reading)});
  }
  if (leaf == acceptance_leaf() && !std::get<std::string>(value).empty()) {
    edits.push_back({acceptance_checksum_leaf(),
                     acceptance_checksum(std::get<std::string>(value), where, reading)});
  }
  if (leaf == curve_leaf() && !std::get<std::string>(value).empty()) {
    std::string reason;
    if (!engine::parse_rate_curve(std::get<std::string>(value), reason)) {
      reading.mistake(where, reason, "write 'second:req/s' pairs, as in '0:2, 60:10, 120:end'");
    }
  }
  edits.insert(edits.begin(), {leaf, std::move(value)});
  return edits;
}

bool is_checksum(int leaf) { return leaf == checksum_leaf() || leaf == acceptance_checksum_leaf(); }

SpaceParts by_content(SpaceParts parts) {
  const std::pair<int, int> files[] = {{trace_leaf(), checksum_leaf()},
                                       {acceptance_leaf(), acceptance_checksum_leaf()}};
  for (const auto& [path, checksum] : files) {
    const engine::Leaf& leaf = engine::leaf_at(path);
    engine::set_leaf(parts.base, leaf, engine::get_leaf(parts.base, engine::leaf_at(checksum)));
    for (Axis& axis : parts.axes) {
      for (const Setting& setting : axis.settings) {
        const std::string content = text_set(axis, setting, checksum);
        for (std::uint32_t i = setting.first_edit; i < setting.last_edit; ++i) {
          if (axis.edits[i].leaf == path) axis.edits[i].value = content;
        }
      }
    }
  }
  return parts;
}

void check_contents(const SpaceParts& parts, const engine::Location& where, Reading& reading) {
  struct Named {
    int path, checksum;  // leaves
    std::string (*content)(const std::string& path, const engine::Resources& resources);
  };
  // Empty of a file that could not be read, which is a mistake already.
  const Named all[] = {
      {trace_leaf(), checksum_leaf(),
       [](const std::string& path, const engine::Resources& resources) {
         const engine::Trace* trace = resources.find_trace(path);
         return trace == nullptr ? "" : trace->checksum;
       }},
      {acceptance_leaf(), acceptance_checksum_leaf(),
       [](const std::string& path, const engine::Resources& resources) {
         const auto table = resources.acceptances.find(path);
         return table == resources.acceptances.end() ? "" : table->second.checksum;
       }},
  };
  for (const Named& named : all) {
    const auto check = [&](const std::string& path, const std::string& stated) {
      const std::string found = named.content(path, *reading.resources);
      if (found.empty() || found == stated) return;
      reading.mistake(where,
                      "'" + path + "' is not what it was when this sweep was resolved (" + stated +
                          ", now " + found + ")",
                      "bring the file back, or run a sweep that names it into another folder");
    };
    check(engine::leaf_text(parts.base, engine::leaf_at(named.path)),
          engine::leaf_text(parts.base, engine::leaf_at(named.checksum)));
    for (const Axis& axis : parts.axes) {
      if (std::ranges::count(axis.edits, named.path, &Edit::leaf) == 0) continue;
      for (const Setting& setting : axis.settings) {
        check(text_set(axis, setting, named.path), text_set(axis, setting, named.checksum));
      }
    }
  }
}

void load_calibrations(engine::Scenario& base, const engine::Location& where, Reading& reading) {
  using Loaded = std::map<std::string, engine::Calibration>;
  std::string all;
  const auto load = [&](std::string_view room) {
    Loaded loaded;
    for (const auto& [name, file] : calibration_files(reading.library, room)) {
      const engine::Result<std::string> text = read_spec_text(file, reading.limits);
      if (!text) {
        reading.mistakes.add(text.mistakes());
        continue;
      }
      // What follows the device's own is about rows of tables.
      const std::string_view own = engine::calibrations_in(*text).front();
      auto calibration = engine::parse_calibration(own, file.string());
      if (!calibration) {
        reading.mistakes.add(calibration.mistakes());
        continue;
      }
      all += name + " " + calibration->checksum + "\n";
      // Files are found by their names, whatever the text says.
      calibration->name = name;
      loaded.emplace(name, std::move(calibration).value());
    }
    return loaded;
  };
  Loaded named = load("calibration");
  Loaded engines = load("calibration/engines");
  const std::string checksum = all.empty() ? "" : text_digest(all);
  std::string& stated = base.calibration.checksum;
  if (!stated.empty() && stated != checksum) {
    reading.mistake(where, "this sweep was resolved with other calibrations (" + stated + ")",
                    "the library now has " + (checksum.empty() ? "none" : checksum) +
                        "; remove 'calibration.checksum' to go on with these");
  }
  stated = checksum;

  const auto transfer = named.find(std::string(engine::kTransferName));
  const auto add = [&](Loaded& loaded, engine::Calibrations::Named& to) {
    for (auto& [name, calibration] : loaded) {
      const bool whole = transfer == named.end() || &calibration == &transfer->second;
      to.emplace(name,
                 std::make_shared<const engine::Calibration>(
                     whole ? calibration : engine::completed_by(calibration, transfer->second)));
    }
  };
  add(named, reading.resources->calibrations.by_name);
  add(engines, reading.resources->calibrations.by_engine);
}

}  // namespace sweep
