// The routers, each a few lines; see router_table.h for their names.
#include <algorithm>
#include <numeric>

#include "engine/base/random.h"
#include "engine/serving/fleet/router.h"
#include "engine/serving/replica/replica.h"

namespace engine {
namespace {

// One of `count` replicas, by a random number.
std::size_t draw(const RouterView& view, std::size_t count, std::uint64_t n, std::uint32_t lane) {
  const double u = uniform(view.seed, Stream::routing, n, lane);
  return std::min(std::size_t(u * double(count)), count - 1);
}

// The replica of the least weight; the first of equals.
std::size_t lightest(const RouterView& view) { return view.weights.first(); }

// The one of two different ones that has fewer requests, as in SGLang's and vLLM's routers: one that was drawn twice would be no choice.
std::size_t lighter_of_two(const RouterView& view, std::span<const std::int32_t> among) {
  const std::size_t count = among.size();
  const auto n = std::uint64_t(view.nth);
  const std::size_t place = draw(view, count, n, 0);
  const auto one = std::size_t(among[place]);
  if (count == 1) return one;
  const auto other = std::size_t(among[(place + 1 + draw(view, count - 1, n, 1)) % count]);
  return view.replicas[other].outstanding() < view.replicas[one].outstanding() ? other : one;
}

// The replica that a session or an adapter belongs to. Random numbers of its own name one replica after the other, and the first of these
// that takes requests has it. So it stays where it is while others come and go, and those of a replica that fails are spread over the
// rest. Where hardly any replica takes requests, so that 256 names were in vain, one of those that do is drawn.
std::size_t home_of(const RouterView& view, std::int64_t key, std::uint32_t lane) {
  constexpr std::uint32_t names = 256, lanes = 4;
  const std::size_t count = view.replicas.size();
  for (std::uint32_t i = 0; i < names; ++i) {
    const std::size_t place = draw(view, count, std::uint64_t(key), lane + lanes * i);
    if (view.takers.size() == count) return place;
    if (std::ranges::binary_search(view.takers, std::int32_t(place))) return place;
  }
  return std::size_t(view.takers[draw(view, view.takers.size(), std::uint64_t(key), lane)]);
}

// Twice the queue, and a handful more, is worth more than any cache.
bool far_busier(const RouterView& view, std::size_t one, std::size_t idlest) {
  return view.replicas[one].outstanding() > 2 * view.replicas[idlest].outstanding() + 8;
}

}  // namespace

std::size_t route_round_robin(const RouterView& view) {
  return std::size_t(view.takers[std::size_t(view.nth) % view.takers.size()]);
}

std::size_t route_random(const RouterView& view) {
  return std::size_t(view.takers[draw(view, view.takers.size(), std::uint64_t(view.nth), 0)]);
}

std::size_t route_lightest(const RouterView& view) { return lightest(view); }

std::size_t route_power_of_two(const RouterView& view) { return lighter_of_two(view, view.takers); }

// The replica with most of the prompt in its cache, and of those that have equally much the least busy one; unless that is far busier
// than the least busy of all. Where several are as idle as can be, a random number says which of these counts: prompts that nobody knows
// are to fill all caches, not the first one's.
std::size_t route_prefix_aware(const RouterView& view) {
  const std::size_t start = draw(view, view.replicas.size(), std::uint64_t(view.nth), 0);
  const std::size_t idlest = view.weights.next_at_most(start, view.weights.least());
  view.holders.fetch(view.request.prefix);
  view.replicas[idlest].pool().fetch(view.request.prefix);
  const auto cached = [&view](std::int32_t replica) {
    // Others than these may hold it: requests no longer go there.
    const bool open = view.weights.at(std::size_t(replica)) != kTakesNone;
    return open ? view.replicas[std::size_t(replica)].cached_tokens(view.request, view.now) : 0;
  };
  const PrefixHolders::Most first{std::int32_t(idlest), cached(std::int32_t(idlest))};
  const auto weight = [&view](std::int32_t replica) {
    return view.weights.at(std::size_t(replica));
  };
  const auto best =
      std::size_t(view.holders
                      .most_of(view.request.prefix, view.request.prompt - 1,
                               view.replicas[idlest].pool().block_size(), first, cached, weight)
                      .cache);
  return far_busier(view, best, idlest) ? idlest : best;
}

// Requests of one session meet one replica; without sessions, any.
std::size_t route_sticky(const RouterView& view) {
  if (view.request.session < 0) return route_random(view);
  return home_of(view, view.request.session, 2);
}

ClassReplicas replicas_of_classes(const ClassWork& work, std::int64_t count) {
  ClassReplicas replicas{};
  for (std::size_t i = 0; i < work.size(); ++i) replicas[i] = work[i] > 0 ? 1 : 0;
  std::int64_t left = count - std::accumulate(replicas.begin(), replicas.end(), std::int64_t{0});
  if (left < 0) return {};
  const auto busier = [&](std::size_t a, std::size_t b) {
    return work[a] > 0 &&
           (replicas[b] == 0 || work[a] / double(replicas[a]) > work[b] / double(replicas[b]));
  };
  for (; left > 0; --left) {
    std::size_t busiest = 0;
    for (std::size_t i = 1; i < work.size(); ++i) busiest = busier(i, busiest) ? i : busiest;
    ++replicas[busiest];
  }
  return replicas;
}

// Classes have replicas of their own; where there are fewer replicas than classes, they share all of them.
std::size_t route_by_class(const RouterView& view) {
  const auto [first, middle, last] = view.class_replicas;
  if (first + middle + last == 0) return lighter_of_two(view, view.takers);
  std::int64_t begin = 0, size = first;
  if (view.request.service_class == RequestClass::normal) begin = first, size = middle;
  if (view.request.service_class == RequestClass::low) begin = first + middle, size = last;
  return lighter_of_two(view, view.takers.subspan(std::size_t(begin), std::size_t(size)));
}

// The replica that an adapter belongs to, unless that is far busier than the least busy one.
std::size_t route_adapter_affine(const RouterView& view) {
  const std::size_t idlest = lightest(view);
  if (view.request.adapter < 0) return idlest;
  const std::size_t home = home_of(view, view.request.adapter, 3);
  return far_busier(view, home, idlest) ? idlest : home;
}

}  // namespace engine
