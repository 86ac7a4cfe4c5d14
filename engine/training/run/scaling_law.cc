#include "engine/training/run/scaling_law.h"

#include <cmath>

namespace engine {

double LossLaw::floor(double parameters) const {
  return least + of_parameters / std::pow(parameters, alpha);
}

double LossLaw::loss(double parameters, double tokens) const {
  return floor(parameters) + of_tokens / std::pow(tokens, beta);
}

double LossLaw::tokens_for(double parameters, double loss) const {
  return std::pow(of_tokens / (loss - floor(parameters)), 1 / beta);
}

LossLaw loss_law(ScalingLaw law) {
  // Besiroglu et al., Chinchilla Scaling: A Replication Attempt, 2024: the same data, fitted again.
  if (law == ScalingLaw::besiroglu_2024) {
    return {.least = 1.8172,
            .of_parameters = 482.01,
            .alpha = 0.3478,
            .of_tokens = 2085.43,
            .beta = 0.3658};
  }
  return {.least = 1.69, .of_parameters = 406.4, .alpha = 0.34, .of_tokens = 410.7, .beta = 0.28};
}

}  // namespace engine
