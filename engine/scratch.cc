#include "engine/scratch.h"

#include "engine/alone_runs.h"
#include "engine/serving/serving_sim.h"
#include "engine/training/train_scratch.h"

namespace engine {

Scratch::Scratch() = default;
Scratch::~Scratch() = default;

ServingSim& Scratch::serving() {
  if (!serving_) serving_ = std::make_unique<ServingSim>();
  return *serving_;
}

TrainScratch& Scratch::training() {
  if (!training_) training_ = std::make_unique<TrainScratch>();
  return *training_;
}

Scratch& Scratch::neighbour() {
  if (!neighbour_) neighbour_ = std::make_unique<Scratch>();
  neighbour_->write_down(log_);
  return *neighbour_;
}

AloneRuns& Scratch::alone_runs() {
  if (!alone_runs_) alone_runs_ = std::make_unique<AloneRuns>();
  return *alone_runs_;
}

void Scratch::forget() {
  alone_runs_.reset();
  serving_.reset();
  training_.reset();
  neighbour_.reset();
}

}  // namespace engine
