#include "engine/scratch.h"

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

void Scratch::forget() {
  serving_.reset();
  training_.reset();
}

}  // namespace engine
