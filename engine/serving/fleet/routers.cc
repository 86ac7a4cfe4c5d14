// The routers, each a few lines; see router_table.h for their names.
#include <algorithm>
#include <array>

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

// The replica with most of the prompt in its cache, unless it is far busier than the least busy one.
std::size_t route_prefix_aware(const RouterView& view) {
  const std::size_t idlest = lightest(view);
  view.holders.fetch(view.request.prefix);
  view.replicas[idlest].pool().fetch(view.request.prefix);
  const auto cached = [&view](std::int32_t replica) {
    // Others than these may hold it: requests no longer go there.
    const bool open = view.weights.at(std::size_t(replica)) != kTakesNone;
    return open ? view.replicas[std::size_t(replica)].cached_tokens(view.request, view.now) : 0;
  };
  const PrefixHolders::Most first{std::int32_t(idlest), cached(std::int32_t(idlest))};
  const auto best =
      std::size_t(view.holders
                      .most_of(view.request.prefix, view.request.prompt - 1,
                               view.replicas[idlest].pool().block_size(), first, cached)
                      .cache);
  return far_busier(view, best, idlest) ? idlest : best;
}

// Requests of one session meet one replica; without sessions, any.
std::size_t route_sticky(const RouterView& view) {
  if (view.request.session < 0) return route_random(view);
  return home_of(view, view.request.session, 2);
}

namespace {

// How many of `count` replicas each class has, by its share of the requests: whole ones first, one at least, and what is left
// to the largest remainders, the more urgent of equals first.
std::array<std::int64_t, 3> replicas_by_share(const std::array<double, 3>& shares,
                                              std::int64_t count) {
  std::array<std::int64_t, 3> replicas{};
  const auto missing = [&](std::size_t i) {
    return shares[i] > 0 ? shares[i] * double(count) - double(replicas[i]) : -kNever;
  };
  std::int64_t left = count;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const auto whole = std::int64_t(shares[i] * double(count));
    replicas[i] = shares[i] > 0 ? std::max<std::int64_t>(1, whole) : 0;
    left -= replicas[i];
  }
  for (; left > 0; --left) {
    std::size_t most = 0;
    for (std::size_t i = 1; i < shares.size(); ++i) {
      if (missing(i) > missing(most)) most = i;
    }
    ++replicas[most];
  }
  // Where classes got their one replica at the expense of others, the class with most replicas gives one back.
  for (; left < 0; ++left) --*std::ranges::max_element(replicas);
  return replicas;
}

}  // namespace

// Classes have replicas of their own; where there are fewer replicas than classes, they share all of them.
std::size_t route_by_class(const RouterView& view) {
  const double high = view.classes.high.share, low = view.classes.low.share;
  const std::int64_t count = std::int64_t(view.takers.size());
  const std::int64_t classes = (high > 0) + (low > 0) + (high + low < 1);
  if (count < classes) return lighter_of_two(view, view.takers);
  const double normal = high + low < 1 ? 1 - high - low : 0;
  const auto [first, middle, last] = replicas_by_share({high, normal, low}, count);
  std::int64_t begin = 0, size = first;
  if (view.request.service_class == RequestClass::normal) begin = first, size = middle;
  if (view.request.service_class == RequestClass::low) begin = count - last, size = last;
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
