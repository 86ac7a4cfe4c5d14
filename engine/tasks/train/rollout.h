// An iteration of reinforcement learning: samples are made by the serving engine, scored, and learned from.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "engine/outcome.h"
#include "engine/tasks/task_table.h"
#include "engine/training/train_step.h"

namespace engine {

// Devices of the deployment that makes samples; none where those that train do it.
double rollout_devices(const Scenario& scenario, const Deployment& rollout);

std::optional<Refusal> rollout_problem(const Scenario& scenario);

// Tokens of a sample, prompt and answer, on average.
double sample_length(const TaskPoint& point);

// All samples of one iteration, answered as one batch.
struct Rollout {
  Seconds time;
  double tokens = 0;     // prompts and answers of all samples
  double generated = 0;  // of these: answers
  double length = 0;     // of a sample, on average
  Deployment on;
  Bytes weights;  // on one device
  Bytes away;     // states of training that lie in the host's memory meanwhile, of one device
  Joules energy;  // of all its devices; not a number: they do not say what they draw
  std::vector<KernelRow> kernels;
};
// `memory`: what training keeps, some of it also meanwhile. Uses the point's scratch and work meter from the start.
std::optional<Refusal> make_rollout(const TaskPoint& point, const TrainMemory& memory,
                                    Rollout& rollout);

// Weights from the layout of training to that of rollouts, states to the host and back, and models that score from there; or why no
// link carries them.
std::optional<Refusal> weight_transfer(const TaskPoint& point, const TrainMemory& memory,
                                       const Rollout& rollout, Seconds& time);

struct IterationPhases {
  Seconds rollout, scoring, update, transfer;

  // One after another; or the next samples beside the rest.
  Seconds total(bool asynchronous) const {
    const Seconds learning = scoring + update;
    return (asynchronous ? std::max(rollout, learning) : rollout + learning) + transfer;
  }
};

}  // namespace engine
