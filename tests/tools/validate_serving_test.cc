// Rows of serving tables become scenarios, and what cannot be predicted says why.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tools/validate_serving/argonne_cases.h"
#include "tools/validate_serving/overview_cases.h"
#include "tools/validate_serving/silicon_cases.h"

namespace tools {
namespace {

namespace fs = std::filesystem;

const sweep::Library kLibrary({paths::specs()});

fs::path folder_of_this_test() {
  static const tests::TemporaryFolder all;
  const fs::path folder =
      all.path() / testing::UnitTest::GetInstance()->current_test_info()->name();
  fs::create_directories(folder);
  return folder;
}

// What trtllm-bench sets for 1,000 + 1,000 tokens of Llama 3.3 70B on two H100s: 170 GB less 71 GB of weights, of which 95%
// hold 287 requests of 2,000 tokens at 164 kB. Rounded up to 128s that is 384 seats, and 574 tokens a step are raised
// to 2,048.
TEST(ValidateServing, SeatsFollowFromMemoryAsTheBenchmarkSetsThem) {
  const fs::path folder = folder_of_this_test();
  std::ofstream(folder / "rows.csv")
      << "doc,model,gpu,parallel,weight_dtype,isl,osl,num_requests,output_tps_total\n"
         "v1.0,Llama-3.3-70B,H100,TP2PP1,FP8,1000,1000,3000,4000\n"
         "v1.0,Llama-3.3-70B,H100,TP2PP1,FP8,20000,2000,1000,400\n"
         "v1.0,Llama-4-Scout-17B-16E,H100,TP4PP1,FP8,1000,1000,3000,12000\n"
         "v1.2,GPT-OSS-120B,H100,DEP4,FP8,1000,1000,3000,18000\n";
  const auto cases = overview_cases(folder, kLibrary);
  ASSERT_TRUE(cases) << engine::to_text(cases.mistakes());
  ASSERT_EQ(cases->size(), 4u);
  const engine::Scenario& dense = cases->front().scenario;
  EXPECT_EQ(dense.serving.max_num_seqs, 384);
  EXPECT_EQ(dense.serving.max_num_batched_tokens, 2048);
  EXPECT_EQ(dense.host.captured_sizes, "1 2 4 8 16 32 64 128 256 384");
  EXPECT_EQ(dense.parallel.tp, 2);
  EXPECT_EQ(dense.quant.kv, engine::Dtype::fp8);
  // A prompt is not cut: it has room beside all seats.
  const engine::ServingSettings& long_prompts = cases->at(1).scenario.serving;
  EXPECT_EQ(long_prompts.max_num_batched_tokens, 20000 + long_prompts.max_num_seqs);
  // Mixtures have attention on replicas, whatever the layout is called, and a cache of 16 bits.
  for (const std::size_t mixture : {std::size_t(2), std::size_t(3)}) {
    const engine::Scenario& scenario = cases->at(mixture).scenario;
    EXPECT_EQ(scenario.parallel.tp, 1);
    EXPECT_EQ(scenario.parallel.dp, 4);
    EXPECT_EQ(scenario.parallel.ep, 4);
    EXPECT_EQ(scenario.quant.kv, engine::Dtype::bf16);
  }
}

// What a row of a closed loop leaves open: kernels as the dated benchmark's script asks for them; two prompts a step, or 2,048
// tokens, and one for each client, in the other rows of TensorRT-LLM.
TEST(ValidateServing, ClosedLoopsHaveTheirScriptsKernelsAndABudget) {
  const fs::path file = folder_of_this_test() / "rows.csv";
  std::ofstream(file)
      << "id,backend,backend_version,model_path,mode,isl,osl,gemm_quant_mode,batch_size,tp_size,"
         "concurrency,silicon_ttft_ms,silicon_tpot_ms\n"
         "2026_03_25_a,vllm,0.18.0,openai/gpt-oss-120b,agg,1024,1024,nvfp4,4,2,4,60,5\n"
         "qwen_b,vllm,0.12.0,Qwen/Qwen3-32B,agg,1024,128,,8,2,8,150,18\n"
         "qwen_c,trtllm,1.0.0rc3,Qwen/Qwen3-32B,agg,256,128,fp8,8,2,8,150,18\n"
         "qwen_d,trtllm,1.0.0rc3,Qwen/Qwen3-32B,agg,2048,128,fp8,8,2,8,150,18\n"
         "meta_e,trtllm,1.0.0rc3,meta-llama/Llama-3.1-8B-Instruct,agg,2048,128,,8,2,8,150,18\n";
  const auto cases = silicon_cases(file, kLibrary);
  ASSERT_TRUE(cases) << engine::to_text(cases.mistakes());
  ASSERT_EQ(cases->size(), 5u);
  for (const ServedCase& one : *cases) EXPECT_EQ(one.left_out, "") << one.id;
  const auto serving = [&](std::size_t row) { return cases->at(row).scenario.serving; };
  EXPECT_EQ(serving(0).four_bit_experts, engine::FourBitExperts::marlin);
  EXPECT_EQ(serving(1).four_bit_experts, engine::FourBitExperts::own);
  EXPECT_EQ(serving(2).max_num_batched_tokens, 2048 + 8);
  EXPECT_EQ(serving(3).max_num_batched_tokens, 2 * 2048 + 8);
  EXPECT_GE(serving(3).max_num_seqs, 8);
  EXPECT_EQ(serving(4).max_num_seqs, 7);
}

// Rows of two pools state clients; public recipes of so many clients state the rest, twice where drafts are open.
TEST(ValidateServing, TwoPoolsAreOneOfTheirPublicRecipes) {
  const fs::path file = folder_of_this_test() / "rows.csv";
  std::ofstream(file)
      << "id,backend,backend_version,model_path,mode,isl,osl,gemm_quant_mode,batch_size,tp_size,"
         "prefill_tp_size,prefill_moe_ep_size,decode_tp_size,decode_moe_ep_size,decode_num_workers,"
         "concurrency,silicon_ttft_ms,silicon_tpot_ms\n"
         "2026_a,sglang,0.5.8,deepseek-ai/DeepSeek-R1,disagg,8192,1024,fp8,,,16,1,16,1,,4,860,19\n"
         "2026_b,trtllm,0.8.1,deepseek-ai/DeepSeek-R1,disagg,1024,1024,fp8,,,16,16,16,16,,231,1,1\n"
         "c,trtllm,0.8.1,deepseek-ai/DeepSeek-V3,disagg,8192,1024,fp8,,,1,16,16,16,3,30,1,1\n"
         "2026_d,trtllm,0.8.1,deepseek-ai/DeepSeek-R1,disagg,1024,1024,fp8,,,16,16,16,16,,7,1,1\n"
         "2026_e,sglang,0.5.8,deepseek-ai/DeepSeek-R1,disagg,1024,1024,fp8,,,16,1,16,1,,4,245,10\n"
         "2026_f,sglang,0.5.8,deepseek-ai/DeepSeek-R1,disagg,1024,8192,fp8,,,16,1,16,1,,4,400,9\n";
  const auto cases = silicon_cases(file, kLibrary);
  ASSERT_TRUE(cases) << engine::to_text(cases.mistakes());
  const auto recipes = [&](std::size_t row) -> const auto& { return cases->at(row).recipes; };
  const auto drafts = [&](std::size_t row) {
    std::vector<std::int64_t> tokens;
    for (const engine::Scenario& one : recipes(row)) tokens.push_back(one.speculation.tokens);
    return tokens;
  };
  EXPECT_EQ(drafts(0), (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(drafts(1), (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(drafts(2), std::vector<std::int64_t>{0});
  const engine::ServingSettings& readers = recipes(0)[0].prefill.deployment.serving;
  EXPECT_EQ(readers.max_num_seqs, 2);
  EXPECT_EQ(readers.max_num_batched_tokens, 2048);
  // 3 workers of 16 devices with 4 sequences each serve 192 of 231 clients at a time.
  const engine::Scenario& wide = recipes(1)[0];
  EXPECT_EQ(wide.serving.replicas * wide.parallel.dp * wide.serving.max_num_seqs, 192);
  EXPECT_EQ(recipes(2)[0].parallel.tp, 16);
  EXPECT_EQ(recipes(2)[0].serving.max_num_seqs, 8);
  // The benchmark draws lengths, also in the row whose id has no date.
  EXPECT_EQ(recipes(2)[0].load.lengths.distribution, engine::LengthKind::uniform);
  EXPECT_EQ(cases->at(3).left_out, "no public recipe has so many clients");
  // Short prompts with short answers have two workers that decode; drafts of long answers hold more often.
  EXPECT_EQ(recipes(4)[0].serving.replicas, 2);
  EXPECT_EQ(recipes(5)[0].serving.replicas, 1);
  EXPECT_LT(recipes(4)[1].speculation.acceptance, recipes(5)[1].speculation.acceptance);
}

TEST(ValidateServing, BatchesSayWhyTheyAreNotCompared) {
  const fs::path file = folder_of_this_test() / "rows.csv";
  std::ofstream(file)
      << "Hardware,Num of Hardware,Framework,Model,Input Output Length,Batch "
         "Size,Latency,Throughput\n"
         "Nvidia H100 GPU,2,vLLM,meta-llama/Llama-2-7b-hf,128,16,1.0,4096\n"
         "Nvidia H100 GPU,1,vLLM,meta-llama/Llama-2-7b-hf,128,1,0.1,2560\n"
         "Nvidia A100 GPU,4,TensorRT-LLM,mistralai/Mixtral-8x7B-v0.1,128,16,1.5,2700\n"
         "Nvidia A100 GPU,1,llama.cpp,meta-llama/Llama-2-7b-hf,128,16,9.0,455\n";
  const auto cases = argonne_cases(file, kLibrary);
  ASSERT_TRUE(cases) << engine::to_text(cases.mistakes());
  ASSERT_EQ(cases->size(), 4u);
  const ServedCase& first = cases->front();
  EXPECT_EQ(first.left_out, "");
  EXPECT_EQ(first.output_rate, 2048);  // prompts are not counted
  EXPECT_EQ(first.scenario.host.name, "vllm-v0-workers");
  EXPECT_EQ(first.scenario.cluster.name, "hgx-h100-4gpu");
  EXPECT_EQ(first.scenario.serving.max_num_batched_tokens, 4096);  // as its context
  // 128 times 13 GB at 3.35 TB/s take half a second.
  EXPECT_EQ(cases->at(1).left_out, "faster than weights can be read");
  EXPECT_EQ(cases->at(2).left_out, "sequences of one text, which meet the same experts");
  EXPECT_EQ(cases->at(3).left_out, "engine 'llama.cpp'");
}

}  // namespace
}  // namespace tools
