#include "engine/tasks/report_price.h"

#include "engine/economics/price.h"
#include "engine/tasks/task_table.h"

namespace engine {

void report_price(const Scenario& scenario, TokensPerSecond prompt, Metrics& metrics,
                  const OnShare& on) {
  DollarsPerSecond rent;
  bool stated = true;
  each_deployment(scenario, [&](const Deployment& deployment, double devices) {
    stated = stated && deployment.device.rent.value > 0;
    rent += deployment.device.rent * (devices * (on ? on(deployment) : 1));
  });
  // Without a rent the price is null: a price of zero would win every comparison.
  if (!stated) return;
  metrics.rent = rent;
  const TokenPrices prices = token_prices(
      metrics.rent, {.both = metrics.total, .prompt = prompt, .output = metrics.output});
  metrics.price_usd_per_mtok = prices.both;
  metrics.price_usd_per_mtok_prompt = prices.prompt;
  metrics.price_usd_per_mtok_output = prices.output;
}

}  // namespace engine
