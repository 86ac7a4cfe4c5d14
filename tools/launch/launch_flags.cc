#include "tools/launch/launch_flags.h"

#include <span>

namespace tools {
namespace {

// How the value of a column becomes words of a command.
enum class Form : std::uint8_t {
  number,        // flag value
  above_one,     // the same, left out where it is 1
  only_fp8,      // flag fp8, where the column says fp8
  switch_fp8,    // the flag alone, there
  switch_above,  // the flag alone, where the column says more than 1
  when_true,     // the flag alone, where the column says true
  when_false,    // the flag alone, where the column says false
};

struct Rule {
  const char* column;
  const char* flag;
  Form form;
};

constexpr Rule kVllm[] = {
    {"parallel.tp", "--tensor-parallel-size", Form::above_one},
    {"parallel.pp", "--pipeline-parallel-size", Form::above_one},
    {"parallel.dp", "--data-parallel-size", Form::above_one},
    {"parallel.ep", "--enable-expert-parallel", Form::switch_above},
    {"quant.weights", "--quantization", Form::only_fp8},
    {"quant.kv", "--kv-cache-dtype", Form::only_fp8},
    {"serving.max_num_seqs", "--max-num-seqs", Form::number},
    {"serving.max_num_batched_tokens", "--max-num-batched-tokens", Form::number},
    {"serving.memory_utilization", "--gpu-memory-utilization", Form::number},
    {"serving.block_size", "--block-size", Form::number},
    {"serving.prefix_caching", "--enable-prefix-caching", Form::when_true},
    {"serving.prefix_caching", "--no-enable-prefix-caching", Form::when_false},
};
constexpr Rule kSglang[] = {
    {"parallel.tp", "--tp-size", Form::above_one},
    {"parallel.pp", "--pp-size", Form::above_one},
    {"parallel.dp", "--dp-size", Form::above_one},
    {"parallel.ep", "--ep-size", Form::above_one},
    {"quant.weights", "--quantization", Form::only_fp8},
    {"quant.kv", "--kv-cache-dtype fp8_e5m2", Form::switch_fp8},
    {"serving.max_num_seqs", "--max-running-requests", Form::number},
    {"serving.chunk", "--chunked-prefill-size", Form::number},
    {"serving.memory_utilization", "--mem-fraction-static", Form::number},
    {"serving.prefix_caching", "--disable-radix-cache", Form::when_false},
};
constexpr Rule kTensorRt[] = {
    {"parallel.tp", "--tp_size", Form::above_one},
    {"parallel.pp", "--pp_size", Form::above_one},
    {"parallel.ep", "--ep_size", Form::above_one},
    {"serving.max_num_seqs", "--max_batch_size", Form::number},
    {"serving.max_num_batched_tokens", "--max_num_tokens", Form::number},
    {"serving.memory_utilization", "--kv_cache_free_gpu_memory_fraction", Form::number},
};

struct EngineCommand {
  const char* start;  // before the model's name
  std::span<const Rule> rules;
};
EngineCommand command_of(LaunchEngine engine) {
  switch (engine) {
    case LaunchEngine::vllm:
      return {"vllm serve", kVllm};
    case LaunchEngine::sglang:
      return {"python -m sglang.launch_server --model-path", kSglang};
    case LaunchEngine::tensorrt_llm:
      return {"trtllm-serve", kTensorRt};
  }
  return {};
}

// Empty: the engine's own default will do.
std::string words_of(const Rule& rule, std::string_view value) {
  const std::string flag = std::string(" ") + rule.flag;
  const std::string with_value = flag + " " + std::string(value);
  const bool is_one = value.empty() || value == "1" || value == "0";
  switch (rule.form) {
    case Form::number:
      return with_value;
    case Form::above_one:
      return is_one ? "" : with_value;
    case Form::only_fp8:
      return value.starts_with("fp8") ? flag + " fp8" : "";
    case Form::switch_fp8:
      return value.starts_with("fp8") ? flag : "";
    case Form::switch_above:
      return is_one ? "" : flag;
    case Form::when_true:
      return value == "true" ? flag : "";
    case Form::when_false:
      return value == "false" ? flag : "";
  }
  return "";
}

// What no such command says, by a column and its value where there is none of it.
struct Mechanism {
  const char* column;
  const char* without;
  const char* name;
};
constexpr Mechanism kNotSaid[] = {
    {"speculation.method", "none", "speculation"},
    {"prefill.present", "false", "the prefill deployment"},
    {"encode.present", "false", "the encoder"},
    {"neighbour.present", "false", "the neighbour and its share of the memory"},
    {"load.adapters", "0", "adapters"},
    {"serving.replicas", "1", "replicas"},
    {"serving.kv_blocks", "0", "serving.kv_blocks"},
    {"serving.tiers.host", "0", "KV tiers"},
    {"serving.tiers.disk", "0", "KV tiers"},
    {"serving.tiers.peer", "0", "KV tiers"},
    {"serving.tiers.store", "0", "KV tiers"},
    {"serving.scaling.policy", "fixed", "scaling"},
    {"serving.clock.mode", "full", "the clock"},
};

void add_name(std::string& names, std::string_view name) {
  if (names.ends_with(name)) return;
  names += (names.empty() ? "" : ", ") + std::string(name);
}

}  // namespace

std::vector<std::string> launch_commands(const RunRows& run, const std::vector<std::uint32_t>& rows,
                                         LaunchEngine engine) {
  const EngineCommand command = command_of(engine);
  const Coded model = run.texts("model");
  std::vector<std::string> lines;
  for (const std::uint32_t row : rows) {
    lines.push_back(std::string(command.start) + " " + std::string(model[row]));
  }
  for (const Rule& rule : command.rules) {
    if (run.find(rule.column) == nullptr) continue;
    const Coded values = run.texts(rule.column);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (values.codes[rows[i]] != Coded::kNone) lines[i] += words_of(rule, values[rows[i]]);
    }
  }
  std::vector<std::string> left_out(rows.size());
  for (const auto& [column, without, name] : kNotSaid) {
    if (run.find(column) == nullptr) continue;
    const Coded values = run.texts(column);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool stated = values.codes[rows[i]] != Coded::kNone;
      if (stated && values[rows[i]] != without) add_name(left_out[i], name);
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!left_out[i].empty()) lines[i] += "  # not in this command: " + left_out[i];
  }
  return lines;
}

}  // namespace tools
