#include "tools/launch/launch_flags.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "engine/serving/settings/policy_table.h"
#include "tools/launch/checkpoint.h"
#include "tools/terminal/shell_word.h"

namespace tools {
namespace {

// How the value of a column becomes words of a command.
enum class Form : std::uint8_t {
  number,       // flag value
  unless_zero,  // the same, left out where it is 0
  above_one,    // the same, left out where it is 0 or 1
  when,         // the flag alone, where the column has a certain value
};

// A column of each rank is multiplied by as many as share experts.
constexpr const char* kRanks = "ranks";

struct Rule {
  const char* column;
  const char* flag;
  Form form;
  const char* value = "";  // when: the certain one
  const char* times = "";  // a column that the number is multiplied with, or `kRanks`
  // Only of points whose policy bounds a step by it; nullopt: of all.
  std::optional<engine::StepBudget> budget = std::nullopt;
};
constexpr auto kByTokens = engine::StepBudget::max_num_batched_tokens;
constexpr auto kByChunk = engine::StepBudget::chunk;

constexpr Rule kVllm[] = {
    {"parallel.pp", "--pipeline-parallel-size", Form::above_one},
    {"second_copies", "--enable-eplb --eplb-config.num_redundant_experts", Form::unless_zero},
    {"quant.weights", "--quantization fp8", Form::when, "fp8"},
    {"quant.kv", "--kv-cache-dtype fp8", Form::when, "fp8"},
    // Where these are auto, the engine sets them by itself.
    {"serving.max_num_seqs", "--max-num-seqs", Form::unless_zero},
    {"serving.max_num_batched_tokens", "--max-num-batched-tokens", Form::unless_zero, "", "",
     kByTokens},
    {"serving.chunk", "--max-num-batched-tokens", Form::unless_zero, "", "", kByChunk},
    {"serving.long_prefill_threshold", "--long-prefill-token-threshold", Form::unless_zero},
    {"serving.memory_utilization", "--gpu-memory-utilization", Form::unless_zero},
    {"serving.block_size", "--block-size", Form::number},
    {"serving.kv_blocks", "--num-gpu-blocks-override", Form::unless_zero},
    {"serving.stream_interval", "--stream-interval", Form::above_one},
    {"serving.prefix_caching", "--enable-prefix-caching", Form::when, "true"},
    {"serving.prefix_caching", "--no-enable-prefix-caching", Form::when, "false"},
    {"serving.ordering", "--scheduling-policy priority", Form::when, "priority"},
    {"serving.all_reduce", "--disable-custom-all-reduce", Form::when, "nccl"},
    {"serving.two_batch_overlap", "--enable-dbo", Form::when, "true"},
    {"host.mode", "--enforce-eager", Form::when, "eager"},
    {"host.largest_graph", "--max-cudagraph-capture-size", Form::unless_zero},
    {"host.captured_sizes", "--cudagraph-capture-sizes", Form::number},
    {"host.asynchronous", "--no-async-scheduling", Form::when, "false"},
};
constexpr Rule kSglang[] = {
    {"parallel.pp", "--pp-size", Form::above_one},
    {"second_copies", "--enable-eplb --ep-num-redundant-experts", Form::unless_zero},
    {"quant.weights", "--quantization fp8", Form::when, "fp8"},
    {"quant.kv", "--kv-cache-dtype fp8_e5m2", Form::when, "fp8"},
    // SGLang divides both by --dp-size where attention is data-parallel.
    {"serving.max_num_seqs", "--max-running-requests", Form::unless_zero, "", kRanks},
    {"serving.chunk", "--chunked-prefill-size", Form::unless_zero, "", kRanks, kByChunk},
    {"serving.max_num_batched_tokens", "--chunked-prefill-size", Form::unless_zero, "", kRanks,
     kByTokens},
    {"serving.memory_utilization", "--mem-fraction-static", Form::unless_zero},
    {"serving.block_size", "--page-size", Form::above_one},
    {"serving.kv_blocks", "--max-total-tokens", Form::unless_zero, "", "serving.block_size"},
    {"serving.stream_interval", "--stream-interval", Form::above_one},
    {"serving.receive_interval", "--scheduler-recv-interval", Form::above_one},
    {"serving.prefix_caching", "--disable-radix-cache", Form::when, "false"},
    {"serving.ordering", "--schedule-policy lpm", Form::when, "longest_prefix"},
    {"serving.ordering", "--enable-priority-scheduling", Form::when, "priority"},
    {"serving.admission.max_queue", "--max-queued-requests", Form::unless_zero},
    {"serving.all_reduce", "--disable-custom-all-reduce", Form::when, "nccl"},
    {"serving.two_batch_overlap", "--enable-two-batch-overlap", Form::when, "true"},
    {"host.mode", "--disable-cuda-graph", Form::when, "eager"},
    {"host.largest_graph", "--cuda-graph-max-bs", Form::unless_zero},
    {"host.captured_sizes", "--cuda-graph-bs", Form::number},
    {"host.asynchronous", "--disable-overlap-schedule", Form::when, "false"},
};
constexpr Rule kTensorRt[] = {
    {"parallel.pp", "--pp_size", Form::above_one},
    {"serving.max_num_seqs", "--max_batch_size", Form::unless_zero},
    {"serving.max_num_batched_tokens", "--max_num_tokens", Form::unless_zero, "", "", kByTokens},
    {"serving.chunk", "--max_num_tokens", Form::unless_zero, "", "", kByChunk},
    {"serving.memory_utilization", "--kv_cache_free_gpu_memory_fraction", Form::unless_zero},
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
  switch (rule.form) {
    case Form::number:
      return with_value;
    case Form::unless_zero:
      return value == "0" ? "" : with_value;
    case Form::above_one:
      return value == "0" || value == "1" ? "" : with_value;
    case Form::when:
      return value == rule.value ? flag : "";
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

// What makes a point what it is: a column, and the value that an engine has without being told, vLLM, SGLang and TensorRT-LLM.
struct Setting {
  const char* column;
  std::array<const char*, 3> own;
  const char* name = "";  // what it is called; empty: its column and value say it
};
constexpr std::array<const char*, 3> everywhere(const char* value) { return {value, value, value}; }
constexpr Setting kSettings[] = {
    {"serving.policy", {"vllm_v1", "sglang", "no_evict"}},
    {"speculation.method", everywhere("none"), "speculation"},
    {"prefill.present", everywhere("false"), "the prefill deployment"},
    {"encode.present", everywhere("false"), "the encoder"},
    {"neighbour.present", everywhere("false"), "the neighbour and its share of the memory"},
    {"load.adapters", everywhere("0"), "adapters"},
    {"parallel.cp", everywhere("1")},
    {"second_copies", everywhere("0"), "second copies of experts"},
    {"serving.replicas", everywhere("1"), "replicas"},
    {"serving.kv_blocks", everywhere("0")},
    // Of which memory the stated share is.
    {"serving.memory_share", {"whole", "model_and_kv", "rest"}},
    {"serving.block_size", {"16", "1", "32"}},
    {"serving.prefix_caching", everywhere("true")},
    {"serving.ordering", everywhere("fcfs")},
    {"serving.preemption", everywhere("as_policy")},
    {"serving.long_prefill_threshold", everywhere("0")},
    {"serving.max_output", everywhere("0")},
    {"serving.watermark", everywhere("0")},
    {"serving.attention", {"flash_attention", "planned", "planned"}},
    {"serving.mixed_attention", everywhere("auto")},
    {"serving.all_reduce", {"custom", "custom", "one_shot"}},
    {"serving.narrow_exchange", {"true", "true", "false"}},
    {"serving.narrow_outputs", {"none", "none", "all"}},
    {"serving.two_batch_overlap", everywhere("false")},
    {"serving.tiers.host", everywhere("0"), "KV tiers"},
    {"serving.tiers.disk", everywhere("0"), "KV tiers"},
    {"serving.tiers.peer", everywhere("0"), "KV tiers"},
    {"serving.tiers.store", everywhere("0"), "KV tiers"},
    {"serving.scaling.policy", everywhere("fixed"), "scaling"},
    {"serving.admission.max_queue", everywhere("0")},
    {"serving.admission.shed_late", everywhere("false")},
    {"serving.retention.policy", everywhere("lru")},
    {"serving.clock.mode", everywhere("full"), "the clock"},
    {"host.mode", everywhere("graph")},
    {"host.largest_graph", {"512", "256", "128"}},
    {"host.captured_sizes", everywhere("")},
    {"host.asynchronous", everywhere("true")},
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

// What only some models have, and engines hear of by their environment: before the command of vLLM, of others left out.
struct Special {
  std::string environment, left_out;
};
std::vector<Special> specials_in(const RunRows& run, const std::vector<std::uint32_t>& rows,
                                 LaunchEngine engine) {
  const auto four_bit = texts_in(run, "serving.four_bit_experts", rows);
  const auto formats = texts_in(run, "quant.weights", rows);
  const auto shared = texts_in(run, "serving.shared_experts", rows);
  const auto width = texts_in(run, "model.moe.shared_intermediate", rows);
  std::vector<Special> found(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto say = [&](const char* to_vllm, const char* name) {
      if (engine == LaunchEngine::vllm) {
        found[i].environment += to_vllm;
      } else {
        add_name(found[i].left_out, name);
      }
    };
    if (four_bit[i] == "marlin" && formats[i] == "fp4") {
      say("VLLM_MXFP4_USE_MARLIN=1 ", "Marlin's kernels");
    }
    // SGLang computes them with the chosen ones, which is nearest to one after the other; the others do so beside them.
    const bool has_shared = !width[i].empty() && width[i] != "0";
    const char* own = engine == LaunchEngine::sglang ? "after" : "beside";
    if (has_shared && !shared[i].empty() && shared[i] != own) {
      say("VLLM_DISABLE_SHARED_EXPERTS_STREAM=1 ", shared[i] == "after"
                                                       ? "serving.shared_experts: after"
                                                       : "serving.shared_experts: beside");
    }
  }
  return found;
}

// Engines that make fp8 of weights multiply in fp8 wherever the device can.
bool multiplies_otherwise(std::string_view weights, std::string_view activations,
                          std::string_view fp8_peak, LaunchEngine engine) {
  return engine != LaunchEngine::tensorrt_llm && weights == "fp8" && !activations.empty() &&
         activations != "fp8" && fp8_peak != "0";
}

bool says(LaunchEngine engine, const Setting& setting, std::string_view value) {
  return std::ranges::any_of(command_of(engine).rules, [&](const Rule& rule) {
    return std::string_view(rule.column) == setting.column && !words_of(rule, value).empty();
  });
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
  const auto weights = texts_in(run, "quant.weights", rows);
  const auto activations = texts_in(run, "quant.activations", rows);
  const auto fp8_peak = texts_in(run, "device.peak.fp8", rows);
  const auto specials = specials_in(run, rows, engine);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (multiplies_otherwise(weights[i], activations[i], fp8_peak[i], engine)) {
      add_name(left_out[i], "activations in " + activations[i]);
    }
    if (!specials[i].left_out.empty()) add_name(left_out[i], specials[i].left_out);
  }
  for (const Setting& setting : kSettings) {
    const auto values = texts_in(run, setting.column, rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string& value = values[i];
      if (value.empty() || value == setting.own[std::size_t(engine)]) continue;
      if (says(engine, setting, value)) continue;
      const bool named = *setting.name != '\0';
      add_name(left_out[i], named ? setting.name : std::string(setting.column) + ": " + value);
    }
  }
  return left_out;
}

// Of whole numbers, where both are there.
std::vector<std::string> products(std::vector<std::string> values,
                                  const std::vector<std::string>& times) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].empty() || times[i].empty()) continue;
    values[i] = std::to_string(std::stoll(values[i]) * std::stoll(times[i]));
  }
  return values;
}

