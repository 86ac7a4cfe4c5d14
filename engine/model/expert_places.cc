#include "engine/model/expert_places.h"

#include <algorithm>
#include <cmath>

namespace engine {
namespace {

// Tokens of a step beyond which favourites do not grow: the tables end there.
constexpr double kMostTokens = 16384;

// A host has no more devices. Recipes place copies where experts lie on several hosts, and on one of them none.
constexpr std::int64_t kOneHost = 8;

// One expert in so many has a second copy at least. 32 of DeepSeek-V3's 256 are what published deployments have, whatever their width:
// DeepSeek's own on 32 and 144 GPUs (inference system overview, 2025), SGLang's on 32 and 72 (--ep-num-redundant-experts 32, its issue
// 6017), TensorRT-LLM's (num_slots 288, examples/wide_ep).
constexpr std::int64_t kExpertsOfACopy = 8;

// A share of the mean. Whoever has more on one device and room for another copy places it: what the fullest device takes longer, all wait.
constexpr double kMostExcess = 1.0 / 3;

// Second copies that bring the experts and `least` of them to a multiple of the devices.
std::int64_t fewest_redundant(std::int64_t experts, std::int64_t devices, std::int64_t least = 0) {
  const std::int64_t slots = (experts + least + devices - 1) / devices;
  return slots * devices - experts;
}

ExpertPlaces places_with(std::int64_t copies, std::int64_t experts, std::int64_t devices) {
  return {.placed = experts + copies, .redundant = copies, .local = (experts + copies) / devices};
}

// "model.moe.experts 256"
std::string counted(const char* what, std::int64_t count) {
  return std::string(what) + " " + std::to_string(count);
}

std::optional<std::string> group_problem(const MoeSpec& moe) {
  if (moe.experts % moe.groups != 0) {
    return counted("model.moe.experts", moe.experts) + " cannot be split " +
           std::to_string(moe.groups) + " ways (model.moe.groups)";
  }
  if (moe.top_groups > moe.groups) {
    return counted("model.moe.top_groups", moe.top_groups) + " exceeds " +
           counted("model.moe.groups", moe.groups);
  }
  if (moe.top_k > moe.experts) {
    return counted("model.moe.top_k", moe.top_k) + " exceeds " +
           counted("model.moe.experts", moe.experts);
  }
  if (moe.top_k > moe.experts / moe.groups * moe.top_groups) {
    return counted("model.moe.top_k", moe.top_k) + " exceeds the experts of " +
           counted("model.moe.top_groups", moe.top_groups);
  }
  return std::nullopt;
}

// Why the devices cannot share experts in such groups, or nothing.
std::optional<std::string> sharing_problem(const Parallelism& parallel) {
  const std::int64_t tp = parallel.tp, ep = parallel.ep;
  // Devices that share a sequence have different tokens of it, as replicas have.
  const std::int64_t replicas = parallel.dp * parallel.cp;
  const std::string shared = parallel.cp > 1 ? " * parallel.cp" : "";
  if (ep > tp * replicas) return "parallel.ep exceeds parallel.tp * parallel.dp" + shared;
  const bool inside = ep <= tp;
  if (inside ? tp % ep != 0 : ep % tp != 0) {
    return "parallel.ep and parallel.tp must divide one another";
  }
  if (!inside && replicas % (ep / tp) != 0) {
    return counted(("parallel.dp" + shared).c_str(), replicas) + " cannot be split " +
           std::to_string(ep / tp) + " ways (parallel.ep / parallel.tp)";
  }
  return std::nullopt;
}

// The largest of so many independent normal values, on average; within 4% from two values on.
double largest_of(double values) {
  return std::max(0.0, std::sqrt(2 * std::log(std::max(values, 1.0))) - 0.6);
}

// What the fullest device has beyond the mean by chance, as a share of the mean: the largest of binomial counts, which lean to
// the right (Cornish and Fisher's first term).
double chance_excess(double mean, double devices) {
  const double z = largest_of(devices);
  return (z * std::sqrt(mean * (1 - 1 / devices)) + std::max(0.0, z * z - 1) / 6) / mean;
}

// What the fullest device has beyond the mean where second copies of popular experts are placed by somebody who knows loads of
// the past. By these the device with the busiest copy has next to nothing else, and all others the mean. Loads have moved since,
// each by itself, and some device has the most of those that grew: with copies of unequal loads as if it had fewer of them. Loads
// evenly spread in their logarithm up to the busiest copy have half of it, over their mean, as mean of squares.
double planned_excess(const Moe& op) {
  const double experts = double(op.experts - op.redundant);
  const double devices = double(op.experts) / double(op.local_experts);
  const double busiest = busiest_copy(largest_load(op), double(op.redundant) / experts);
  const double planned = std::max(0.0, busiest * devices / experts - 1);
  const double uneven = std::max(1.0, busiest / 2);
  const double moved =
      op.drift * largest_of(devices) * std::sqrt(uneven / double(op.local_experts));
  return std::hypot(planned, moved);
}

// What the fullest device has beyond the mean because some experts are popular, as a share of the mean.
double favoured_excess(const Moe& op, double strength) {
  const double devices = double(op.experts) / double(op.local_experts);
  const double variation = std::sqrt(std::max(std::log(largest_load(op)) / 2 - 0.9, 0.05));
  const double favoured = strength * std::sqrt(2 * std::log(std::max(devices, 1.0001))) *
                          variation / std::sqrt(double(op.local_experts));
  return op.redundant > 0 ? std::min(favoured, strength * planned_excess(op)) : favoured;
}

// No device has more than all, nor more than all tokens.
double at_most_all(double fullest, const Moe& op) {
  return std::min({fullest, double(op.experts) / double(op.local_experts),
                   std::max(double(op.experts) / double(op.top_k), 1.0)});
}

// In steps of so many tokens that chance evens out.
Moe many_tokens(const ModelSpec& model, const ExpertPlaces& places) {
  return {.tokens = kMostTokens,
          .top_k = model.moe.top_k,
          .experts = places.placed,
          .redundant = places.redundant,
          .local_experts = places.local,
          .drift = model.moe.drift};
}

double most_popular(const Moe& op, double skew) {
  return at_most_all(1 + favoured_excess(op, skew), op);
}

// As recipes place them, by loads of the past.
std::int64_t copies_by_load(const ModelSpec& model, std::int64_t devices) {
  const std::int64_t experts = model.moe.experts;
  const std::int64_t least = (experts + kExpertsOfACopy - 1) / kExpertsOfACopy;
  const std::int64_t copies = fewest_redundant(experts, devices, least);
  const bool room = copies + devices <= experts * (devices - 1);
  Moe past = many_tokens(model, places_with(copies, experts, devices));
  past.drift = 0;
  return room && most_popular(past, model.moe.skew) > 1 + kMostExcess ? copies + devices : copies;
}

}  // namespace

double largest_load(const Moe& op) { return std::clamp(0.8 * op.tokens, 1.1, 0.8 * kMostTokens); }

std::optional<std::string> expert_problem(const ModelSpec& model, const Parallelism& parallel) {
  const std::int64_t devices = parallel.ep;
  const std::int64_t wanted = parallel.redundant_experts;
  if (!model.is_moe()) {
    if (devices > 1) return "parallel.ep > 1 needs a model with experts";
    if (wanted > 0) return "parallel.redundant_experts needs a model with experts";
    return std::nullopt;
  }
  if (auto problem = group_problem(model.moe)) return problem;
  if (auto problem = sharing_problem(parallel)) return problem;
  if (!parallel.states_copies()) return std::nullopt;
  if (wanted > 0 && devices == 1) return "parallel.redundant_experts needs parallel.ep > 1";
  const std::int64_t experts = model.moe.experts;
  if (wanted > experts * (devices - 1)) {
    return counted("parallel.redundant_experts", wanted) + " puts an expert twice on one device";
  }
  const std::int64_t over = (experts + wanted) % devices;
  if (over == 0) return std::nullopt;
  const std::string less = wanted > over ? std::to_string(wanted - over) + " or " : "";
  return counted("model.moe.experts", experts) + " and " +
         counted("parallel.redundant_experts", wanted) + " cannot be split " +
         std::to_string(devices) + " ways (parallel.ep); " + less +
         std::to_string(wanted - over + devices) + " redundant experts can";
}

// Up to `tp` devices nothing is exchanged: experts take the place of splitting.
bool shared_by_hosts(const Parallelism& parallel) {
  return parallel.ep > kOneHost && parallel.ep > parallel.tp;
}

ExpertPlaces expert_places(const ModelSpec& model, const Parallelism& parallel) {
  if (!model.is_moe()) return {};
  const std::int64_t experts = model.moe.experts;
  const std::int64_t devices = parallel.ep;
  if (parallel.states_copies()) {
    return places_with(parallel.redundant_experts, experts, devices);
  }
  const bool by_load = parallel.expert_copies == ExpertCopies::by_load && shared_by_hosts(parallel);
  return places_with(by_load ? copies_by_load(model, devices) : fewest_redundant(experts, devices),
                     experts, devices);
}

double most_popular_device(const ModelSpec& model, const ExpertPlaces& places) {
  return most_popular(many_tokens(model, places), model.moe.skew);
}

double places_reached(double places, double draws) {
  if (places <= 1) return 1;
  return -places * std::expm1(draws * std::log1p(-1 / places));
}

double tokens_on_the_fullest(const FullestPlace& place, double draws) {
  const double chosen = place.fuller / place.open;  // by a token that may choose it
  if (chosen < 1) return -place.open * std::expm1(draws * std::log1p(-chosen));
  // All that may choose it do; if it gets still more, more tokens may.
  return std::min(place.places, place.open * chosen);
}

double nodes_within_limit(double nodes, const GroupLimit& limit) {
  return std::min(nodes, limit.top_groups * std::max(1.0, nodes / limit.groups));
}

double busiest_copy(double largest, double second_copies) {
  const double range = std::log(std::max(largest, 1.0 + 1e-9));
  const double peak = range * largest / std::max(largest - 1, 1e-9);
  if (second_copies <= 0) return std::max(1.0, peak);
  // Experts busier than a level get copies until none is: one of y times the level gets y - 1/2 more on
  // average, since copies are whole. With x the logarithm of the peak over the level, that takes
  // (exp(x) - 1 - x / 2) / range copies an expert. Newton's steps from above fall to the root.
  const double copies = second_copies * range;
  double x = std::min({range, 2 * copies, std::log1p(copies) + 1});
  for (int i = 0; i < 6 && x > 0; ++i) {
    x -= (std::expm1(x) - x / 2 - copies) / (std::exp(x) - 0.5);
  }
  // Where all have as many copies, each has its share of the mean.
  return std::max(1 / (1 + second_copies), peak * std::exp(-std::clamp(x, 0.0, range)));
}

double fullest_device(const Moe& op, double strength) {
  const double devices = double(op.experts) / double(op.local_experts);
  const double chance = chance_excess(std::max(copies_on_a_device(op), 1e-9), devices);
  return at_most_all(1 + std::hypot(favoured_excess(op, strength), chance), op);
}

double fullest_of(const ExpertExchange& op, std::int64_t places) {
  return fullest_device({.tokens = op.tokens * double(op.ranks),
                         .top_k = op.top_k,
                         .experts = op.experts,
                         .redundant = op.redundant,
                         .local_experts = std::max<std::int64_t>(1, op.experts / places),
                         .drift = op.drift},
                        op.skew);
}

double copies_on_the_fullest(const Moe& op) {
  return copies_on_a_device(op) * fullest_device(op, op.skew);
}

}  // namespace engine
