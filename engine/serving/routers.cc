// The routers, each a few lines; see router_table.h for their names.
#include <algorithm>

#include "engine/base/random.h"
#include "engine/serving/replica.h"
#include "engine/serving/router.h"

namespace engine {
namespace {

std::size_t draw(const RouterView& view, std::uint64_t n, std::uint32_t lane) {
  const std::size_t count = view.replicas.size();
  const double u = uniform(view.seed, Stream::routing, n, lane);
  return std::min(std::size_t(u * double(count)), count - 1);
}

// The replica of the least weight; the first of equals.
std::size_t lightest(const RouterView& view) {
  return view.weights.first_at_most(view.weights.least());
}

// Twice the queue, and a handful more, is worth more than any cache.
bool far_busier(const RouterView& view, std::size_t one, std::size_t idlest) {
  return view.replicas[one].outstanding() > 2 * view.replicas[idlest].outstanding() + 8;
}

}  // namespace

std::size_t route_round_robin(const RouterView& view) {
  return std::size_t(view.nth) % view.replicas.size();
}

std::size_t route_random(const RouterView& view) { return draw(view, std::uint64_t(view.nth), 0); }

std::size_t route_lightest(const RouterView& view) { return lightest(view); }

std::size_t route_power_of_two(const RouterView& view) {
  const std::size_t a = draw(view, std::uint64_t(view.nth), 0);
  const std::size_t b = draw(view, std::uint64_t(view.nth), 1);
  return view.replicas[b].outstanding() < view.replicas[a].outstanding() ? b : a;
}

// The replica with most of the prompt in its cache, unless it is far busier than the least busy one.
std::size_t route_prefix_aware(const RouterView& view) {
  const std::size_t idlest = lightest(view);
  const auto cached = [&view](std::int32_t replica) {
    // Others than these may hold it: requests no longer go there.
    const bool open = std::size_t(replica) < view.replicas.size();
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
  return draw(view, std::uint64_t(session ? view.request.session : view.nth), session ? 2 : 0);
}

// The replica that an adapter belongs to, unless that is far busier than the least busy one.
std::size_t route_adapter_affine(const RouterView& view) {
  const std::size_t idlest = lightest(view);
  if (view.request.adapter < 0) return idlest;
  const std::size_t home = draw(view, std::uint64_t(view.request.adapter), 3);
  return far_busier(view, home, idlest) ? idlest : home;
}

}  // namespace engine
