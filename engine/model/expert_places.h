// Where the routed experts and their second copies lie, and how a token's choices spread over places.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/model/model_spec.h"
#include "engine/model/op.h"
#include "engine/model/parallelism.h"

namespace engine {

struct ExpertPlaces {
  std::int64_t placed = 0;     // experts and second copies, on all devices that share them
  std::int64_t redundant = 0;  // of these: second copies
  std::int64_t local = 0;      // on one device

  bool operator==(const ExpertPlaces&) const = default;
};

// Why the experts cannot lie like this, or nothing.
std::optional<std::string> expert_problem(const ModelSpec& model, const Parallelism& parallel);

// `expert_problem` found nothing.
ExpertPlaces expert_places(const ModelSpec& model, const Parallelism& parallel);

// Copies of tokens on the device that holds the most popular experts, over the mean of all devices that share them, as far as it follows
// from who is popular and who has second copies. Chance comes on top (`fullest_device`).
double most_popular_device(const ModelSpec& model, const ExpertPlaces& places);

// How many of `places` equal places `draws` independent choices reach, on average.
double places_reached(double places, double draws);

// Tokens of all that reach the fullest place at least once, over those that a place starts from: tokens make `draws` choices
// each, among `open` of `places`, and the place is chosen `fuller` times as often as the mean. 1: as `places_reached(open)`.
// Never more than all tokens.
struct FullestPlace {
  double places = 1;
  double open = 1;
  double fuller = 1;
};
double tokens_on_the_fullest(const FullestPlace& place, double draws);

// Nodes, of `nodes`, that the experts of one token may lie on. Groups of experts lie on as few nodes as
// they can, so a token that keeps to `top_groups` of `groups` keeps to their nodes.
struct GroupLimit {
  double groups = 1;
  double top_groups = 1;
};
double nodes_within_limit(double nodes, const GroupLimit& limit);

// The load of the busiest copy of any expert over the mean load of an expert, after `second_copies` (a
// share of the experts) went where they help most. Loads are spread evenly in their logarithm from 1 to
// `largest`, as a power law of exponent 1 has them.
double busiest_copy(double largest, double second_copies);

// Tokens that the most popular expert gets where the least popular one gets one, under a power law of exponent 1, as the tables have it.
// They end at 16384 tokens: favourites do not grow with all that is sent to them.
double largest_load(const Moe& op);

// Copies of tokens on the fullest device over the mean of all. By chance alone some device has more than others, the more so
// the fewer copies there are; and where routers favour some experts by a power law, some devices hold more of the popular ones,
// by extreme values of a sum of skewed loads. `strength`: how much more or less than a law of exponent 1 says; 0: all alike.
double fullest_device(const Moe& op, double strength);

// The same of an exchange between `places` that share the experts evenly: its devices, or nodes of them.
double fullest_of(const ExpertExchange& op, std::int64_t places);

// Copies of tokens that reach it, where experts are favoured as the op says.
double copies_on_the_fullest(const Moe& op);

}  // namespace engine
