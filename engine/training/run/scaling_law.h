// Which loss a dense model reaches after how many tokens, by published fits of one form (Hoffmann et al., Training
// Compute-Optimal Large Language Models, 2022, approach 3): E + A / parameters^alpha + B / tokens^beta.
#pragma once

#include "engine/training/settings/train_settings.h"

namespace engine {

struct LossLaw {
  double least = 0;  // of endlessly many parameters and tokens
  double of_parameters = 0, alpha = 0;
  double of_tokens = 0, beta = 0;

  // With endlessly many tokens.
  double floor(double parameters) const;
  double loss(double parameters, double tokens) const;
  // Tokens after which a loss above the floor is reached.
  double tokens_for(double parameters, double loss) const;
};

// `law` is not none.
LossLaw loss_law(ScalingLaw law);

}  // namespace engine
