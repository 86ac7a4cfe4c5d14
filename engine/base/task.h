// What a point can be asked for, and what fields may ask of that. How it is done is in engine/tasks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/base/counts.h"
#include "engine/base/named_table.h"

namespace engine {

enum class Task : std::uint8_t {
  step,      // one prefill or decode step
  request,   // one request from prompt to last token
  serve,     // a load of requests over time
  train,     // one optimizer step of a training run
  denoise,   // a batch of images by a diffusion transformer
  classify,  // a batch of images through a convolutional network
};

struct TaskTraits {
  std::string_view name;
  bool generates = false;        // tokens, one after the other, with a cache
  bool answers = false;          // whole requests, whose prompts another deployment may read
  bool plans_by_itself = false;  // steps, whatever the policy
  bool retrieves = false;        // passages for its prompt
  bool serves = false;           // requests that come over time
  bool trains = false;           // weights
  bool convolves = false;       // its model is a convolutional network, without layers of a decoder
  bool draws = false;           // something at random
  bool has_adapters = false;    // low-rank ones, on the model that runs
  bool shares_devices = false;  // with a neighbour
  bool shows_grids = false;     // it has figures of grids of multipliers
};

inline constexpr std::array kTaskTraits{
    TaskTraits{.name = "step",
               .generates = true,
               .has_adapters = true,
               .shares_devices = true,
               .shows_grids = true},
    TaskTraits{.name = "request",
               .generates = true,
               .answers = true,
               .plans_by_itself = true,
               .retrieves = true},
    TaskTraits{.name = "serve",
               .generates = true,
               .answers = true,
               .serves = true,
               .draws = true,
               .has_adapters = true,
               .shares_devices = true},
    TaskTraits{.name = "train", .trains = true, .draws = true},
    TaskTraits{.name = "denoise"},
    TaskTraits{.name = "classify", .convolves = true, .shows_grids = true},
};

constexpr auto enum_names(Task) { return names_of(kTaskTraits); }

template <auto property>
inline constexpr Condition task_has = condition_of(
    {.kind = Test::Kind::named, .path = "task", .names = positions_with<property>(kTaskTraits)});
template <auto property>
inline constexpr Condition task_lacks =
    condition_of({.kind = Test::Kind::not_named,
                  .path = "task",
                  .names = positions_with<property>(kTaskTraits)});

// For the many fields that ask the same.
inline constexpr const Condition& while_generating = task_has<&TaskTraits::generates>;
inline constexpr const Condition& while_answering = task_has<&TaskTraits::answers>;
inline constexpr const Condition& while_serving = task_has<&TaskTraits::serves>;
inline constexpr const Condition& while_training = task_has<&TaskTraits::trains>;
inline constexpr const Condition& unless_training = task_lacks<&TaskTraits::trains>;
inline constexpr const Condition& unless_convolving = task_lacks<&TaskTraits::convolves>;
inline constexpr const Condition& with_proposals = is_above<"speculation.tokens", 0>;
inline constexpr const Condition& with_method = is_set<"speculation.method">;

}  // namespace engine
