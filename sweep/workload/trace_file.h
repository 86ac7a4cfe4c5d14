// Reads recorded requests: CSV and JSON lines, plain or gzipped, all mistakes located.
//
// Columns: arrival_s, prompt_tokens, output_tokens; optional session, priority, tenant, model, request_id
// (no two alike), and hash_ids (CSV: separated by spaces or semicolons; JSON lines: a list). The names of
// public traces are understood too: TIMESTAMP/ContextTokens/GeneratedTokens (Azure), timestamp/input_length/output_length in
// milliseconds (Mooncake), Timestamp/Request tokens/Response tokens in seconds (BurstGPT), num_prefill_tokens/num_decode_tokens/arrived_at (Vidur; often without arrivals),
// input_toks/output_toks/arrival_time_ns (LLMServingSim).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "engine/workload/trace.h"

namespace sweep {

using TraceResult = engine::Result<std::shared_ptr<const engine::Trace>>;

TraceResult read_trace(const std::string& path);

// The same from text in memory; `name` appears in mistakes and says the format by its ending.
TraceResult parse_trace(std::string_view text, const std::string& name);

}  // namespace sweep
