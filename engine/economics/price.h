// What tokens are worth: the rent of the devices over the tokens they handle.
#pragma once

#include "engine/base/units.h"

namespace engine {

// Dollars per million tokens. Each of the three shares the whole rent out over its own tokens, so they
// are three ways to say one price, and do not add up.
struct TokenPrices {
  double both = 0;    // over prompt and generated tokens together
  double prompt = 0;  // over prompt tokens alone
  double output = 0;  // over generated tokens alone
};

struct TokenRates {
  TokensPerSecond both, prompt, output;
};

// NaN where no rent is stated, which is a rent of zero, and where there are no such tokens.
TokenPrices token_prices(DollarsPerSecond rent, const TokenRates& rates);

}  // namespace engine
