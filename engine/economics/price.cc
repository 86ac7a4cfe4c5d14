#include "engine/economics/price.h"

#include <limits>

namespace engine {
namespace {

double price_of(DollarsPerSecond rent, TokensPerSecond tokens) {
  constexpr double million = 1e6;
  if (!(rent.value > 0) || !(tokens.value > 0)) return std::numeric_limits<double>::quiet_NaN();
  return rent.value / tokens.value * million;
}

}  // namespace

TokenPrices token_prices(DollarsPerSecond rent, const TokenRates& rates) {
  return {.both = price_of(rent, rates.both),
          .prompt = price_of(rent, rates.prompt),
          .output = price_of(rent, rates.output)};
}

}  // namespace engine
