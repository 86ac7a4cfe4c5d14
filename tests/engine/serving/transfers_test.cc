// KV caches that share adapters: times that one can work out, and the exact fair rates as a reference.
#include "engine/serving/fleet/transfers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "tests/support/random_load.h"

namespace engine {
namespace {

struct Sent {
  double at = 0;
  Shipment shipment;
};

// When each is there, by the order in which they were sent.
std::vector<double> arrivals(const std::vector<Sent>& sent, std::size_t replicas) {
  Transfers transfers;
  transfers.reset(replicas);
  std::vector<double> there(sent.size());
  const auto take_until = [&](double time) {
    while (transfers.next() <= time) {
      const double now = transfers.next();
      const Shipment done = transfers.take().shipment;
      if (done.to != kStillCrossing) there[std::size_t(done.slot)] = now;
    }
  };
  for (std::size_t i = 0; i < sent.size(); ++i) {
    take_until(sent[i].at);
    Shipment shipment = sent[i].shipment;
    shipment.slot = std::int32_t(i);
    transfers.start(sent[i].at, shipment);
  }
  take_until(std::numeric_limits<double>::max());
  return there;
}

TEST(Transfers, AloneAShipmentTakesAsLongAsItsSlowerEnd) {
  const Shipment shipment{.from = 0, .to = 1, .sent = 2, .received = 3, .latency = 0.5};
  EXPECT_DOUBLE_EQ(arrivals({{1, shipment}}, 2)[0], 4.5);
}

TEST(Transfers, TwoShareTheEndThatTheyHaveInCommon) {
  const Shipment one{.from = 0, .to = 2, .sent = 1, .received = 2};
  const Shipment other{.from = 1, .to = 2, .sent = 1, .received = 2};
  // The first is half there when the second starts; then both at half the rate.
  const std::vector<double> there = arrivals({{0, one}, {1, other}}, 3);
  EXPECT_DOUBLE_EQ(there[0], 3);
  EXPECT_DOUBLE_EQ(there[1], 4);
}

// Those that start within a moment are there together, however many share a way: what rounding lets one begin before another is nothing.
TEST(Transfers, StartedWithinAMomentAreThereTogether) {
  for (const double fabric : {0.0, 3.0}) {
    for (const double apart : {1e-15, 1e-12, 5e-10}) {
      const Shipment one{.from = 0, .to = 1, .sent = 1, .received = 1, .fabric = fabric};
      const Shipment other{.from = 0, .to = 2, .sent = 1, .received = 1, .fabric = fabric};
      const Shipment third{.from = 0, .to = 3, .sent = 1, .received = 1, .fabric = fabric};
      const std::vector<double> there =
          arrivals({{1, one}, {1 + apart, other}, {1 + 1.5 * apart, third}}, 4);
      EXPECT_NEAR(there[0], there[1], 1e-14) << fabric << " " << apart;
      EXPECT_NEAR(there[0], there[2], 1e-14) << fabric << " " << apart;
    }
  }
}

// One that starts later while it has its way to itself misses that much of the whole way, and makes up for it at the rate that the
// others leave. So where answers bring the next requests, any difference grows with every round, one of rounding as well.
TEST(Transfers, StartingLaterCostsAsManyTimesAsMuchAsShareTheWay) {
  const Shipment shipment{.from = 0, .to = 1, .sent = 2, .received = 2};
  for (const int others : {0, 1, 2, 5}) {
    for (const double later : {0.0, 1.0 / 64, 1.0 / 2}) {
      std::vector<Sent> sent{{later, shipment}};
      for (int i = 0; i < others; ++i) sent.push_back({1, shipment});
      const double left = 2 - (1 - later);
      EXPECT_DOUBLE_EQ(arrivals(sent, 2)[0], 1 + left * (1 + others)) << others << " " << later;
    }
  }
}

// Otherwise it would double with every round where two share a way.
TEST(Transfers, HowAStartWasSummedUpDoesNotShow) {
  for (const double fabric : {0.0, 1.0}) {
    Shipment shipment{.from = 0, .to = 1, .sent = 0.7, .received = 0.5, .fabric = fabric};
    shipment.last_share = 0.3;
    const auto both = [&](double first, double second) {
      shipment.reading_since = first / 2;
      return arrivals({{first, shipment}, {second, shipment}, {second + 0.1, shipment}}, 2);
    };
    ASSERT_NE(0.1 + 0.2, 0.3);
    EXPECT_EQ(both(0.1 + 0.2, 0.7 + 0.1), both(0.3, 0.8)) << fabric;
  }
}

// Two seconds on the wire and half a second of latency, in which another starts.
TEST(Transfers, WhatHasLeftIsNotDelayed) {
  const Shipment one{.from = 0, .to = 1, .sent = 2, .received = 2, .latency = 0.5};
  EXPECT_DOUBLE_EQ(arrivals({{0, one}, {2.3, one}}, 2)[0], 2.5);
}

// While its last byte crosses a long link, its adapters and the fabric carry the next ones, and layers that are sent ahead.
TEST(Transfers, WhatCrossesALinkHoldsNoAdapter) {
  for (const double fabric : {0.0, 2.0}) {
    const Shipment far{
        .from = 0, .to = 1, .sent = 2, .received = 2, .fabric = fabric, .latency = 50};
    Shipment layered = far;
    layered.last_share = 0.25;
    layered.reading_since = 10;
    const std::vector<double> there = arrivals({{0, far}, {1, far}, {4.5, far}, {14, layered}}, 2);
    EXPECT_DOUBLE_EQ(there[0], 53);  // half of it alone, the rest at half the rate
    EXPECT_DOUBLE_EQ(there[1], 54);
    EXPECT_DOUBLE_EQ(there[2], 56.5);
    EXPECT_DOUBLE_EQ(there[3], 64.5);  // but for a quarter all left while it was read
  }
}

TEST(Transfers, NobodyElseIsConcerned) {
  const Shipment one{.from = 0, .to = 2, .sent = 1, .received = 2};
  const Shipment other{.from = 1, .to = 3, .sent = 1, .received = 2};
  const std::vector<double> there = arrivals({{0, one}, {1, other}}, 4);
  EXPECT_DOUBLE_EQ(there[0], 2);
  EXPECT_DOUBLE_EQ(there[1], 3);
}

// Two pairs of adapters that could each carry their shipment in a second, over a fabric that takes 1.5 s for one.
TEST(Transfers, AnOversubscribedFabricIsSharedEvenly) {
  const Shipment one{.from = 0, .to = 2, .sent = 1, .received = 1, .fabric = 1.5};
  const Shipment other{.from = 1, .to = 3, .sent = 1, .received = 1, .fabric = 1.5};
  EXPECT_DOUBLE_EQ(arrivals({{0, one}}, 4)[0], 1.5);
  const std::vector<double> there = arrivals({{0, one}, {0, other}}, 4);
  EXPECT_DOUBLE_EQ(there[0], 3);
  EXPECT_DOUBLE_EQ(there[1], 3);
}

// A shipment whose adapters hold it back leaves the rest of the fabric to the other.
TEST(Transfers, WhatAdaptersLeaveOfAFabricGoesToOthers) {
  const Shipment slow{.from = 0, .to = 2, .sent = 4, .received = 1, .fabric = 1};  // uses a quarter
  const Shipment fast{.from = 1, .to = 3, .sent = 1, .received = 1, .fabric = 1.5};
  const std::vector<double> there = arrivals({{0, slow}, {0, fast}}, 4);
  EXPECT_DOUBLE_EQ(there[0], 4);
  EXPECT_DOUBLE_EQ(there[1], 2);  // three quarters of the fabric
}

// At no time does more cross the fabric than it can take, and with a wide one nothing changes.
TEST(Transfers, AFabricThatIsWideEnoughChangesNothing) {
  for (std::uint64_t number = 0; number < 100; ++number) {
    toys::Dice dice(number);
    std::vector<Sent> sent;
    double at = 0;
    for (std::int32_t i = 0; i < 30; ++i) {
      at += dice.between(0, 0.6);
      sent.push_back({at, Shipment{.from = std::size_t(dice.whole(0, 3)),
                                   .to = std::size_t(dice.whole(4, 6)),
                                   .sent = dice.between(0.1, 2),
                                   .received = dice.between(0.1, 2)}});
    }
    const std::vector<double> without = arrivals(sent, 7);
    double work = 0;
    for (Sent& one : sent) one.shipment.fabric = 1e-3 * one.shipment.sent;
    const std::vector<double> wide = arrivals(sent, 7);
    for (std::size_t i = 0; i < sent.size(); ++i) EXPECT_NEAR(wide[i], without[i], 1e-9) << number;
    for (Sent& one : sent) work += one.shipment.fabric = one.shipment.sent;
    const std::vector<double> narrow = arrivals(sent, 7);
    double last = 0;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      EXPECT_GE(narrow[i], sent[i].at + sent[i].shipment.fabric - 1e-9) << number;
      last = std::max(last, narrow[i]);
    }
    EXPECT_GE(last - sent[0].at, work * (1 - 1e-9)) << number;
  }
}

// Layers sent ahead use time in which the adapters had nothing to do, once.
TEST(Transfers, WhatIsSentAheadUsesIdleTimeOnce) {
  const Shipment layered{
      .from = 0, .to = 1, .sent = 4, .received = 4, .last_share = 0.25, .reading_since = 6};
  EXPECT_DOUBLE_EQ(arrivals({{10, layered}}, 2)[0], 11);  // three quarters went from 6 to 9
  // The first of four layers was there at 6.5: three eighths went until 8.
  EXPECT_DOUBLE_EQ(arrivals({{8, layered}}, 2)[0], 10.5);
  // Two prompts read together, whose first layers are there at 7: the first uses all of the three seconds.
  const std::vector<double> there = arrivals({{10, layered}, {10, layered}}, 2);
  EXPECT_DOUBLE_EQ(there[0], 12);
  EXPECT_DOUBLE_EQ(there[1], 15);
  // All that crossed the adapters fits into the time since reading began.
  EXPECT_LE(2 * 4, there[1] - layered.reading_since);
}

// The last layers of three prompts share a way. That rounding let one of them be read for less long is nothing, not three times as
// much.
TEST(Transfers, ReadSinceTheSameMomentAreThereTogether) {
  for (const double apart : {1e-15, 1e-13, 1e-11}) {
    std::vector<Sent> sent;
    for (std::size_t i = 0; i < 3; ++i) {
      sent.push_back({10,
                      {.from = i,
                       .to = 3 + i,
                       .sent = 4,
                       .received = 4,
                       .fabric = 4,
                       .last_share = 0.25,
                       .reading_since = i == 0 ? 8 : 8 + apart}});
    }
    const std::vector<double> there = arrivals(sent, 6);
    EXPECT_NEAR(there[0], there[1], 1e-14) << apart;
    EXPECT_NEAR(there[0], there[2], 1e-14) << apart;
  }
}

// A prompt that was first read when the adapters were busy again takes none of the time before, whichever way that is rounded: the
// one after it, read since long, may use it.
TEST(Transfers, IdleTimeBeforeAPromptIsLeftToOthers) {
  const Shipment whole{.from = 0, .to = 1, .sent = 4, .received = 4};
  Shipment late = whole, early = whole;
  late.last_share = early.last_share = 0.25;
  early.reading_since = 1;
  std::vector<double> last;
  for (const double rounded : {-1e-12, 0.0, 1e-12}) {
    late.reading_since = 10 + rounded;
    last.push_back(arrivals({{10, whole}, {11, late}, {12, early}}, 2)[2]);
  }
  EXPECT_NEAR(last[0], last[1], 1e-9);
  EXPECT_NEAR(last[2], last[1], 1e-9);
}

// ---- the reference: max-min fair rates, worked out anew at every start and end --------------------------

// Adapters send a token a second; those that receive take so many times as long.
constexpr double kSlower = 1.5;

struct Fluid {
  Sent sent;
  double left = 1, there = -1;
  double rate = 0;
};

// Rates rise together until an end is full; those at it keep theirs.
void fill(std::vector<Fluid*> moving, std::size_t replicas) {
  std::vector<double> room(replicas, 1);
  for (Fluid* fluid : moving) fluid->rate = 0;
  std::vector<Fluid*> rising = moving;
  while (!rising.empty()) {
    std::vector<double> use(replicas, 0);
    for (const Fluid* fluid : rising) {
      use[fluid->sent.shipment.from] += 1;
      use[fluid->sent.shipment.to] += kSlower;
    }
    double rise = std::numeric_limits<double>::max();
    for (std::size_t i = 0; i < replicas; ++i) {
      if (use[i] > 0) rise = std::min(rise, room[i] / use[i]);
    }
    for (std::size_t i = 0; i < replicas; ++i) room[i] -= rise * use[i];
    for (Fluid* fluid : rising) fluid->rate += rise / fluid->sent.shipment.sent;
    std::erase_if(rising, [&](const Fluid* fluid) {
      return room[fluid->sent.shipment.from] < 1e-12 || room[fluid->sent.shipment.to] < 1e-12;
    });
  }
}

std::vector<double> fair_arrivals(const std::vector<Sent>& sent, std::size_t replicas) {
  std::vector<Fluid> all;
  for (const Sent& one : sent) all.push_back({one});
  double now = 0;
  for (;;) {
    std::vector<Fluid*> moving;
    double next = std::numeric_limits<double>::max();
    for (Fluid& fluid : all) {
      if (fluid.there >= 0) continue;
      if (fluid.sent.at <= now) {
        moving.push_back(&fluid);
      } else {
        next = std::min(next, fluid.sent.at);
      }
    }
    fill(moving, replicas);
    for (const Fluid* fluid : moving) next = std::min(next, now + fluid->left / fluid->rate);
    if (next == std::numeric_limits<double>::max()) break;
    for (Fluid* fluid : moving) {
      fluid->left -= fluid->rate * (next - now);
      if (fluid->left < 1e-12) fluid->there = next;
    }
    now = next;
  }
  std::vector<double> there;
  for (const Fluid& fluid : all) there.push_back(fluid.there);
  return there;
}

std::vector<Sent> random_shipments(toys::Dice& dice, std::size_t from, std::size_t to) {
  std::vector<Sent> sent;
  double at = 0;
  for (int i = 0; i < 40; ++i) {
    at = whole_moments(at + dice.between(0, 1));  // as all start
    const double tokens = dice.between(0.1, 3);
    sent.push_back({at,
                    {.from = std::size_t(dice.whole(0, std::int64_t(from) - 1)),
                     .to = from + std::size_t(dice.whole(0, std::int64_t(to) - 1)),
                     .sent = tokens,
                     .received = kSlower * tokens}});
  }
  return sent;
}

TEST(Transfers, EqualFairRatesWhereOneEndIsShared) {
  for (std::uint64_t number = 0; number < 100; ++number) {
    toys::Dice dice(number);
    const std::vector<Sent> sent = random_shipments(dice, 8, 1);
    const std::vector<double> there = arrivals(sent, 9), fair = fair_arrivals(sent, 9);
    for (std::size_t i = 0; i < sent.size(); ++i) EXPECT_NEAR(there[i], fair[i], 1e-9) << number;
  }
}

// Everywhere else they waste what a shipment leaves unused at one of its ends: a little, never a gain.
TEST(Transfers, AreALittleSlowerThanFairRatesElsewhere) {
  double ours = 0, best = 0;
  for (std::uint64_t number = 0; number < 200; ++number) {
    toys::Dice dice(1000 + number);
    const std::vector<Sent> sent = random_shipments(dice, 4, 3);
    const std::vector<double> there = arrivals(sent, 7), fair = fair_arrivals(sent, 7);
    double mine = 0, theirs = 0;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      mine += there[i] - sent[i].at;
      theirs += fair[i] - sent[i].at;
    }
    EXPECT_GT(mine, theirs * (1 - 1e-3)) << number;
    ours += mine;
    best += theirs;
  }
  EXPECT_LT(ours / best, 1.25);
}

}  // namespace
}  // namespace engine
