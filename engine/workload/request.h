// One request as it reaches the system.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/prefix_extent.h"
#include "engine/workload/load_classes.h"

namespace engine {

struct Request {
  std::int64_t number = 0;  // what it is: lengths and content follow from it, not from any design
  double arrival = 0;       // seconds
  std::int64_t prompt = 1;  // tokens, history included
  std::int64_t output = 1;
  std::int64_t session = -1;  // requests of one conversation; -1: none
  std::int64_t client = -1;   // is told when it is answered; -1: none waits for it
  bool opens = true;          // the first of its session, and
  bool closes = true;         // the last; without sessions each is both
  std::int64_t priority = 0;  // 0 is served first
  std::int64_t tenant = 0;
  RequestClass service_class = RequestClass::normal;
  std::int64_t history = 0;   // of the prompt, tokens of its session before it
  std::int64_t adapter = -1;  // low-rank adapter it asks for; -1: the model as it is
  std::int64_t samples = 1;   // answers that are generated from its prompt
  // Filled in only where prefixes are asked for. The last extent may reach into the output.
  std::vector<PrefixExtent> prefix;
};

}  // namespace engine
