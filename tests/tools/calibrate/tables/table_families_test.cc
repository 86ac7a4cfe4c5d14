#include "tools/calibrate/tables/table_families.h"

#include <gtest/gtest.h>

#include "engine/kernels/kernel_time.h"
#include "engine/kernels/own_slot.h"
#include "tests/support/toys.h"

namespace tools {
namespace {

KernelCall call_of(std::string_view header, std::string_view row) {
  const std::string text = std::string(header) + "\n" + std::string(row) + "\n";
  auto table = kernel_table_of(results::parse_csv(text, "t.csv").value(), Times::ignored);
  EXPECT_TRUE(table) << engine::to_text(table.mistakes());
  return table->records.at(0).call;
}

TEST(TableFamilies, EnginesQuantiseTheInputInsideTheCallAndOurSweepDoesNot) {
  const char* header = "family,impl,dtype,m,n,k";
  const auto engine_call =
      std::get<engine::Gemm>(op_of(call_of(header, "gemm,vllm_0.24.0:cutlass,fp8,8,16,32")));
  EXPECT_TRUE(engine_call.quantizes_input);
  EXPECT_EQ(engine_call.weights, engine::Dtype::fp8);
  const auto ours =
      std::get<engine::Gemm>(op_of(call_of(header, "gemm,torch2.11:scaled_mm,fp8,8,16,32")));
  EXPECT_FALSE(ours.quantizes_input);
  const auto weights_only =
      std::get<engine::Gemm>(op_of(call_of(header, "gemm,trtllm_1.0:x,int4_wo,8,16,32")));
  EXPECT_FALSE(weights_only.quantizes_input);
  EXPECT_EQ(weights_only.activations, engine::Dtype::bf16);
  EXPECT_EQ(weights_only.weights, engine::Dtype::int4);
}

TEST(TableFamilies, EnginesStoreTheKeysInsideTheCallAndReplayItWarmAndOurSweepDoesNeither) {
  const char* header = "family,impl,batch,context_len,q_heads,kv_heads,head_dim";
  const auto decode = [&](const char* impl) {
    return std::get<engine::AttentionDecode>(
        op_of(call_of(header, "attn_decode," + std::string(impl) + ",4,1024,32,8,128")));
  };
  EXPECT_TRUE(decode("vllm_0.24.0:fa3").stores_kv);
  EXPECT_TRUE(decode("vllm_0.24.0:fa3").warm);
  EXPECT_FALSE(decode("triton:decode").stores_kv);
  EXPECT_FALSE(decode("triton:decode").warm);
  // Nobody named: as the public tables have it.
  EXPECT_TRUE(decode("").stores_kv);
}

TEST(TableFamilies, APassIsColdUnlessItSaysOtherwise) {
  const char* header = "family,impl,tokens,hidden";
  const auto pass = [&](const char* impl) {
    return std::get<engine::Elementwise>(
        op_of(call_of(header, "embed," + std::string(impl) + ",4,1024")));
  };
  EXPECT_EQ(pass("triton:embed").resident_bytes, 0);
  EXPECT_EQ(pass("").cold_bytes, 2 * 4 * 1024 * 2);
  EXPECT_EQ(pass("triton:embed:warm").cold_bytes, 0);
  EXPECT_EQ(pass("triton:embed:warm").resident_bytes, 2 * 4 * 1024 * 2);
}

TEST(TableFamilies, ContextCountsTheQueriesAndAWindowCutsIt) {
  const char* header = "family,batch,query_len,context_len,q_heads,kv_heads,head_dim,window";
  const auto chunk =
      std::get<engine::AttentionPrefill>(op_of(call_of(header, "attn_prefill,2,4,10,8,2,64,0")));
  EXPECT_EQ(chunk.tokens, 8);
  EXPECT_EQ(chunk.pairs, 2 * (4 * 6 + 10));
  EXPECT_EQ(chunk.kv_tokens, 20);
  const auto windowed =
      std::get<engine::AttentionPrefill>(op_of(call_of(header, "attn_prefill,1,4,4,8,2,64,2")));
  EXPECT_EQ(windowed.pairs, 1 + 2 + 2 + 2);
  const auto decode =
      std::get<engine::AttentionDecode>(op_of(call_of(header, "attn_decode,3,1,100,8,2,64,16")));
  EXPECT_EQ(decode.kv_tokens, 48);
}

TEST(TableFamilies, LatentAttentionHasOneKeyHeadOfTheCachedWidth) {
  const auto decode = std::get<engine::AttentionDecode>(
      op_of(call_of("family,batch,context_len,q_heads", "mla_decode,4,1024,16")));
  EXPECT_EQ(decode.kv_heads, 1);
  EXPECT_EQ(decode.key_dim, 576);
  EXPECT_TRUE(decode.values_in_keys);
  const auto absorbed =
      std::get<engine::Gemm>(op_of(call_of("family,tokens,q_heads", "mla_gen_pre,4,16")));
  EXPECT_EQ(absorbed.batch, 16);
  EXPECT_EQ(absorbed.n, 512);
  EXPECT_EQ(absorbed.k, 128);
}

TEST(TableFamilies, ExpertsAreSharedOutOverTensorAndExpertParallelRanks) {
  const auto moe =
      std::get<engine::Moe>(op_of(call_of("family,tokens,hidden,inter,topk,experts,tp,ep,skew",
                                          "moe,64,4096,1536,8,128,2,4,power_law_1.2")));
  EXPECT_EQ(moe.intermediate, 768);
  EXPECT_EQ(moe.local_experts, 32);
  EXPECT_EQ(moe.skew, 1.2);
  EXPECT_FALSE(moe.balanced);
}

TEST(TableFamilies, WarmPassesFindTheirOperandsInTheCache) {
  const char* header = "family,impl,tokens,hidden";
  const auto warm =
      std::get<engine::Elementwise>(op_of(call_of(header, "norm,triton:norm:warm,4,1024")));
  EXPECT_EQ(warm.resident_bytes, 4 * 4 * 1024 * 2);
  EXPECT_EQ(warm.cold_bytes, 0);
  const auto cold =
      std::get<engine::Elementwise>(op_of(call_of(header, "norm,triton:norm,4,1024")));
  EXPECT_EQ(cold.cold_bytes, warm.resident_bytes);
}

TEST(TableFamilies, TheLibraryOfAnAllReduceComesFromItsName) {
  const char* header = "family,impl,bytes,ranks";
  const auto general =
      std::get<engine::Collective>(op_of(call_of(header, "all_reduce,nccl_2.27:NCCL,1024,8")));
  EXPECT_EQ(general.library, engine::Library::general);
  const auto custom = std::get<engine::Collective>(
      op_of(call_of(header, "all_reduce,vllm_0.24.0:vLLM_custom_graph,1024,8")));
  EXPECT_EQ(custom.library, engine::Library::custom);
}

TEST(TableFamilies, ExpertsNamedNotGatedOnceAreNotGatedForAnyEngine) {
  const std::string text =
      "family,impl,tokens,hidden,inter,topk,experts\n"
      "moe,a:nongated,1,64,32,2,8\n"
      "moe,b,1,64,32,2,8\n"
      "moe,b,1,64,48,2,8\n";
  const auto table = kernel_table_of(results::parse_csv(text, "t.csv").value(), Times::ignored);
  EXPECT_FALSE(std::get<engine::Moe>(op_of(table->records[1].call)).gated);
  EXPECT_TRUE(std::get<engine::Moe>(op_of(table->records[2].call)).gated);
}

// A row of the table of families is whole: calls of it are ops that a calibration has a place for.
TEST(TableFamilies, EveryFamilyHasASectionWithItsCoordinates) {
  std::size_t families = 0;
  for (std::size_t i = 0; i < engine::enum_names(engine::Family{}).size(); ++i) {
    const auto family = static_cast<engine::Family>(i);
    const TableFamily* row = table_family(family);
    if (row == nullptr) continue;
    ++families;
    KernelCall call{.family = family};
    for (const Need& need : row->needs) call[need.size] = 8;
    const engine::Op op = op_of(call);
    engine::Calibration calibration;
    const engine::OwnSlot slot = engine::own_slot(calibration, family, op, toys::gpu());
    ASSERT_NE(slot.facts, nullptr) << engine::name_of(family);
    EXPECT_FALSE(slot.section.empty()) << engine::name_of(family);
    EXPECT_EQ(engine::coordinates_of(family, op).count, slot.coordinates.size())
        << engine::name_of(family);
  }
  EXPECT_GE(families, 25u);
}

}  // namespace
}  // namespace tools
