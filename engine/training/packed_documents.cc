#include "engine/training/packed_documents.h"

#include <algorithm>
#include <cmath>

#include "engine/base/random.h"

namespace engine {

double length_around_a_token(const TrainSettings& train) {
  const double mean = double(train.document_length), most = double(train.sequence);
  const double square = 1 + train.document_cv * train.document_cv;
  if (square == 1) return std::min(mean, most);
  const double variance = std::log(square), spread = std::sqrt(variance);
  // In deviations of the logarithm of lengths: where the cut lies.
  const double cut = (std::log(most / mean) + variance / 2) / spread;
  const double beyond = normal_below(-cut);
  const double lengths = mean * normal_below(cut - spread) + most * beyond;
  const double squares =
      mean * mean * square * normal_below(cut - 2 * spread) + most * most * beyond;
  return std::min(squares / lengths, most);
}

}  // namespace engine
