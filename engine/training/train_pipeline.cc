#include "engine/training/train_pipeline.h"

#include <algorithm>

#include "engine/training/pipeline/stages.h"
#include "engine/training/replica_traffic.h"

namespace engine {

TrainPipeline::TrainPipeline(const StagePools& pools, const TrainSettings& train,
                             const ChunkKinds& chunks)
    : pools_(pools),
      train_(train),
      chunks_(chunks),
      stages_(pools.stages()),
      micro_batches_(train.global_batch / (train.micro_batch * pools.main.shard.parallel.dp)),
      schedule_(schedule_on(train, stages_)),
      in_pairs_(is_dual(schedule_) || (train.batch_overlap && pools.main.shard.parallel.ep > 1)) {}

double TrainPipeline::passes_of_a_chunk() const {
  return double(micro_batches_ / chunk_copies(train_, stages_));
}

Pipeline TrainPipeline::untimed() {
  times_.resize(std::size_t(chunks_.size()));
  return {.schedule = schedule_,
          .stages = stages_,
          .micro_batches = micro_batches_,
          .chunks = times_,
          .side_by_side = in_pairs_ && !is_dual(schedule_)};
}

Pipeline TrainPipeline::timed() {
  const bool in_two = chunks_.puts_off_weights();
  times_.clear();
  for (std::int64_t c = 0; c < chunks_.size(); ++c) {
    const ChunkPasses &passes = chunks_[c].passes, &pair = chunks_[c].in_pairs();
    times_.push_back({passes.forward_time,
                      in_two ? passes.recompute_time + passes.inputs_time : passes.backward_time(),
                      in_two ? passes.weights_time : Seconds{0}, pair.forward_time,
                      pair.backward_time()});
  }
  if (waits_for_sends()) wait_for_sends();
  Pipeline pipeline = untimed();
  if (stages_ > 1 && !waits_for_sends()) pipeline.send = slowest_send();
  return pipeline;
}

TrainPipeline::Passes TrainPipeline::passes_of(std::int64_t stage, std::int64_t chunk) {
  const double all = passes_of_a_chunk();
  if (!chunks_[chunk].paired) return {.alone = {all, all}};
  const PassCounts alone = passes_alone(untimed(), stage, chunk);
  return {alone, {all - alone.forward, all - alone.backward}};
}

// Passes in pairs send beside one another.
bool TrainPipeline::waits_for_sends() const {
  return train_.blocking_sends && stages_ > 1 && !in_pairs_ &&
         (schedule_ == Schedule::gpipe || schedule_ == Schedule::one_f_one_b);
}

// A pass ends when the next stage has what it made. The last stage sends to no other, and the first sends nothing back.
void TrainPipeline::wait_for_sends() {
  const Seconds send = slowest_send();
  for (std::size_t c = 0; c < times_.size(); ++c) {
    if (c + 1 < times_.size()) times_[c].forward += send;
    if (c > 0) times_[c].backward += send;
  }
}

// Every send takes as long as the slowest: a pipeline waits for it in every round.
Seconds TrainPipeline::slowest_send() const {
  const Seconds send = send_time(pools_.main, train_);
  return pools_.tail == nullptr ? send : std::max(send, send_time(*pools_.tail, train_));
}

Seconds TrainPipeline::forward_alone() const {
  Seconds through, slowest;
  for (std::int64_t stage = 0; stage < stages_; ++stage) {
    Seconds forward;
    places().each(stage, [&](std::int64_t c) { forward += chunks_[c].passes.forward_time; });
    // Each of the two directions of dualpipe has half of the micro-batches.
    forward *= 1.0 / double(chunk_copies(train_, stages_));
    through += forward;
    slowest = std::max(slowest, forward);
  }
  if (stages_ == 1) return slowest * double(micro_batches_);
  const Seconds send = slowest_send();
  if (waits_for_sends()) slowest += send;
  return through + slowest * double(micro_batches_ - 1) + send * double(stages_ - 1);
}

}  // namespace engine
