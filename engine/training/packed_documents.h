// How long the documents are that are packed into sequences, as attention sees them.
#pragma once

#include "engine/training/train_settings.h"

namespace engine {

constexpr bool is_packed(const TrainSettings& train) {
  return train.document_length > 0 &&
         (train.document_length < train.sequence || train.document_cv > 0);
}

// Length of the document that a token is in, on average over tokens: the mean square of lengths over their mean. Lengths are
// lognormal, and what is longer than a sequence is cut there.
double length_around_a_token(const TrainSettings& train);

}  // namespace engine
