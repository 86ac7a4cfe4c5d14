#include "tools/launch/launch_flags.h"

#include <span>

namespace tools {
namespace {

// How the value of a column becomes words of a command.
enum class Form : std::uint8_t {
  number,      // flag value
  above_one,   // the same, left out where it is 1
  only_fp8,    // flag fp8, where the column says fp8
  switch_fp8,  // the flag alone, there
  when_true,   // the flag alone, where the column says true
  when_false,  // the flag alone, where the column says false
};

struct Rule {
  const char* column;
  const char* flag;
  Form form;
};

constexpr Rule kVllm[] = {
    {"parallel.pp", "--pipeline-parallel-size", Form::above_one},
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
    {"parallel.pp", "--pp-size", Form::above_one},
    {"quant.weights", "--quantization", Form::only_fp8},
    {"quant.kv", "--kv-cache-dtype fp8_e5m2", Form::switch_fp8},
    {"serving.max_num_seqs", "--max-running-requests", Form::number},
    {"serving.chunk", "--chunked-prefill-size", Form::number},
    {"serving.memory_utilization", "--mem-fraction-static", Form::number},
    {"serving.prefix_caching", "--disable-radix-cache", Form::when_false},
};
constexpr Rule kTensorRt[] = {
    {"parallel.pp", "--pp_size", Form::above_one},
    {"serving.max_num_seqs", "--max_batch_size", Form::number},
    {"serving.max_num_batched_tokens", "--max_num_tokens", Form::number},
    {"serving.memory_utilization", "--kv_cache_free_gpu_memory_fraction", Form::number},
};

// Whose kernels vLLM's experts of four-bit weights run is said before its command.
constexpr const char* kVllmMarlin = "VLLM_MXFP4_USE_MARLIN=1 ";

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
    case Form::when_true:
      return value == "true" ? flag : "";
    case Form::when_false:
      return value == "false" ? flag : "";
  }
  return "";
}

// Devices of a layer, replicas, and devices that share the experts, and how tokens get to these.
struct Layout {
  std::int64_t tp = 1, dp = 1, ep = 1;
  std::string exchange;
  bool shares_experts() const { return ep > tp; }  // among replicas, whose attention is their own
};

std::string words_above_one(const char* flag, std::int64_t value) {
  return value > 1 ? " " + std::string(flag) + " " + std::to_string(value) : "";
}

// Left to themselves, engines gather all tokens on all devices. vLLM takes one kind of kernels for all steps.
std::string exchange_words(const Layout& layout, LaunchEngine engine) {
  if (!layout.shares_experts() || layout.exchange == "gathered") return "";
  switch (engine) {
    case LaunchEngine::vllm:
      return layout.exchange == "normal" ? " --all2all-backend deepep_high_throughput"
                                         : " --all2all-backend deepep_low_latency";
    case LaunchEngine::sglang:
      return " --moe-a2a-backend deepep" + (layout.exchange.empty() || layout.exchange == "auto"
                                                ? ""
                                                : " --deepep-mode " + layout.exchange);
    case LaunchEngine::tensorrt_llm:
      return "";
  }
  return "";
}

// Engines count in different ways where replicas share experts: for vLLM each replica has its own devices; for SGLang and
// TensorRT-LLM all devices are one group of tensor parallelism, in which attention is data-parallel.
std::string layout_words(const Layout& layout, LaunchEngine engine) {
  const std::int64_t group = layout.shares_experts() ? layout.tp * layout.dp : layout.tp;
  switch (engine) {
    case LaunchEngine::vllm:
      return words_above_one("--tensor-parallel-size", layout.tp) +
             words_above_one("--data-parallel-size", layout.dp) +
             (layout.ep > 1 ? " --enable-expert-parallel" : "") + exchange_words(layout, engine);
    case LaunchEngine::sglang:
      return words_above_one("--tp-size", group) + words_above_one("--dp-size", layout.dp) +
             (layout.shares_experts() ? " --enable-dp-attention" : "") +
             words_above_one("--ep-size", layout.ep) + exchange_words(layout, engine);
    case LaunchEngine::tensorrt_llm:
      return words_above_one("--tp_size", group) + words_above_one("--ep_size", layout.ep);
  }
  return "";
}

// TensorRT-LLM has no flag for data-parallel attention (a file of options has), nor for replicas.
std::string layout_left_out(const Layout& layout, LaunchEngine engine) {
  if (engine != LaunchEngine::tensorrt_llm || layout.dp == 1) return "";
  if (!layout.shares_experts()) return "replicas";
  // Its exchange is chosen by variables of the environment.
  return layout.exchange == "gathered" ? "enable_attention_dp"
                                       : "enable_attention_dp, serving.expert_exchange";
}

