#include "engine/tasks/serve/typical_request.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "engine/feasibility.h"

namespace engine {
namespace {

// KV tokens that a client has in the cache while it waits, on average over time, which passes with the tokens of answers. A turn lasts
// until the longest answer of its calls, and a call until its own longest. What calls of a turn find of their history they hold together
// where prefixes are cached. At any moment those with long answers are more than their share, since they stay longer.
double held_by_client(const DrawnLoad& drawn, const PoolSetup& pool) {
  const Load& load = drawn.load;
  const TypicalRequest typical = typical_request(drawn);
  const MeanLengths mean = mean_lengths(drawn), inside = lengths_inside(drawn);
  const double calls = double(load.calls_of_session()), later_turns = double(load.turns - 1);
  const double call = longest_output(drawn, load.samples);
  const double later = longest_output(drawn, load.samples * load.branches);
  const double own = typical.prompt - typical.history + inside.prompt - mean.prompt;
  const double written = double(load.samples) * mean.output *
                         (inside.output / 2 + double(pool.state * pool.pace.queries));
  const double history = pool.settings.prefix_caching
                             ? typical.history * later / double(load.branches)
                             : typical.history * call;
  return calls * (own * call + written + history) / (call + later_turns * later);
}

}  // namespace

TypicalRequest typical_request(const DrawnLoad& drawn) {
  const Load& load = drawn.load;
  const Trace* trace = drawn.trace;
  if (load_problem(load, trace)) return {};
  if (load.arrivals == ArrivalKind::trace) {
    // All rows that are replayed, since every n-th of them could be all those of one kind.
    const auto rows = std::ptrdiff_t(total_requests(load, trace));
    const auto mean = [rows](const std::vector<std::int32_t>& tokens) {
      return std::accumulate(tokens.begin(), tokens.begin() + rows, 0.0) / double(rows);
    };
    return {mean(trace->prompt) + double(load.image_prompt()), mean(trace->output)};
  }
  const MeanLengths mean = mean_lengths(drawn);
  // Each turn re-sends the ones before it.
  const double before = double(load.turns - 1) / 2;
  if (load.branches == 1) {
    const double history = before * (mean.prompt + mean.output);
    return {mean.prompt + history, mean.output, history};
  }
  // A turn adds a prompt and the answers of all its calls, and every call of the next one re-sends them.
  const double turn = mean.prompt + mean.output * double(load.branches);
  const double later =
      double(load.turns - 1) * (mean.prompt + mean.output) + turn * before * double(load.turns - 2);
  const double each = double(load.branches) / double(load.calls_of_session());
  // What the other calls of the turn before answered is new to each.
  const double unread =
      mean.output * double(load.branches - 1) * double(std::max<std::int64_t>(0, load.turns - 2));
  return {mean.prompt + each * later, mean.output, each * (later - unread)};
}

std::array<TypicalRequest, kRequestClasses> typical_of_classes(const DrawnLoad& drawn) {
  const auto all_of = [&](const LoadClass& one) {
    Load load = drawn.load;
    load.classes = {.high = one};
    return typical_request(
        {.load = load, .trace = drawn.trace, .seed = drawn.seed, .memory = drawn.memory});
  };
  LoadClass high = drawn.load.classes.high, low = drawn.load.classes.low;
  high.share = low.share = 1;
  return {all_of(high), all_of({}), all_of(low)};
}

std::int64_t clients_that_fill(const DrawnLoad& drawn, const PoolSetup& pool) {
  const Load& load = drawn.load;
  const double replicas = double(pool.replicas), groups = double(load.prefix_groups);
  const double wanted =
      load.kv_fraction * double(pool.kv_blocks) * replicas * double(pool.settings.block_size);
  const double held = held_by_client(drawn, pool);
  const double shared = pool.settings.prefix_caching
                            ? std::min(double(load.shared_prefix), mean_lengths(drawn).prompt - 1)
                            : 0;
  // The number of different system prompts that the clients of a replica have, each of which is in the cache once.
  const auto filled = [&](double clients) {
    const double different = groups * (1 - std::pow(1 - 1 / groups, clients / replicas));
    return clients * (held - shared) + replicas * different * shared;
  };
  double few = wanted / held, many = shared > 0 ? wanted / (held - shared) : few;
  for (int halving = 0; halving < 60 && few < many; ++halving) {
    const double middle = (few + many) / 2;
    (filled(middle) < wanted ? few : many) = middle;
  }
  return std::int64_t(std::clamp(few, 1.0, kMostCount));
}

}  // namespace engine
