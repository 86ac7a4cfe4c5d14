// All mechanisms that a run may have, and which of them this point asks for. A new one is a member here, a pointer in `Mechanisms`
// (fleet.h), and a line of either function below.
#pragma once

#include "engine/serving/mechanisms/adapters.h"
#include "engine/serving/mechanisms/fleet.h"
#include "engine/serving/mechanisms/hand_over.h"
#include "engine/serving/mechanisms/held_requests.h"
#include "engine/serving/mechanisms/images.h"
#include "engine/serving/mechanisms/lockstep.h"
#include "engine/serving/mechanisms/many_replicas.h"
#include "engine/serving/mechanisms/outages.h"
#include "engine/serving/mechanisms/pushes.h"
#include "engine/serving/mechanisms/scaling.h"
#include "engine/serving/mechanisms/several_answers.h"
#include "engine/serving/mechanisms/shedding.h"
#include "engine/serving/mechanisms/tiers_below.h"
#include "engine/serving/mechanisms/timeline.h"

namespace engine {

// They stay from one run to the next, so that their memory is used again. Those that are not switched on are never called.
struct MechanismStates {
  Adapters adapters;
  HandOver hand_over;
  HeldRequests held;
  Images images;
  Lockstep lockstep;
  ManyReplicas many;
  Outages outages;
  Pushes pushes;
  Scaling scaling;
  SeveralAnswers answers;
  Shedding shedding;
  TiersBelow tiers;
  Timeline timeline;

  // Switches on those that replicas are told of when they begin, and then the others.
  void start_below_replicas(Fleet& fleet);
  void start_above_replicas(Fleet& fleet);
};

}  // namespace engine
