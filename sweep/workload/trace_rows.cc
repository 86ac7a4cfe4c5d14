#include "sweep/workload/trace_rows.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/random.h"

namespace sweep {
namespace {

constexpr double kMostTokens = 1e8;
constexpr double kMostSeconds = 1e9;  // thirty years
constexpr double kMostSessions = 1e15;
constexpr double kMostPriorities = 1e6;
constexpr std::int64_t kUsualBlockTokens = 16;

struct NamedColumn {
  std::string_view name;
  TraceColumn column;
};
const NamedColumn kColumns[] = {
    {"arrival_s", {.field = TraceField::arrival}},
    {"prompt_tokens", {.field = TraceField::prompt}},
    {"output_tokens", {.field = TraceField::output}},
    {"session", {.field = TraceField::session}},
    {"priority", {.field = TraceField::priority}},
    {"tenant", {.field = TraceField::tenant}},
    {"model", {.field = TraceField::model}},
    {"hash_ids", {.field = TraceField::hashes}},
    {"request_id", {.field = TraceField::id}},
    // Azure
    {"TIMESTAMP", {.field = TraceField::arrival, .timestamp = true}},
    {"ContextTokens", {.field = TraceField::prompt}},
    {"GeneratedTokens", {.field = TraceField::output}},
    // Mooncake
    {"timestamp", {.field = TraceField::arrival, .scale = 1e-3, .block_tokens = 512}},
    {"input_length", {.field = TraceField::prompt}},
    {"output_length", {.field = TraceField::output}},
    // BurstGPT
    {"Timestamp", {.field = TraceField::arrival}},
    {"Request tokens", {.field = TraceField::prompt}},
    {"Response tokens", {.field = TraceField::output}},
    // Vidur
    {"num_prefill_tokens", {.field = TraceField::prompt}},
    {"num_decode_tokens", {.field = TraceField::output}},
    {"arrived_at", {.field = TraceField::arrival}},
    // LLMServingSim
    {"input_toks", {.field = TraceField::prompt}},
    {"output_toks", {.field = TraceField::output}},
    {"arrival_time_ns", {.field = TraceField::arrival, .scale = 1e-9}},
};

}  // namespace

TraceColumn trace_column(std::string_view name) {
  for (const NamedColumn& known : kColumns) {
    if (known.name == name) return known.column;
  }
  return {};
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

void TraceRowText::clear() {
  places.fill(0);
  session = -1;
  priority = 0;
  tenant = {};
  hashes.clear();
}

void TraceRowText::set(const TraceColumn& column, double value) {
  switch (column.field) {
    case TraceField::arrival:
      arrival = value * column.scale;
      return;
    case TraceField::prompt:
      prompt = value;
      return;
    case TraceField::output:
      output = value;
      return;
    case TraceField::session:
      session = value;
      return;
    case TraceField::priority:
      priority = value;
      return;
    case TraceField::none:
    case TraceField::tenant:
    case TraceField::model:
    case TraceField::hashes:
    case TraceField::id:
      return;
  }
}

TraceBuilder::TraceBuilder(std::string file, std::string_view whole)
    : file_(std::move(file)), whole_(whole), trace_(std::make_shared<engine::Trace>()) {}

void TraceBuilder::mistake(int line, int column, std::string what, std::string hint) {
  mistakes_.add({{file_, line, column}, std::move(what), std::move(hint)});
}

bool TraceBuilder::within(std::string_view text, int line) {
  if (std::int64_t(text.size()) <= line_bytes_) return true;
  mistakes_.add(beyond_limit({file_, line, 1}, "a line of more than " + limit_text(line_bytes_),
                             "line_bytes"));
  return false;
}

bool TraceBuilder::columns(const std::vector<Name>& names, int line) {
  std::int64_t block_tokens = kUsualBlockTokens;
  for (const Name& name : names) {
    const TraceColumn column = trace_column(name.text);
    if (column.field == TraceField::none) continue;
    std::string& known = names_[std::size_t(column.field)];
    if (!known.empty()) {
      mistake(line, name.place, fmt::format("columns '{}' and '{}' say the same", known, name.text),
              "rename or remove one of them");
    }
    known = name.text;
    if (column.block_tokens > 0) block_tokens = column.block_tokens;
  }
  for (const auto& [field, name] : {std::pair{TraceField::prompt, "prompt_tokens"},
                                    std::pair{TraceField::output, "output_tokens"}}) {
    if (has(field)) continue;
    mistake(line, 1, fmt::format("there is no column '{}'", name),
            "a trace has the columns arrival_s, prompt_tokens and output_tokens");
  }
  if (has(TraceField::hashes)) {
    trace_->first_block.push_back(0);
    trace_->block_tokens = block_tokens;
  }
  return mistakes_.empty();
}

void TraceBuilder::wrong(Checked& checked, TraceField field, std::string what, std::string hint) {
  checked.good = false;
  int place = checked.row.places[std::size_t(field)];
  if (place == TraceRowText::kAfterItsName) {
    const std::string quoted = '"' + names_[std::size_t(field)] + '"';
    place = int(checked.text.find(quoted)) + 1;
  }
  mistake(checked.line, std::max(place, 1), std::move(what), std::move(hint));
}

void TraceBuilder::check_whole(Checked& checked, TraceField field, double value, double low,
                               double high) {
  if (value >= low && value <= high && value == std::floor(value)) return;
  wrong(checked, field,
        fmt::format("{} is not a whole number from {:.0f} to {:.0f}", names_[std::size_t(field)],
                    low, high));
}

// Rows of JSON lines may leave fields out, but not those that every request must have; and what the
// first row has not, the trace has not.
void TraceBuilder::check_present(Checked& checked) {
  for (const NamedColumn& known : kColumns) {
    const TraceField field = known.column.field;
    if (has(field) || checked.row.places[std::size_t(field)] == 0) continue;
    wrong(checked, field, fmt::format("the first row has no '{}'", known.name),
          "give every row the same fields");
    return;
  }
  for (const TraceField field : {TraceField::arrival, TraceField::prompt, TraceField::output}) {
    const auto number = std::size_t(field);
    if (!has(field) || checked.row.places[number] != 0) continue;
    wrong(checked, field, fmt::format("the row has no '{}'", names_[number]));
  }
}

void TraceBuilder::check_arrival(Checked& checked) {
  const double arrival = checked.row.arrival;
  if (!(arrival >= 0 && arrival <= kMostSeconds)) {
    wrong(checked, TraceField::arrival, "the arrival is not a time from 0 to 1e9 s",
          "times are seconds from the first row on, and rows in their order");
  } else if (arrival < last_arrival_) {
    wrong(checked, TraceField::arrival, "the arrival is before that of the row above",
          "sort the rows by arrival");
  } else {
    last_arrival_ = arrival;
  }
}

void TraceBuilder::check_id(Checked& checked) {
  const auto [place, added] = id_lines_.try_emplace(std::string(checked.row.id), checked.line);
  if (added) return;
  wrong(checked, TraceField::id,
        fmt::format("request '{}' is in line {} already", checked.row.id, place->second));
}

// Blocks of another size than the trace is taken to have would be found, or missed, without a word. A row may list fewer blocks than its
// prompt has: what follows them is shared with no other.
void TraceBuilder::check_blocks(Checked& checked) {
  const std::int64_t tokens = trace_->block_tokens;
  const auto prompt = std::int64_t(checked.row.prompt);
  const std::int64_t blocks = (prompt + tokens - 1) / tokens;
  const auto listed = std::int64_t(checked.row.hashes.size());
  if (listed <= blocks) return;
  wrong(checked, TraceField::hashes,
        fmt::format("the row has {} hash_ids, and a prompt of {} tokens {} block{} of {}", listed,
                    prompt, blocks, blocks == 1 ? "" : "s", tokens),
        fmt::format("give one for each block of {} tokens", tokens));
}

void TraceBuilder::add_row(const TraceRowText& row, int line, std::string_view text) {
  Checked checked{row, line, text};
  check_present(checked);
  if (checked.good) {
    check_whole(checked, TraceField::prompt, row.prompt, 1, kMostTokens);
    check_whole(checked, TraceField::output, row.output, 1, kMostTokens);
    if (has(TraceField::arrival)) check_arrival(checked);
    if (checked.good && has(TraceField::hashes)) check_blocks(checked);
  }
  if (row.places[std::size_t(TraceField::session)] != 0) {
    check_whole(checked, TraceField::session, row.session, 0, kMostSessions);
  }
  check_whole(checked, TraceField::priority, row.priority, 0, kMostPriorities);
  if (row.places[std::size_t(TraceField::id)] != 0) check_id(checked);
  if (checked.good) append(row, text);
}

std::int32_t TraceBuilder::number_of(std::string_view name, Names& names) {
  auto found = names.find(name);
  if (found == names.end()) {
    found = names.emplace(std::string(name), std::int32_t(names.size())).first;
  }
  return found->second;
}

// Blocks are most of a trace that has them: their list grows to what the text so far promises for all of it. Doubled each time, it
// would take three times as much.
void TraceBuilder::make_room(std::size_t blocks, std::string_view text) {
  const std::size_t needed = trace_->blocks.size() + blocks;
  if (needed <= trace_->blocks.capacity()) return;
  const double read = double(text.data() + text.size() - whole_.data());
  const double promised = 1.02 * double(needed) * double(whole_.size()) / std::max(read, 1.0);
  constexpr std::size_t least_text = 2;  // a digit and what parts it from the next
  trace_->blocks.reserve(
      std::max(needed, std::min(std::size_t(promised), whole_.size() / least_text)));
}

void TraceBuilder::append(const TraceRowText& row, std::string_view text) {
  engine::Trace& trace = *trace_;
  if (has(TraceField::arrival)) trace.arrival.push_back(row.arrival);
  trace.prompt.push_back(std::int32_t(row.prompt));
  trace.output.push_back(std::int32_t(row.output));
  if (has(TraceField::session)) trace.session.push_back(std::int64_t(row.session));
  if (has(TraceField::priority)) trace.priority.push_back(std::int32_t(row.priority));
  if (has(TraceField::tenant)) trace.tenant.push_back(number_of(row.tenant, tenants_));
  if (has(TraceField::model)) {
    const std::int32_t number = number_of(row.model, models_);
    if (std::size_t(number) == trace.model_names.size()) trace.model_names.emplace_back(row.model);
    trace.model.push_back(number);
  }
  if (has(TraceField::hashes)) {
    // Chained: a block stands for everything before it too.
    std::uint64_t chain = 0;
    make_room(row.hashes.size(), text);
    for (const std::uint64_t id : row.hashes) {
      chain = engine::mixed_seed(chain, id);
      trace.blocks.push_back(chain);
    }
    trace.first_block.push_back(std::uint32_t(trace.blocks.size()));
  }
}

engine::Result<std::shared_ptr<const engine::Trace>> TraceBuilder::finish() {
  if (mistakes_.empty() && trace_->size() == 0) mistake(1, 1, "the trace has no rows");
  if (!mistakes_.empty()) return std::move(mistakes_).finish();
  trace_->checksum = fmt::format("{:016x}", XXH3_64bits(whole_.data(), whole_.size()));
  return std::shared_ptr<const engine::Trace>(trace_);
}

}  // namespace sweep
