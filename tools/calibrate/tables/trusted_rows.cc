#include "tools/calibrate/tables/trusted_rows.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <regex>
#include <set>
#include <tuple>
#include <utility>

#include "tools/calibrate/tables/call_names.h"

namespace tools {
namespace {

using engine::Family;

// Rows of `family` (and `format`, on `architecture`; empty: any) are trusted where `impl` finds a
// place in their implementation. The first rule that speaks for a row decides.
struct Rule {
  Family family;
  const char* format;        // of dtype
  const char* architecture;  // of the device
  const char* impl;
  Across across;
};

constexpr const char* kAny = "";
constexpr const char* kNone = "$^";

constexpr Rule kRules[] = {
    // Every engine calls the same library for 16-bit products; they differ by noise.
    {Family::gemm, "bf16", kAny, kAny, Across::median},
    // vLLM 0.14 and all of vLLM's block-scaled tables have floors of 55 to 280 us.
    {Family::gemm, "fp8", kAny, "^(sglang_0.5.14|vllm_0.24|trtllm_1.3.0rc20)", Across::least},
    {Family::gemm, "fp8_block", "Blackwell", "^trtllm_1.3.0rc20", Across::least},
    {Family::gemm, "fp8_block", kAny, "^(sglang_0.5.14|trtllm_1.3.0rc20)", Across::least},
    {Family::gemm, "nvfp4", kAny, "^(vllm_0.24|trtllm_1.3.0rc20)", Across::least},
    {Family::gemm, kAny, kAny, "^trtllm", Across::least},
    // Triton, FlashAttention 4 previews and TensorRT-LLM's PyTorch flow are 15 to 35% slower.
    {Family::attn_prefill, "fp8", "Hopper", "^sglang_0.5.14:fa3", Across::least},
    {Family::attn_prefill, "fp8", kAny, "^(?!.*(triton|fa4|rc15))(sglang|trtllm)", Across::least},
    {Family::attn_prefill, "bf16", "Ampere", "^(sglang_0.5.10:flash_att|vllm_0.14.0:vllm_flash)",
     Across::median},
    {Family::attn_prefill, "bf16", "Hopper", "^(sglang_0.5.14:fa3|vllm_0.24.0:vllm_flash_attn_fa3)",
     Across::median},
    {Family::attn_prefill, "bf16", "Blackwell", "trtllmprefill", Across::median},
    // The others beat the memory's peak by half at sizes no cache holds, or fall back to one block a
    // head.
    {Family::attn_decode, kAny, "Ampere", "^vllm_0.14", Across::median},
    {Family::attn_decode, kAny, "Hopper", "^vllm_0.24.0:vllm_flash_attn_fa3", Across::median},
    {Family::attn_decode, kAny, "Blackwell", "vllm_flashinfer_trtllmdecode", Across::median},
    // Other engines' latent attention has floors of 100 us or falls back; on Ampere none splits keys.
    {Family::mla_decode, kAny, "Ampere", kNone, Across::median},
    {Family::mla_decode, kAny, kAny, "^trtllm", Across::median},
    {Family::mla_prefill, kAny, kAny, "^trtllm", Across::median},
    // Weights expanded to 16 bits before: no narrow product.
    {Family::mla_gen_pre, "fp8", kAny, "^(?!.*dequant_bf16)", Across::median},
    {Family::mla_gen_post, "fp8", kAny, "^(?!.*dequant_bf16)", Across::median},
    // rc15 ran hot; flashinfer's expert kernels of that version are 3 to 5 times slower.
    {Family::moe, "bf16", "Ampere", "^(?!.*(rc15|flashinfer_cutlass))", Across::least},
    // SGLang expands four-bit weights to 16 bits there first: three times slower.
    {Family::moe, "w4a16_mxfp4", "Hopper", "^(vllm_0.24|trtllm)", Across::least},
    {Family::moe, kAny, "Hopper",
     "^(?!.*(rc15|sglang_flashinfer_cutlass|vllm_0.14|modeloptfp8moe_flashinfer))", Across::least},
    {Family::moe, kAny, kAny, "^(?!.*(rc15|sglang_flashinfer_cutlass))", Across::least},
    // Eager rows carry the host's time.
    {Family::all_reduce, kAny, "Ampere", "^(?!.*eager)", Across::median},
    {Family::all_reduce, kAny, kAny, "^(?!.*(eager|vllm_0.14.0))", Across::median},
};

bool speaks(const Rule& rule, const KernelCall& call, const std::string& architecture) {
  const std::string_view format = rule.format, generation = rule.architecture;
  return rule.family == call.family && (format.empty() || format == engine::name_of(call.dtype)) &&
         (generation.empty() || generation == architecture);
}

const Rule* rule_for(const KernelCall& call, const std::string& architecture) {
  const auto* rule = std::ranges::find_if(
      kRules, [&](const Rule& candidate) { return speaks(candidate, call, architecture); });
  return rule == std::end(kRules) ? nullptr : rule;
}

// Rows that no rule about implementations can tell from good ones.
bool odd_row(const KernelCall& call, const std::string& impl, const std::string& architecture) {
  const bool ampere = architecture == "Ampere";
  // Of our own sweep, what steps are made of.
  if (is_kernel_library(impl)) {
    static const std::regex used{std::string(kOwnSweepImpl)};
    return !std::regex_search(impl, used);
  }
  switch (call.family) {
    case Family::attn_decode:
      // One block a head where every head has keys of its own: no split over the context.
      return ampere && call[Size::q_heads] == call[Size::kv_heads];
    case Family::moe:
      // Work does not shrink with expert parallelism; and few tokens all meet on the slowest rank.
      if (ampere && impl.starts_with("sglang_0.5.10") && call[Size::ep] > 1) return true;
      return call[Size::ep] > 1 && call[Size::tokens] < 8 && call.skew > 0 &&
             (impl.starts_with("trtllm_1.0.0") || impl.starts_with("vllm_0.14"));
    case Family::all_reduce:
    case Family::all_gather:
    case Family::reduce_scatter:
    case Family::all_to_all:
      return call.dtype == Format::int8;  // the same bytes again
    default:
      return false;
  }
}

}  // namespace

std::vector<MeasuredCall> trusted_calls(const KernelTable& table, const std::string& architecture) {
  // Each implementation is matched once a rule, not once a row.
  std::vector<std::vector<bool>> found(std::size(kRules));
  for (std::size_t i = 0; i < std::size(kRules); ++i) {
    const std::regex wanted(kRules[i].impl);
    for (const std::string& impl : table.impls) {
      found[i].push_back(std::regex_search(impl, wanted));
    }
  }
  KernelTable median{.text = {.file = table.text.file}, .impls = table.impls};
  KernelTable least = median;
  for (const KernelRecord& record : table.records) {
    const std::string& impl = table.impls[record.impl];
    if (odd_row(record.call, impl, architecture)) continue;
    const Rule* rule = is_kernel_library(impl) ? nullptr : rule_for(record.call, architecture);
    if (rule != nullptr && !found[std::size_t(rule - kRules)][record.impl]) continue;
    const bool fastest = rule != nullptr && rule->across == Across::least;
    (fastest ? least : median).records.push_back(record);
  }
  std::vector<MeasuredCall> calls;
  for (const auto& [part, across] : {std::pair{&median, Across::median}, {&least, Across::least}}) {
    auto gathered = gather_calls(*part, {.impl = ".", .across = across}).value();
    calls.insert(calls.end(), gathered.calls.begin(), gathered.calls.end());
  }
  return calls;
}

std::vector<MeasuredCall> engine_calls(const KernelTable& table, const std::string& name,
                                       const std::vector<HostTimed>& without) {
  const std::string_view engine = std::string_view(name).substr(0, name.find(':'));
  const bool one_kernel = engine.size() < name.size();
  // Implementations of the engine by what they compute.
  using Kind = std::tuple<Family, Format, Format>;
  const auto work_of = [](const KernelCall& call) {
    return Kind{call.family, call.dtype, call.kv_dtype};
  };
  std::map<Kind, std::set<std::uint32_t>> kernels;
  for (const KernelRecord& record : table.records) {
    if (engine_in(table.impls[record.impl]) == engine) {
      kernels[work_of(record.call)].insert(record.impl);
    }
  }
  KernelTable own{.text = {.file = table.text.file}, .impls = table.impls};
  for (const KernelRecord& record : table.records) {
    const std::string& impl = table.impls[record.impl];
    const bool collective = record.call[Size::ranks] > 0;
    if (engine_in(impl) != engine || collective) continue;
    if (is_host_timed(without, record)) continue;
    if (one_kernel && (impl != name || kernels[work_of(record.call)].size() < 2)) continue;
    own.records.push_back(record);
  }
  return gather_calls(own, {.impl = ".", .across = Across::least}).value().calls;
}

}  // namespace tools
