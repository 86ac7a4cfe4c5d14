#include "engine/calibration/parameter_set.h"

namespace engine {
namespace {

// Generations by the beginning of their name: the first that fits.
struct Generation {
  std::string_view begins;
  ParameterSet set;
};
constexpr Generation kGenerations[] = {
    {"Hopper", ParameterSet::hopper},
    {"Blackwell RTX", ParameterSet::synchronous},
    {"Blackwell", ParameterSet::blackwell},
    {"Ampere RTX", ParameterSet::synchronous},
    {"Ampere", ParameterSet::ampere},
    {"Ada", ParameterSet::synchronous},
    {"Turing", ParameterSet::synchronous},
    {"Volta", ParameterSet::synchronous},
    {"Pascal", ParameterSet::synchronous},
    // Few large processors: nothing that was learned on GPUs speaks for them.
    {"TPU", ParameterSet::none},
    {"Gaudi", ParameterSet::none},
    {"NeuronCore", ParameterSet::none},
    {"systolic", ParameterSet::none},
};

}  // namespace

ParameterSet choose_set(const Device& device) {
  const std::string_view name = device.architecture;
  for (const Generation& generation : kGenerations) {
    if (name.starts_with(generation.begins)) return generation.set;
  }
  return ParameterSet::pooled;
}

}  // namespace engine
