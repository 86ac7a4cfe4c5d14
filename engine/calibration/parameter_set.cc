#include "engine/calibration/parameter_set.h"

#include <algorithm>

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
    {"CDNA 3", ParameterSet::cdna},
    {"CDNA 4", ParameterSet::cdna},
    // Few large processors: nothing that was learned on GPUs speaks for them.
    {"TPU", ParameterSet::none},
    {"Gaudi", ParameterSet::none},
    {"NeuronCore", ParameterSet::none},
    {"systolic", ParameterSet::none},
};

// Whatever the case of letters.
bool begins_with(std::string_view name, std::string_view beginning) {
  constexpr char lower = 'a' - 'A';
  const auto same = [](char a, char b) { return (a | lower) == (b | lower); };
  return name.size() >= beginning.size() &&
         std::equal(beginning.begin(), beginning.end(), name.begin(), same);
}

}  // namespace

ParameterSet choose_set(const Device& device) {
  if (device.multiprocessors == 0) return ParameterSet::none;
  std::string_view name = device.architecture;
  // Every kernel asks; nearly all names are written as they are here.
  for (const Generation& generation : kGenerations) {
    if (name.starts_with(generation.begins)) return generation.set;
  }
  if (begins_with(name, "NVIDIA ")) name.remove_prefix(7);
  for (const Generation& generation : kGenerations) {
    if (begins_with(name, generation.begins)) return generation.set;
  }
  return ParameterSet::pooled;
}

}  // namespace engine
