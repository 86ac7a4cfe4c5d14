// Rows of training tables become scenarios, and what cannot be predicted says why.
#include "tools/validate_training/validate_training.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/paths.h"
#include "tools/validate_training/training_runs.h"

namespace tools {
namespace {

namespace fs = std::filesystem;

// Tables of the public ones' columns, with made-up figures.
fs::path made_up_tables() {
  static const tests::TemporaryFolder all;
  const fs::path data = all.path() / testing::UnitTest::GetInstance()->current_test_info()->name();
  fs::create_directories(data / "train_megatron_bridge");
  fs::create_directories(data / "train_mosaicml_mpt");
  std::ofstream(data / "train_megatron_bridge" / "pretrain_h100.csv")
      << "section,model,System,#-GPUs,Precision,GBS,MBS,Sequence Length,TP,PP,CP,VP,EP,Tokens / "
         "sec / GPU\n"
         "Pre-Training Performance,LLAMA3_70B,DGX-H100,64,FP8,256,1,8192,4,4,2,5,n/a,1500\n"
         "LoRA Performance,LLAMA3_70B,DGX-H100,8,BF16,32,1,4096,2,4,1,n/a,n/a,2000\n"
         "Pre-Training Performance,Some_Hybrid,DGX-H100,16,FP8,64,1,8192,1,1,1,n/a,8,10000\n";
  std::ofstream(data / "train_mosaicml_mpt" / "mpt_training_open.csv")
      << "Model,SeqLen (T),# GPUs,GPU,MicroBatchSize,GlobalBatchSize,Throughput "
         "(T/s/GPU),Precision,MP Mode,"
         "Sharding Strategy,Activation Checkpointing\n"
         "1b,2048,8,a100_80gb,4,64,12000,amp_bf16,DEFAULT,FULL_SHARD,True\n"
         "1b,2048,16,h100_80gb,4,64,24000,bf16,PURE,SHARD_GRAD_OP,False\n";
  return data;
}

TEST(ValidateTraining, RowsBecomeScenarios) {
  const sweep::Library library({paths::specs("")});
  const auto runs = training_runs(made_up_tables(), library);
  ASSERT_TRUE(runs) << engine::to_text(runs.mistakes());
  ASSERT_EQ(runs->size(), 5u);
  const engine::Scenario& trained = (*runs)[0].scenario;
  EXPECT_EQ(trained.parallel, (engine::Parallelism{.tp = 4, .pp = 4, .dp = 2, .cp = 2}));
  EXPECT_EQ(trained.quant.weights, engine::Dtype::fp8);
  EXPECT_EQ(trained.train.schedule, engine::Schedule::interleaved);
  EXPECT_EQ(trained.train.virtual_stages, 5);
  const engine::Scenario& tuned = (*runs)[1].scenario;
  EXPECT_EQ(tuned.train.method, engine::Method::lora);
  EXPECT_EQ(tuned.train.schedule, engine::Schedule::one_f_one_b);
  EXPECT_EQ(tuned.train.lora_rank, 16);
  EXPECT_NE((*runs)[2].left_out, "");
  EXPECT_EQ((*runs)[3].scenario.train.zero, 3);
  EXPECT_EQ((*runs)[3].scenario.train.recompute, engine::Recompute::full);
  EXPECT_EQ((*runs)[4].scenario.train.zero, 3);
  EXPECT_FALSE((*runs)[4].scenario.train.reshard);
  EXPECT_EQ((*runs)[4].scenario.train.master_weights, engine::StateFormat::none);
}

// What submitters' files state beside the table comes with the settings of their libraries, and by device.
TEST(ValidateTraining, RowsOfMlperfHaveTheirLibrarysSettings) {
  const fs::path data = made_up_tables();
  fs::create_directories(data / "published_mlperf_training");
  std::ofstream(data / "published_mlperf_training" / "mlperf_training.csv")
      << "round,benchmark,device,gpus,gbs,tp,pp,cp,vp,mbs,format,library,zero,zero_group,recompute,"
         "step_s\n"
         "v4.0,llama2_70b_lora,h100-sxm,8,8,4,1,1,1,1,fp8,megatron,1,0,none,4\n"
         "v5.0,llama2_70b_lora,mi300x,8,8,1,1,1,1,1,fp8,megatron,1,0,none,4\n"
         "v4.0,gpt3,tpu-v5p,512,2048,8,1,1,1,32,int8,maxtext,3,64,full,20\n";
  const sweep::Library library({paths::specs("")});
  const auto runs = training_runs(data, library);
  ASSERT_TRUE(runs) << engine::to_text(runs.mistakes());
  ASSERT_EQ(runs->size(), 8u);
  const engine::TrainSettings& hopper = (*runs)[5].scenario.train;
  EXPECT_EQ(hopper.lora_targets, engine::LoraTargets::attention);
  EXPECT_FALSE(hopper.transpose_cache);
  EXPECT_FALSE(hopper.narrow_activation_inputs);
  EXPECT_EQ((*runs)[5].tokens_per_s_per_device, 8 * 8192 / 4.0 / 8);
  const engine::TrainSettings& amd = (*runs)[6].scenario.train;
  EXPECT_TRUE(amd.narrow_activation_inputs);
  EXPECT_EQ(amd.recompute_first, 21);
  const engine::TrainSettings& tpu = (*runs)[7].scenario.train;
  EXPECT_EQ(tpu.gathered_unit, engine::GatheredUnit::matrix);
  EXPECT_EQ(tpu.zero_group, 64);
}

TEST(ValidateTraining, TellsErrorsAndWhatWasLeftOut) {
  const sweep::Library library({paths::specs("")});
  const auto validation = validate_training(made_up_tables(), library);
  ASSERT_TRUE(validation) << engine::to_text(validation.mistakes());
  EXPECT_EQ(validation->table.rows(), 5u);
  for (const char* part : {"forward, eager", "memory, compiled", "h100-sxm LLAMA3_70B",
                           "left out: 1 rows", "a100-80gb-sxm 1 node", "not stated in 2 rows"}) {
    EXPECT_NE(validation->text.find(part), std::string::npos) << part << "\n" << validation->text;
  }
}

}  // namespace
}  // namespace tools
