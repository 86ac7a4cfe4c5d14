#include "sweep/language/other_words.h"

#include <algorithm>
#include <iterator>

namespace sweep {
namespace {

struct OtherWord {
  std::string_view said, advice;
};
constexpr OtherWord kOtherWords[] = {
    {"train.seq_length", "write train.sequence"},
    {"train.seq_len", "write train.sequence"},
    {"train.sequence_length", "write train.sequence"},
    {"train.max_seq_length", "write train.sequence"},
    {"train.gradient_accumulation",
     "it follows: train.global_batch / (train.micro_batch x parallel.dp)"},
    {"train.gradient_accumulation_steps",
     "it follows: train.global_batch / (train.micro_batch x parallel.dp)"},
    {"train.fsdp", "write train.zero: 3; train.zero_group shards inside a node only"},
    {"train.zero_stage", "write train.zero"},
    {"train.distributed_optimizer", "write train.zero: 1"},
    {"train.gradient_checkpointing", "write train.recompute: full"},
    {"train.activation_checkpointing", "write train.recompute: full"},
    {"train.recompute: selective", "write attention, which is what Megatron calls selective"},
    {"train.recompute: core_attn", "write attention"},
    {"train.recompute: moe", "write experts, which does norms and activations again, too"},
    {"train.recompute: mla_up_proj",
     "write up_projections, which does norms and activations again, too"},
    {"train.fp8_param_gather", "write train.narrow_parameters: true"},
    {"train.fp8_param", "write train.narrow_parameters: true"},
    {"train.schedule: zb", "write zero_bubble"},
    {"train.schedule: zb_h1", "write zero_bubble"},
    {"train.schedule: dualpipev", "write dualpipe_v"},
    {"train.enable_cuda_graph", "write train.cuda_graphs: true"},
    {"train.context: ulysses", "write all_to_all"},
    {"train.context: p2p", "write ring"},
    {"train.method: sft", "write full; train.document_length packs samples"},
    {"parallel.fsdp", "write train.zero: 3; parallel.dp says how many devices share"},
    {"parallel.sp", "write train.sequence_parallel: true"},
    {"parallel.etp",
     "it follows: experts are split over the parallel.tp / parallel.ep devices left"},
    {"serving.router: least_loaded", "write least_outstanding, or least_tokens"},
    {"serving.router: session_affine", "write sticky"},
    {"serving.router: session_affinity", "write sticky"},
    {"load.qps", "write load.rate, as in '10 req/s'"},
    {"load.request_rate", "write load.rate, as in '10 req/s'"},
    {"load.concurrency", "write load.arrivals: closed, and load.clients"},
    {"load.input_len", "write load.lengths.prompt"},
    {"load.output_len", "write load.lengths.output"},
    {"load.num_prompts", "write load.requests"},
    {"slo.ttft", "say of which requests: ttft_p99, or another of ttft_mean, p50, p90, p95"},
    {"slo.tpot", "say of which requests: tpot_p99, or another of tpot_mean, p50, p90, p95"},
    {"slo.itl", "say of which gaps: itl_p99, or another of itl_mean, p50, p90, p95"},
    {"slo.e2e", "say of which requests: e2e_p99, or another of e2e_mean, p50, p90, p95"},
    {"serving.kv_cache_dtype", "write quant.kv"},
    {"serving.quantization", "write quant.weights and quant.activations"},
    {"serving.max_model_len", "write model.max_context"},
    {"serving.num_gpu_blocks", "write serving.kv_blocks"},
    {"serving.gpu_memory_utilization", "write serving.memory_utilization"},
    {"serving.tensor_parallel_size", "write parallel.tp"},
    {"serving.enable_prefix_caching", "write serving.prefix_caching"},
    {"serving.tiers.cpu", "write serving.tiers.host"},
    {"serving.tiers.remote", "write serving.tiers.store"},
    {"serving.failures.mttf", "write mean_time_to_failure"},
    {"serving.failures.mtbf", "write mean_time_to_failure"},
    {"serving.failures.mttr", "write mean_time_to_repair"},
    {"sharing.mode: mps", "write spatial"},
    {"sharing.mode: time_slicing", "write time_slices"},
    {"speculation.num_speculative_tokens", "write speculation.tokens"},
    {"speculation.model", "write speculation.draft"},
    {"speculation.method: eagle2", "write heads, with speculation.tree"},
    {"speculation.method: eagle", "write heads"},
    {"speculation.method: eagle3", "write heads"},
    {"speculation.method: medusa", "write heads"},
    {"quant.weights: fp8_block", "write fp8 with quant.group: 128, which is the default"},
    {"quant.weights: mxfp8", "write fp8 with quant.group: 32"},
    {"quant.weights: mxfp4", "write fp4 with quant.group: 32"},
    {"quant.weights: nvfp4", "write fp4 with quant.group: 16"},
    {"quant.weights: awq", "write int4 and leave quant.activations in 16 bits"},
    {"quant.weights: gptq", "write int4 and leave quant.activations in 16 bits"},
    {"quant.kv: fp8_e4m3", "write fp8"},
    {"quant.kv: fp8_e5m2", "write fp8"},
    {"quant.activations: fp8_block", "write fp8 with quant.group: 128, which is the default"},
    {"quant.activations: mxfp8", "write fp8 with quant.group: 32"},
    {"quant.activations: mxfp4", "write fp4 with quant.group: 32"},
    {"quant.activations: nvfp4", "write fp4 with quant.group: 16"},
};

}  // namespace

std::string_view advice_on_word(std::string_view said) {
  const auto* const found = std::ranges::find_if(kOtherWords, [said](const OtherWord& word) {
    return said == word.said ||
           (said.ends_with(word.said) && said[said.size() - word.said.size() - 1] == '.');
  });
  return found == std::end(kOtherWords) ? std::string_view{} : found->advice;
}

}  // namespace sweep
