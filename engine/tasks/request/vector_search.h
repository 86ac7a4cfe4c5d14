// A search for the vectors nearest to some questions: what it reads and computes, and its operations on a device.
#pragma once

#include <cstdint>

#include "engine/base/units.h"
#include "engine/hardware/dtype.h"
#include "engine/model/model_ops.h"

namespace engine {

// One list whose every vector is met is an exact search.
struct VectorSearch {
  std::int64_t questions = 1;  // searched for together
  std::int64_t vectors = 1;    // of all devices
  std::int64_t dimensions = 1;
  Dtype format = Dtype::fp16;
  std::int64_t lists = 1;
  std::int64_t probes = 1;   // lists that a question meets
  std::int64_t devices = 1;  // that share the vectors of each list

  bool has_lists() const { return lists > 1; }
  // Lists that some question meets, which each chooses as if at random.
  double lists_met() const;
  // Vectors of one list on one device.
  double of_a_list() const { return double(vectors) / double(lists * devices); }
  // Vectors that one question meets on all devices.
  double of_a_question() const { return double(vectors) * double(probes) / double(lists); }
  // On one device: all vectors and centres, what a search reads of them, and its products.
  Bytes stored() const;
  Bytes bytes() const;
  Flops flops() const;

 private:
  double centres() const { return has_lists() ? double(lists) : 0; }
  double vector_bytes() const { return double(dimensions) * bytes_of(format); }
};

// On one device: products of questions with centres and vectors, each with a pass that finds the largest.
void search_ops(const VectorSearch& search, OpList& ops);

}  // namespace engine
