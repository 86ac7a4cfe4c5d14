#include "engine/scratch.h"

#include "engine/serving/serving_sim.h"

namespace engine {

Scratch::Scratch() = default;
Scratch::~Scratch() = default;

ServingSim& Scratch::serving() {
  if (!serving_) serving_ = std::make_unique<ServingSim>();
  return *serving_;
}

void Scratch::forget() { serving_.reset(); }

}  // namespace engine