// 16 bits are what checkpoints have as a rule. vLLM and SGLang make fp8 of them; any other format is the checkpoint's.
bool is_said(std::string_view format, LaunchEngine engine) {
  if (format == "bf16" || format == "fp16") return true;
  return format == "fp8" && engine != LaunchEngine::tensorrt_llm;
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

// Columns of formats, and what has them.
struct FormatColumn {
  const char* column;
  const char* what;
};
constexpr FormatColumn kFormats[] = {{"quant.weights", "weights"}, {"quant.kv", "the KV cache"}};

void add_name(std::string& names, std::string_view name) {
  if (names.ends_with(name)) return;
  names += (names.empty() ? "" : ", ") + std::string(name);
}

// The texts of a column in some rows; empty where it is not there or has none.
std::vector<std::string> texts_in(const RunRows& run, const char* column,
                                  const std::vector<std::uint32_t>& rows) {
  std::vector<std::string> found(rows.size());
  if (run.find(column) == nullptr) return found;
  const Coded values = run.texts(column);
  for (std::size_t i = 0; i < rows.size(); ++i) found[i] = std::string(values[rows[i]]);
  return found;
}

std::vector<Layout> layouts_in(const RunRows& run, const std::vector<std::uint32_t>& rows) {
  std::vector<Layout> layouts(rows.size());
  const auto read = [&](const char* column, std::int64_t Layout::*degree) {
    if (run.find(column) == nullptr) return;
    const std::vector<double> values = run.numbers(column);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (values[rows[i]] > 1) layouts[i].*degree = std::int64_t(values[rows[i]]);
    }
  };
  read("parallel.tp", &Layout::tp);
  read("parallel.dp", &Layout::dp);
  read("parallel.ep", &Layout::ep);
  const auto exchanges = texts_in(run, "serving.expert_exchange", rows);
  for (std::size_t i = 0; i < rows.size(); ++i) layouts[i].exchange = exchanges[i];
  return layouts;
}

// Rows whose experts have four-bit floating-point weights and run Marlin's kernels.
std::vector<bool> with_marlin(const RunRows& run, const std::vector<std::uint32_t>& rows) {
  const auto kernels = texts_in(run, "serving.four_bit_experts", rows);
  const auto formats = texts_in(run, "quant.weights", rows);
  std::vector<bool> found(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    found[i] = kernels[i] == "marlin" && formats[i] == "fp4";
  }
  return found;
}

std::vector<std::string> left_out_of(const RunRows& run, const std::vector<std::uint32_t>& rows,
                                     const std::vector<Layout>& layouts, LaunchEngine engine) {
  std::vector<std::string> left_out(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string of_layout = layout_left_out(layouts[i], engine);
    if (!of_layout.empty()) add_name(left_out[i], of_layout);
  }
  for (const auto& [column, what] : kFormats) {
    const auto formats = texts_in(run, column, rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (formats[i].empty() || is_said(formats[i], engine)) continue;
      add_name(left_out[i], std::string(what) + " in " + formats[i]);
    }
  }
  const std::vector<bool> marlin = with_marlin(run, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (marlin[i] && engine != LaunchEngine::vllm) add_name(left_out[i], "Marlin's kernels");
  }
  for (const auto& [column, without, name] : kNotSaid) {
    const auto values = texts_in(run, column, rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!values[i].empty() && values[i] != without) add_name(left_out[i], name);
    }
  }
  return left_out;
}

}  // namespace

std::vector<std::string> launch_commands(const RunRows& run, const std::vector<std::uint32_t>& rows,
                                         LaunchEngine engine) {
  const EngineCommand command = command_of(engine);
  const std::vector<Layout> layouts = layouts_in(run, rows);
  const std::vector<bool> marlin = with_marlin(run, rows);
  std::vector<std::string> lines = texts_in(run, "model", rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool said = marlin[i] && engine == LaunchEngine::vllm;
    lines[i] = (said ? kVllmMarlin : "") + std::string(command.start) + " " + lines[i] +
               layout_words(layouts[i], engine);
  }
  for (const Rule& rule : command.rules) {
    const auto values = texts_in(run, rule.column, rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!values[i].empty()) lines[i] += words_of(rule, values[i]);
    }
  }
  const auto left_out = left_out_of(run, rows, layouts, engine);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!left_out[i].empty()) lines[i] += "  # not in this command: " + left_out[i];
  }
  return lines;
}

}  // namespace tools
