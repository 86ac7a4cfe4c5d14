// How long the documents are that are packed into sequences, as attention sees them.
#pragma once

#include "engine/training/settings/train_settings.h"

namespace engine {

constexpr bool is_packed(const TrainSettings& train) {
  return train.document_length > 0 &&
         (train.document_length < train.sequence || train.document_cv > 0);
}

// Twice the keys that a token sees, on average over tokens, each seeing at most `window` (0: all) of its document. Lengths are
// lognormal, and what is longer than a sequence is cut there. Without a window that is the mean square of lengths over
// their mean: the length of the document that a token is in.
double length_around_a_token(const TrainSettings& train, double window);

// The same of documents of one length.
double length_of_equal(double length, double window);

}  // namespace engine
