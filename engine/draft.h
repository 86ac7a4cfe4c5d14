// The draft, which proposes the tokens that decode steps verify, made ready for work beside the main deployment.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "engine/base/refusal.h"
#include "engine/deploy.h"
#include "engine/resources.h"
#include "engine/scenario.h"
#include "engine/speculation/acceptance.h"
#include "engine/step/draft_step.h"
#include "engine/workload/load_classes.h"

namespace engine {

// Whether tokens are proposed at this point, and how many for each sequence in a step: all of a tree.
bool speculates(const Scenario& scenario);
std::int64_t proposed_tokens(const Scenario& scenario);
// Positions that they are for: one after the other they become part of the text.
inline std::int64_t proposed_positions(const Scenario& scenario) {
  return speculates(scenario) ? scenario.speculation.tokens : 0;
}

// Whether the draft model has devices of its own: it is on other ones than the main model.
bool drafts_apart(const Scenario& scenario);

// Stays where it was made: its parts refer to one another.
struct Draft {
  std::int64_t depth = 0;                            // positions proposed in a step,
  DraftTree tree;                                    // with these candidates each,
  std::int64_t tokens = 0;                           // which are so many tokens
  Acceptance acceptance;                             // of the positions
  std::array<Acceptance, kRequestClasses> by_class;  // the same of each class of a served load,
  bool classes_differ = false;                       // where some class has its own
  double expected = 1;               // tokens that a step makes of a sequence, on average,
  Pace pace;                         // and the same in fixed point
  bool apart = false;                // on devices of its own
  bool is_main = false;              // the main model itself
  std::optional<Deployment> own;     // of the model that proposes, where there is one,
  std::optional<Deployed> deployed;  // and the same made ready
  HostSettings host;                 // as its steps have it
  DraftProducts products;            // beside the main model
  Seconds fixed, per_sequence;       // of the host, in every step

  Draft() = default;
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  // Where other devices read prompts for the main model, a model that has KV of its own beside the main one reads them there,
  // too: its KV is carried with theirs.
  bool reads_beside_readers() const { return deployed && !apart && !is_main; }
  DraftPlace place() const {
    if (apart) return DraftPlace::elsewhere;
    return is_main ? DraftPlace::every_stage : DraftPlace::last_stage;
  }
  // Devices of each stage of a replica that the draft's model is on, where the main model is on `of_main_stage`.
  double devices(double of_main_stage) const {
    if (!own) return of_main_stage;
    return double(own->parallel.devices_of_replica() / own->parallel.pp);
  }
  // The step in which so many positions are proposed.
  DraftStep step(const Deployed& main, WorkMeter& work, std::int64_t positions) const;
  DraftStep step(const Deployed& main, WorkMeter& work) const { return step(main, work, depth); }
};

// Tokens that a step makes of a sequence on average when so many positions are proposed, over the classes of a served load. Classes whose
// proposals are accepted less often count more, since they take more steps for as many tokens.
double expected_over_classes(const Draft& draft, const Load& load, std::int64_t positions);

// Fills in `draft` for a point that speculates, and what of it lies in the memory of the main deployment; or says why
// that cannot be.
std::optional<Refusal> ready_draft(const Scenario& scenario, const Resources& resources,
                                   double copies, Deployed& main, Draft& draft);

// The same beside a deployment that reads prompts for the main one.
std::optional<Refusal> ready_beside_readers(const Scenario& scenario, const Resources& resources,
                                            double copies, Deployed& readers, Draft& draft);

}  // namespace engine
