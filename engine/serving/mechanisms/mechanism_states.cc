#include "engine/serving/mechanisms/mechanism_states.h"

namespace engine {
namespace {

template <class Any>
Any* if_asked_for(bool asked_for, Any& mechanism) {
  return asked_for ? &mechanism : nullptr;
}

}  // namespace

void MechanismStates::start_below_replicas(Fleet& fleet) {
  fleet.with.tiers = if_asked_for(tiers.start(fleet), tiers);
  fleet.with.lockstep = if_asked_for(lockstep.start(fleet), lockstep);
}

void MechanismStates::start_above_replicas(Fleet& fleet) {
  const ServingProblem& problem = *fleet.problem;
  Mechanisms& with = fleet.with;
  with.adapters = if_asked_for(adapters.start(fleet), adapters);
  with.shedding = if_asked_for(shedding.start(fleet), shedding);
  with.answers = if_asked_for(answers.start(fleet), answers);
  with.hand_over = if_asked_for(hand_over.start(fleet), hand_over);
  with.images = if_asked_for(images.start(fleet), images);
  with.outages = if_asked_for(outages.start(fleet), outages);
  with.pushes = if_asked_for(pushes.start(fleet), pushes);
  with.scaling = if_asked_for(scaling.start(fleet), scaling);
  with.timeline = if_asked_for(timeline.start(problem.output, problem.timeline_rows), timeline);
  held.start(fleet);
  with.held = if_asked_for(with.outages != nullptr || with.scaling != nullptr, held);
}

}  // namespace engine
