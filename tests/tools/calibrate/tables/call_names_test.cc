#include "tools/calibrate/tables/call_names.h"

#include <gtest/gtest.h>

namespace tools {
namespace {

using engine::Family;
using engine::Library;

Library library_of(std::string_view impl) {
  KernelCall call{.family = Family::all_reduce};
  describe(impl, call);
  return call.library;
}

TEST(CallNames, NcclIsNcclWhereverTheNameStands) {
  EXPECT_EQ(library_of("nccl_2.27.3:NCCL"), Library::general);
  EXPECT_EQ(library_of("NCCL"), Library::general);
  EXPECT_EQ(library_of("vllm_0.24.0:pynccl"), Library::general);
  EXPECT_EQ(library_of("sglang_0.5.14:SGLang_CustomAllReduce_graph"), Library::custom);
  EXPECT_EQ(library_of("trtllm_1.3.0rc20:TRTLLM"), Library::custom);
  EXPECT_EQ(library_of("vllm_0.24.0:vLLM_custom_graph"), Library::custom);
  EXPECT_EQ(library_of(""), Library::fastest);
}

TEST(CallNames, LettersOfEitherCaseAndFrameworksNamesAreUnderstood) {
  EXPECT_EQ(family_named("GEMM"), Family::gemm);
  EXPECT_EQ(family_named("All_Reduce"), Family::all_reduce);
  EXPECT_FALSE(family_named("fft"));
  EXPECT_EQ(format_named("BF16"), Format::bf16);
  EXPECT_EQ(format_named("bfloat16"), Format::bf16);
  EXPECT_EQ(format_named("FP8_block"), Format::fp8_block);
  EXPECT_EQ(format_named("float8_e4m3fn"), Format::fp8);
  EXPECT_FALSE(format_named("posit16"));
  EXPECT_TRUE(says_nothing("NaN"));
  EXPECT_TRUE(says_nothing("None"));
  EXPECT_FALSE(says_nothing("nvfp4"));
}

TEST(CallNames, AnEnginesOpIsToldFromALibrarysKernel) {
  EXPECT_TRUE(is_kernel_library("Torch2.11:cuBLAS"));
  EXPECT_FALSE(is_kernel_library("vllm_0.24.0:torch.nn.functional.linear"));
  KernelCall call{.family = Family::gemm, .dtype = Format::fp8};
  describe("VLLM_0.24.0:CutlassFP8ScaledMMLinearKernel", call);
  EXPECT_TRUE(call.quantizes_input);
  KernelCall exchange{.family = Family::expert_dispatch};
  describe("deepep:low_latency", exchange);
  EXPECT_EQ(exchange.exchange, engine::ExpertExchange::Kernels::low_latency);
}

TEST(CallNames, AnEngineIsWhatItsNameSaysAndALibraryIsNone) {
  EXPECT_EQ(engine_in("vllm_0.24.0:vllm_flash_attn_fa3"), "vllm_0.24.0");
  EXPECT_EQ(engine_in("torch2.11:cublas"), "");
  EXPECT_EQ(engine_in("triton:norm:warm"), "");
  EXPECT_EQ(engine_in(""), "");
}

TEST(CallNames, VersionsAreOrderedByTheirNumbers) {
  EXPECT_TRUE(older_version("vllm_0.9.1", "vllm_0.14.0"));
  EXPECT_FALSE(older_version("vllm_0.14.0", "vllm_0.9.1"));
  EXPECT_TRUE(older_version("trtllm_1.0.0", "trtllm_1.3.0rc15"));
  EXPECT_TRUE(older_version("trtllm_1.3.0rc15", "trtllm_1.3.0rc20"));
  EXPECT_FALSE(older_version("sglang_0.5.14", "sglang_0.5.14"));
}

}  // namespace
}  // namespace tools
