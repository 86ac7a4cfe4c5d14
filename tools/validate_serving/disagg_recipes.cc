#include "tools/validate_serving/disagg_recipes.h"

#include <array>

namespace tools {
namespace {

// How the workers that decode divide attention; experts lie on all 16 devices of one.
enum class AttentionOver { tensor_parallel, data_parallel };

struct PoolsRecipe {
  std::int64_t prompt;
  std::int64_t clients;
  std::int64_t readers;  // workers that read prompts, attention data-parallel
  std::int64_t workers;  // that decode
  AttentionOver attention;
  std::int64_t seats;  // of a worker, or of each of its 16 devices where attention is data-parallel
  std::int64_t drafts;  // by the model's own heads; 0: none
};

// trtllm/h100-fp8, one line a file. Clients are workers times 1.2 times seats, rounded up.
constexpr std::array kTrtllm = std::to_array<PoolsRecipe>({
    {1024, 6, 1, 3, AttentionOver::tensor_parallel, 1, 0},
    {1024, 6, 1, 3, AttentionOver::tensor_parallel, 1, 3},
    {1024, 9, 1, 3, AttentionOver::tensor_parallel, 2, 0},
    {1024, 9, 1, 3, AttentionOver::tensor_parallel, 2, 3},
    {1024, 30, 1, 3, AttentionOver::tensor_parallel, 8, 0},
    {1024, 30, 1, 3, AttentionOver::tensor_parallel, 8, 3},
    {1024, 60, 1, 3, AttentionOver::tensor_parallel, 16, 0},
    {1024, 60, 1, 3, AttentionOver::tensor_parallel, 16, 3},
    {1024, 117, 1, 3, AttentionOver::tensor_parallel, 32, 3},
    {1024, 231, 1, 3, AttentionOver::data_parallel, 4, 0},
    {1024, 231, 1, 3, AttentionOver::data_parallel, 4, 3},
    {1024, 462, 1, 3, AttentionOver::data_parallel, 8, 0},
    {1024, 462, 1, 3, AttentionOver::tensor_parallel, 128, 3},
    {1024, 615, 1, 1, AttentionOver::data_parallel, 32, 2},
    {1024, 924, 1, 3, AttentionOver::data_parallel, 16, 0},
    {1024, 1229, 1, 1, AttentionOver::data_parallel, 64, 1},
    {1024, 1845, 1, 3, AttentionOver::data_parallel, 32, 0},
    {1024, 4916, 2, 1, AttentionOver::data_parallel, 256, 0},
    {8192, 6, 1, 3, AttentionOver::tensor_parallel, 1, 0},
    {8192, 6, 1, 3, AttentionOver::tensor_parallel, 1, 3},
    {8192, 9, 1, 3, AttentionOver::tensor_parallel, 2, 0},
    {8192, 9, 1, 3, AttentionOver::tensor_parallel, 2, 3},
    {8192, 30, 1, 3, AttentionOver::tensor_parallel, 8, 0},
    {8192, 30, 1, 3, AttentionOver::tensor_parallel, 8, 3},
    {8192, 77, 1, 1, AttentionOver::data_parallel, 4, 3},
    {8192, 78, 1, 2, AttentionOver::tensor_parallel, 32, 3},
    {8192, 154, 1, 2, AttentionOver::tensor_parallel, 64, 0},
    {8192, 154, 2, 1, AttentionOver::data_parallel, 8, 3},
    {8192, 308, 2, 1, AttentionOver::data_parallel, 16, 0},
});

constexpr std::int64_t kOfAWorker = 16;  // devices

engine::Parallelism layout(AttentionOver attention) {
  engine::Parallelism parallel;
  (attention == AttentionOver::data_parallel ? parallel.dp : parallel.tp) = kOfAWorker;
  parallel.ep = kOfAWorker;
  parallel.expert_copies = engine::ExpertCopies::fewest;  // recipes start no balancer
  return parallel;
}

// Between the answers of about 1,024 tokens and those of 8,192 that the benchmark asks for.
constexpr std::int64_t kLongAnswer = 4096;

// DeepSeek-V3's report gives 85 to 90% for the first draft; nobody says how often further ones hold. With 85% rows of long
// answers are right, and those of short ones are too fast: 65% is what the one of a single client takes under SGLang.
void add_drafts(engine::Scenario& scenario, std::int64_t drafts) {
  if (drafts == 0) return;
  scenario.speculation.method = engine::SpeculationMethod::mtp;
  scenario.speculation.tokens = drafts;
  scenario.speculation.acceptance = scenario.load.lengths.output > kLongAnswer ? "0.85" : "0.65";
}

}  // namespace

std::vector<engine::Scenario> sglang_recipes(const engine::Scenario& scenario) {
  // "max-tp": the worker that reads has two prompts at a time, in pieces of 2,048 tokens. One worker decodes, or two where prompts and
  // answers are short.
  engine::Scenario plain = scenario;
  engine::ServingSettings& readers = plain.prefill.deployment.serving;
  readers.max_num_seqs = 2;
  readers.chunk = readers.max_num_batched_tokens = 2048;
  readers.memory_utilization = 0.6;
  plain.serving.memory_utilization = 0.9;
  plain.serving.max_num_seqs = plain.host.largest_graph = 128;
  readers.prefix_caching = plain.serving.prefix_caching = false;
  const engine::Lengths& lengths = plain.load.lengths;
  if (lengths.prompt + lengths.output < kLongAnswer) plain.serving.replicas = 2;
  engine::Scenario drafted = plain;
  add_drafts(drafted, 2);
  return {plain, drafted};
}

std::vector<engine::Scenario> trtllm_recipes(const engine::Scenario& scenario,
                                             std::int64_t prompt) {
  std::vector<engine::Scenario> found;
  for (const PoolsRecipe& recipe : kTrtllm) {
    if (recipe.prompt != prompt || recipe.clients != scenario.load.clients) continue;
    engine::Scenario& one = found.emplace_back(scenario);
    engine::Deployment& readers = one.prefill.deployment;
    one.parallel = layout(recipe.attention);
    readers.parallel = layout(AttentionOver::data_parallel);
    one.quant.kv = readers.quant.kv = engine::Dtype::fp8;
    one.serving.replicas = recipe.workers;
    one.serving.max_num_seqs = recipe.seats;
    readers.serving.replicas = recipe.readers;
    // Long prompts one by one, short ones two by two; no scheduling beside the device.
    const bool is_long = prompt > 1024;
    readers.serving.max_num_seqs = is_long ? 1 : 2;
    readers.serving.max_num_batched_tokens = is_long ? 8224 : 2048;
    readers.serving.memory_utilization = is_long ? 0.3 : 0.6;
    readers.host.asynchronous = false;
    one.serving.prefix_caching = readers.serving.prefix_caching = false;
    // TRTLLM_FORCE_ALLTOALL_METHOD: DeepEP
    one.serving.expert_exchange = readers.serving.expert_exchange = engine::ExpertTravel::normal;
    add_drafts(one, recipe.drafts);
  }
  return found;
}

}  // namespace tools
