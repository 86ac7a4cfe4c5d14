#include "tools/evaluate/evaluation_server.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "results/batch_sink.h"
#include "sweep/language/suggest.h"
#include "sweep/run/runner.h"
#include "sweep/space/space_parts.h"

namespace tools {
namespace {

// Bases that are kept: each holds the calibrations of the library.
constexpr std::size_t kMostBases = 8;

using engine::Mistake;

void send_error(const std::vector<Mistake>& mistakes, std::ostream& out) {
  nlohmann::json answer{{"error", engine::to_text(mistakes)},
                        {"scenarios", nlohmann::json::array()}};
  for (const Mistake& mistake : mistakes) {
    if (const std::int64_t scenario = scenario_of(mistake); scenario >= 0) {
      answer["scenarios"].push_back(scenario);
    }
  }
  out << answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n'
      << std::flush;
}

std::vector<Mistake> unknown_columns(const std::vector<std::string>& asked,
                                     const results::SchemaInputs& inputs) {
  std::vector<std::string> names;
  for (const results::Column& column : results::point_columns(inputs)) names.push_back(column.name);
  std::vector<Mistake> mistakes;
  for (const std::string& name : asked) {
    if (std::ranges::find(names, name) != names.end()) continue;
    mistakes.push_back({{"columns", 0, 0},
                        "the points have no column '" + name + "'",
                        sweep::suggestion(name, names, "its columns")});
  }
  return mistakes;
}

}  // namespace

engine::Result<sweep::BatchReader*> EvaluationServer::reader_of(const std::string& base) {
  const auto known =
      std::ranges::find(readers_, base, [](const auto& entry) { return entry.first; });
  if (known != readers_.end() && known->second.is_outdated()) {
    readers_.erase(known);
  } else if (known != readers_.end()) {
    readers_.splice(readers_.begin(), readers_, known);
    return &readers_.front().second;
  }
  auto opened = sweep::BatchReader::open(base, "base", library_);
  if (!opened) return opened.mistakes();
  readers_.emplace_front(base, std::move(opened).value());
  if (readers_.size() > kMostBases) readers_.pop_back();
  return &readers_.front().second;
}

void EvaluationServer::answer(const std::string& line, std::ostream& out) {
  const auto request = parse_request(line);
  if (!request) return send_error(request.mistakes(), out);
  const auto reader = reader_of(request->base);
  if (!reader) return send_error(reader.mistakes(), out);
  const auto space = (*reader)->read(request->fields);
  if (!space) return send_error(space.mistakes(), out);
  const results::SchemaInputs inputs = results::schema_inputs(*space);
  const std::vector<Mistake> unknown = unknown_columns(request->columns, inputs);
  if (!unknown.empty()) return send_error(unknown, out);

  results::BatchSink sink(inputs, results::BatchTables::points, request->columns);
  sweep::StopSignal never;
  sweep::Progress unseen;
  const sweep::IndexSet all(sweep::IndexRange{0, space->size()});
  sweep::run_points(*space, all, sink,
                    {.resources = space->parts().resources.get(), .threads = threads_}, never,
                    unseen);
  if (sink.rows() != space->size()) {
    return send_error(
        {{{"request", 0, 0}, "a value with 'when' leaves a scenario out", "state values alone"}},
        out);
  }
  const results::FileBytes file = sink.file();
  out << nlohmann::json{{"rows", sink.rows()}, {"bytes", file.bytes.size()}}.dump() << '\n'
      << file.bytes << std::flush;
}

void EvaluationServer::serve(std::istream& in, std::ostream& out) {
  std::string line;
  while (out && std::getline(in, line)) {
    if (!line.empty()) answer(line, out);
  }
}

}  // namespace tools