std::vector<std::string> factors_of(const RunRows& run, const Rule& rule,
                                    const std::vector<std::uint32_t>& rows,
                                    const std::vector<Layout>& layouts) {
  if (std::string_view(rule.times) != kRanks) return texts_in(run, rule.times, rows);
  std::vector<std::string> ranks;
  for (const Layout& layout : layouts) {
    ranks.push_back(std::to_string(layout.shares_experts() ? layout.dp : 1));
  }
  return ranks;
}

// A policy that the table does not know states no other bound.
bool is_of_policy(const Rule& rule, std::string_view policy) {
  const auto* entry = std::ranges::find(engine::kPolicies, policy, &engine::PolicyEntry::name);
  return !rule.budget || entry == engine::kPolicies.end() || entry->budget == *rule.budget;
}

}  // namespace

std::vector<std::string> launch_commands(const RunRows& run, const std::vector<std::uint32_t>& rows,
                                         LaunchEngine engine, const sweep::Library& library) {
  const EngineCommand command = command_of(engine);
  const std::vector<Layout> layouts = layouts_in(run, rows);
  const auto specials = specials_in(run, rows, engine);
  const std::vector<Checkpoint> checkpoints = checkpoints_of(run, rows, library);
  std::vector<std::string> lines(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    lines[i] = specials[i].environment + std::string(command.start) + " " +
               shell_word(checkpoints[i].word) + layout_words(layouts[i], engine);
  }
  const auto policies = texts_in(run, "serving.policy", rows);
  for (const Rule& rule : command.rules) {
    auto values = texts_in(run, rule.column, rows);
    if (*rule.times != '\0') values = products(values, factors_of(run, rule, rows, layouts));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (values[i].empty() || !is_of_policy(rule, policies[i])) continue;
      lines[i] += words_of(rule, values[i]);
    }
  }
  const auto left_out = left_out_of(run, rows, layouts, engine);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!checkpoints[i].remark.empty()) lines[i] += "  # " + checkpoints[i].remark;
    if (!left_out[i].empty()) lines[i] += "  # not in this command: " + left_out[i];
  }
  return lines;
}

}  // namespace tools
