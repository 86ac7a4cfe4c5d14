// Which set of fitted parameters a device gets: that of its generation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/hardware/device.h"

namespace engine {

enum class ParameterSet : std::uint8_t {
  none,          // no fit speaks for such a device
  own,           // a sweep of the device itself
  ampere,        // A100 and relatives
  hopper,        // H100 and relatives
  blackwell,     // B200 and relatives
  cdna,          // MI300X and relatives
  synchronous,   // GPUs whose matrix instructions wait for their operands
  asynchronous,  // GPUs with asynchronous matrix instructions
  pooled,        // all devices together
};
constexpr std::array<std::string_view, 9> enum_names(ParameterSet) {
  return {"none", "own",         "ampere",       "hopper", "blackwell",
          "cdna", "synchronous", "asynchronous", "pooled"};
}
constexpr std::size_t kParameterSets = enum_names(ParameterSet{}).size();

// The set fitted nearest to a device, by its `architecture`:
// - NVIDIA Hopper and Blackwell data-centre devices: their generation's;
// - Ampere with the large multiprocessor (A100, A30): ampere;
// - the rest of NVIDIA's line (Ampere RTX, Ada, Blackwell RTX, Turing, Volta, Pascal): synchronous;
// - AMD's CDNA 3 and later: cdna, which has products and experts, and pooled for the rest;
// - few large processors (TPU, Gaudi, NeuronCore, or what calls itself systolic): none, so that the roofline speaks;
// - a device whose multiprocessors nobody stated: none, since fitted forms spread work over them;
// - anything else is taken for many small processors, as older ones of AMD: pooled.
// A beginning of that name counts, in large or small letters, with or without NVIDIA before it.
// Neither the name of a device nor any of its numbers: a sweep may turn one into another, and a number that crossed a
// threshold would change the kernels.
ParameterSet choose_set(const Device& device);

// Neither the devices of such a generation nor their links were measured, or products alone, tuned each by itself.
constexpr bool is_foreign(ParameterSet chosen) {
  return chosen == ParameterSet::cdna || chosen == ParameterSet::pooled;
}

// Generations of which no whole steps were measured (but for a profile of ten shapes on an RTX PRO 6000). Others speak for them, and every
// time is flagged as extrapolated.
constexpr bool is_unmeasured(ParameterSet chosen) {
  return chosen == ParameterSet::synchronous || chosen == ParameterSet::asynchronous ||
         is_foreign(chosen);
}

// Where to look when a family has no parameters of that set; `pooled` ends the chain.
constexpr ParameterSet wider_set(ParameterSet set) {
  switch (set) {
    case ParameterSet::ampere:
      return ParameterSet::synchronous;
    case ParameterSet::hopper:
    case ParameterSet::blackwell:
      return ParameterSet::asynchronous;
    default:
      return ParameterSet::pooled;
  }
}

}  // namespace engine
