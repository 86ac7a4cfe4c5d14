#include "engine/tasks/request/vector_search.h"

#include <cmath>

#include "engine/model/passes.h"

namespace engine {
namespace {

// Narrow vectors are expanded as they are met; questions have 16 bits, or 32 where vectors do.
Dtype format_of_questions(Dtype vectors) { return is_wide(vectors) ? vectors : Dtype::bf16; }

// One scale does for a vector.
std::int64_t values_of_a_scale(const VectorSearch& search) { return search.dimensions; }

void add_product(const VectorSearch& search, double columns, OpList& ops) {
  const auto n = std::int64_t(std::ceil(columns));
  ops.add(OpName::vector_search, Family::gemm, 1,
          Gemm{.m = search.questions,
               .n = n,
               .k = search.dimensions,
               .weights = search.format,
               .activations = format_of_questions(search.format),
               .group = values_of_a_scale(search)});
  ops.add(OpName::nearest, Family::sample, 1, sampling_pass(double(search.questions), double(n)));
}

}  // namespace

double VectorSearch::lists_met() const {
  const double passed_over = 1 - double(probes) / double(lists);
  return double(lists) * (1 - std::pow(passed_over, double(questions)));
}

Bytes VectorSearch::stored() const {
  return Bytes{(double(vectors) / double(devices) + centres()) * vector_bytes()};
}

Bytes VectorSearch::bytes() const {
  return Bytes{(centres() + lists_met() * of_a_list()) * vector_bytes()};
}

Flops VectorSearch::flops() const {
  const double met = centres() + double(probes) * of_a_list();
  return Flops{2 * double(questions) * met * double(dimensions)};
}

void search_ops(const VectorSearch& search, OpList& ops) {
  if (!search.has_lists()) return add_product(search, search.of_a_list(), ops);
  add_product(search, double(search.lists), ops);
  const double rows = double(search.questions * search.probes);
  const double width = std::ceil(search.of_a_list());
  ops.add(OpName::vector_search, Family::grouped_gemm, 1,
          GroupedGemm{.rows = rows,
                      .touched = search.lists_met(),
                      .n = std::int64_t(width),
                      .k = search.dimensions,
                      .weights = search.format,
                      .activations = format_of_questions(search.format),
                      .group = values_of_a_scale(search)});
  ops.add(OpName::nearest, Family::sample, 1,
          sampling_pass(double(search.questions), double(search.probes) * width));
}

}  // namespace engine
