#include "engine/serving/mechanisms/several_answers.h"

#include "engine/serving/mechanisms/adapters.h"

namespace engine {
namespace {

// Of an answer, which stays in memory until it is done.
constexpr double kWorkOfAnAnswer = 32;

}  // namespace

bool SeveralAnswers::start(Fleet& fleet) {
  fleet_ = &fleet;
  groups_.reset();
  return fleet.problem->load.samples > 1;
}

void SeveralAnswers::begin_others(std::size_t index) {
  Fleet& fleet = *fleet_;
  Replica& replica = fleet.replicas[index];
  for (const std::int32_t slot : replica.forking()) {
    const std::int64_t count = replica.sequence(slot).branches;
    fleet.charge(kWorkOfAnAnswer * double(count));
    const std::int32_t answers = groups_.open(count);
    replica.sequence(slot).answers = answers;
    const Sequence& asked = replica.sequence(slot);
    outputs_.clear();
    for (std::int64_t i = 1; i < count; ++i) {
      std::int64_t output = fleet.source->output_of(asked.number, i, asked.output);
      // As long as the model and the cache allow.
      while (output > 1 && !replica.fits(asked.prompt, output)) output /= 2;
      if (fleet.with.adapters != nullptr) fleet.with.adapters->need(index, asked.adapter);
      outputs_.push_back(output);
    }
    replica.fork(slot, outputs_, answers, fleet.now);
    // The replica that read the prompt has written the only token of the first answer.
    Sequence& first = replica.sequence(slot);
    if (first.whereabouts == Whereabouts::landed && first.generated == first.output) {
      groups_.done(first);
      fleet.expect_no_more(index, slot);
    }
  }
  replica.forking().clear();
}

}  // namespace engine
