// The scenarios that practitioners need predicted, whether there is a spec for them or not.
#pragma once

#include <array>
#include <string_view>

namespace tools {

struct SuiteScenario {
  std::string_view id;
  std::string_view what;
};

inline constexpr std::array kSuiteScenarios = std::to_array<SuiteScenario>({
    {"T1.1", "GPT-2 medium, data parallel on 8 A100"},
    {"T1.2", "Llama-2-7B, ZeRO-3 on 8 H100"},
    {"T1.3", "Llama-2-13B, FSDP on 64 A100"},
    {"T2.1", "Llama-2-13B, tensor parallel 4"},
    {"T2.2", "Llama-2-70B, tensor and data parallel"},
    {"T3.1", "Llama-2-70B, pipeline 4 x tensor 8, 1F1B"},
    {"T3.2", "GPT-3 175B, pipeline 8 x tensor 8"},
    {"T4.1", "FP8 pre-training of Llama-3-8B"},
    {"T4.2", "LoRA fine-tuning of Llama-2-70B"},
    {"T4.3", "sequence parallelism and recomputation, 22B to 1T"},
    {"T4.4", "Mixtral 8x7B, expert parallel, skewed routing"},
    {"T4.5", "Llama-3-8B at 128k tokens, context parallel 8"},
    {"I1.1", "one request, Llama-2-7B on an A100"},
    {"I1.2", "one request, Llama-2-13B, tensor parallel 1 and 2"},
    {"I1.3", "one request, Llama-2-70B on 8 H100"},
    {"I2.1", "Llama-2-7B, vLLM policy, Poisson arrivals"},
    {"I2.2", "Llama-2-13B, Sarathi chunked prefill"},
    {"I2.3", "Llama-2-70B on 32 H100, Sarathi"},
    {"I3.1", "serving at 128k tokens: KV is the limit"},
    {"I3.2", "paged KV under pressure"},
    {"I4.1", "two models share one GPU"},
    {"I5.1", "speculative decoding, 7B drafts for 70B"},
    {"I5.2", "prefix caching on a conversation trace"},
    {"I5.3", "INT4 weights against bf16"},
    {"I5.4", "disaggregated prefill and decode pools"},
    {"I5.5", "FP8 KV cache"},
    {"I5.6", "KV offload tiers: device, host, disk"},
    {"I5.7", "agentic sessions with tool gaps"},
    {"X1", "DeepSeek-V3 class, wide expert parallelism"},
    {"X2", "hybrid SSM and attention model, long context"},
    {"X3", "vision-language: image encoder, then LLM"},
    {"X4", "diffusion transformer, 50 steps"},
    {"X5", "retrieval-augmented: retrieve, re-rank, generate"},
    {"X6", "RLHF: rollout, reward, update on one cluster"},
    {"X7", "many LoRA adapters on one base"},
    {"X8", "autoscaling under a daily load curve"},
    {"X9", "power-capped serving"},
    {"X10", "heterogeneous prefill and decode devices"},
    {"X11", "a custom accelerator: cycles, energy, area"},
    {"X12", "an edge device, small LLM and a CNN"},
});

}  // namespace tools
