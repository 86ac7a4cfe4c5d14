// Why a point has no figures: a sentence for its reader, and a short class to count and group by.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/enum_names.h"

namespace engine {

enum class ReasonClass : std::uint8_t {
  none,          // the point works
  memory,        // the model or its KV cache does not fit
  links,         // devices that must talk have no link
  divisibility,  // the model cannot be split over the devices like this
  power,         // the device may draw no more than it does at rest
  format,        // the device has no arithmetic in the number format
  context,       // sequences longer than the model is made for, or that contradict each other
  cluster,       // more devices than the cluster has
  load,          // the load cannot be made
  slo,           // no rate meets the limits
  calibration,   // what was asked for is not loaded
  unsupported,   // the engine does not model it
  budget,        // more work than one point may take
  figures,       // a figure came out infinite, negative or undefined
  error,         // the evaluation ended in an error
};
constexpr std::array<std::string_view, 15> enum_names(ReasonClass) {
  return {"none",        "memory",      "links",   "divisibility", "power",
          "format",      "context",     "cluster", "load",         "slo",
          "calibration", "unsupported", "budget",  "figures",      "error"};
}

struct Refusal {
  ReasonClass reason_class = ReasonClass::none;
  std::string text;

  bool operator==(const Refusal&) const = default;
};

}  // namespace engine
