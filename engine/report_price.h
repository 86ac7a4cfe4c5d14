// Rent and prices of a point whose devices and token rates are known.
#pragma once

#include "engine/economics/price.h"
#include "engine/hardware/device.h"
#include "engine/outcome.h"

namespace engine {

inline void report_price(const Device& device, TokensPerSecond prompt, Metrics& metrics) {
  // Nobody stated a rent: null says so, a price of zero would win every comparison.
  if (!(device.rent.value > 0)) return;
  metrics.rent = device.rent * metrics.devices;
  const TokenPrices prices = token_prices(
      metrics.rent, {.both = metrics.total, .prompt = prompt, .output = metrics.output});
  metrics.price_usd_per_mtok = prices.both;
  metrics.price_usd_per_mtok_prompt = prices.prompt;
  metrics.price_usd_per_mtok_output = prices.output;
}

}  // namespace engine
