#include "sweep/workload/trace_rows.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>

#include "engine/base/random.h"

namespace sweep {
namespace {

constexpr std::size_t kMostMistakes = 20;
constexpr double kMostTokens = 1e8;

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
    // Azure
    {"TIMESTAMP", {.field = TraceField::arrival, .timestamp = true}},
    {"ContextTokens", {.field = TraceField::prompt}},
    {"GeneratedTokens", {.field = TraceField::output}},
    // Mooncake
    {"timestamp", {.field = TraceField::arrival, .scale = 1e-3, .block_tokens = 512}},
    {"input_length", {.field = TraceField::prompt}},
    {"output_length", {.field = TraceField::output}},
    // Vidur
    {"num_prefill_tokens", {.field = TraceField::prompt}},
    {"num_decode_tokens", {.field = TraceField::output}},
    // LLMServingSim
    {"input_toks", {.field = TraceField::prompt}},
    {"output_toks", {.field = TraceField::output}},
    {"arrival_time_ns", {.field = TraceField::arrival, .scale = 1e-9}},
};

std::string hex(std::uint64_t value) {
  std::string text(16, '0');
  for (int i = 0; i < 16; ++i)
    text[std::size_t(i)] = "0123456789abcdef"[(value >> (60 - 4 * i)) & 15];
  return text;
}

}  // namespace

TraceColumn trace_column(std::string_view name) {
  for (const NamedColumn& known : kColumns) {
    if (known.name == name) return known.column;
  }
  return {};
}

TraceBuilder::TraceBuilder(std::string file)
    : file_(std::move(file)), trace_(std::make_shared<engine::Trace>()) {}

bool TraceBuilder::full() const { return mistakes_.size() >= kMostMistakes; }

void TraceBuilder::mistake(int line, int column, std::string what, std::string hint) {
  if (full()) return;
  mistakes_.push_back({{file_, line, column}, std::move(what), std::move(hint)});
}

void TraceBuilder::columns(const std::vector<TraceColumn>& columns, int line) {
  for (const TraceColumn& column : columns) {
    present_[std::size_t(column.field)] = true;
    if (column.block_tokens > 0) implied_block_tokens_ = column.block_tokens;
  }
  const auto need = [&](TraceField field, const char* name) {
    if (!has(field)) {
      mistake(line, 1, std::string("there is no column '") + name + "'",
              "a trace has the columns arrival_s, prompt_tokens and output_tokens");
    }
  };
  need(TraceField::prompt, "prompt_tokens");
  need(TraceField::output, "output_tokens");
  if (has(TraceField::hashes)) trace_->first_block.push_back(0);
}

bool TraceBuilder::check_tokens(double value, const char* what, int line, int column) {
  if (std::isfinite(value) && value >= 1 && value <= kMostTokens && value == std::floor(value)) {
    return true;
  }
  mistake(line, column, std::string(what) + " is not a whole number of tokens from 1 to 100000000");
  return false;
}

std::int32_t TraceBuilder::number_of(std::string_view name, Names& names) {
  auto found = names.find(name);
  if (found == names.end()) {
    found = names.emplace(std::string(name), std::int32_t(names.size())).first;
  }
  return found->second;
}

void TraceBuilder::add_row(const TraceRowText& row, int line, const TracePlaces& places) {
  const auto place = [&places](TraceField field) { return places[std::size_t(field)]; };
  bool good = check_tokens(row.prompt, "prompt_tokens", line, place(TraceField::prompt));
  good = check_tokens(row.output, "output_tokens", line, place(TraceField::output)) && good;
  if (has(TraceField::arrival)) {
    const int column = place(TraceField::arrival);
    if (!std::isfinite(row.arrival) || row.arrival < 0) {
      mistake(line, column, "the arrival is not a time from 0 on");
      good = false;
    } else if (row.arrival < last_arrival_) {
      mistake(line, column, "the arrival is before that of the row above",
              "sort the rows by arrival");
      good = false;
    } else {
      last_arrival_ = row.arrival;
    }
  }
  if (!good) {
    hashes_.clear();
    return;
  }
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
    for (const std::uint64_t id : hashes_) {
      chain = engine::mixed_seed(chain, id);
      trace.blocks.push_back(chain);
    }
    trace.first_block.push_back(std::uint32_t(trace.blocks.size()));
    hashes_.clear();
  }
}

engine::Result<std::shared_ptr<const engine::Trace>> TraceBuilder::finish(
    std::string_view content, std::int64_t block_tokens) {
  if (mistakes_.empty() && trace_->size() == 0) mistake(1, 1, "the trace has no rows");
  if (!mistakes_.empty()) return mistakes_;
  if (has(TraceField::hashes)) {
    trace_->block_tokens = block_tokens > 0            ? block_tokens
                           : implied_block_tokens_ > 0 ? implied_block_tokens_
                                                       : 16;
  }
  trace_->checksum = hex(XXH3_64bits(content.data(), content.size()));
  return std::shared_ptr<const engine::Trace>(trace_);
}

}  // namespace sweep
