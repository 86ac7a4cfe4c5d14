// The routers, each a few lines; see router_table.h for their names.
#include <algorithm>

#include "engine/base/random.h"
#include "engine/serving/replica.h"
#include "engine/serving/router.h"

namespace engine {
namespace {

// Of so many, the one that a random number falls on.
std::size_t draw(const RouterView& view, std::size_t count, std::uint64_t n, std::uint32_t lane) {
  const double u = uniform(view.seed, Stream::routing, n, lane);
  return std::min(std::size_t(u * double(count)), count - 1);
}

// The replica of the least weight; the first of equals.
std::size_t lightest(const RouterView& view) {
  return view.weights.first_at_most(view.weights.least());
}

// The one of two that has fewer requests.
std::size_t lighter_of_two(const RouterView& view, std::span<const std::int32_t> among) {
  const auto one = std::size_t(among[draw(view, among.size(), std::uint64_t(view.nth), 0)]);
  const auto other = std::size_t(among[draw(view, among.size(), std::uint64_t(view.nth), 1)]);
  return view.replicas[other].outstanding() < view.replicas[one].outstanding() ? other : one;
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
  const bool session = view.request.session >= 0;
  const auto n = std::uint64_t(session ? view.request.session : view.nth);
  return std::size_t(view.takers[draw(view, view.takers.size(), n, session ? 2 : 0)]);
}

// Classes have replicas of their own, as many as their share of the requests comes to and one at least; where there are
// too few replicas for that, they share all of them.
std::size_t route_by_class(const RouterView& view) {
  const double high = view.classes.high.share, low = view.classes.low.share;
  const std::int64_t count = std::int64_t(view.takers.size());
  const std::int64_t classes = (high > 0) + (low > 0) + (high + low < 1);
  if (count < classes) return lighter_of_two(view, view.takers);
  const auto replicas_of = [&](double share, std::int64_t others) {
    const auto even = std::int64_t(share * double(count) + 0.5);
    return share > 0 ? std::clamp<std::int64_t>(even, 1, count - others) : 0;
  };
  const std::int64_t first = replicas_of(high, classes - 1);
  std::int64_t last = std::min(replicas_of(low, classes - 1), count - first - (high + low < 1));
  if (high + low >= 1) last = count - first;
  std::int64_t begin = 0, size = first;
  if (view.request.service_class == RequestClass::normal)
    begin = first, size = count - first - last;
  if (view.request.service_class == RequestClass::low) begin = count - last, size = last;
  return lighter_of_two(view, view.takers.subspan(std::size_t(begin), std::size_t(size)));
}

// The replica that an adapter belongs to, unless that is far busier than the least busy one.
std::size_t route_adapter_affine(const RouterView& view) {
  const std::size_t idlest = lightest(view);
  if (view.request.adapter < 0) return idlest;
  const std::size_t place = draw(view, view.takers.size(), std::uint64_t(view.request.adapter), 3);
  const auto home = std::size_t(view.takers[place]);
  return far_busier(view, home, idlest) ? idlest : home;
}

}  // namespace engine
