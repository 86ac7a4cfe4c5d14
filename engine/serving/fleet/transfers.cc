#include "engine/serving/fleet/transfers.h"

#include <algorithm>
#include <functional>

namespace engine {
namespace {

// No rate is infinite.
constexpr double kLeast = 1e-15;

double alone_of(const Shipment& shipment) {
  return std::max({shipment.sent, shipment.received, shipment.fabric, kLeast});
}

}  // namespace

void Transfers::reset(std::size_t replicas) {
  flows_.clear();
  unused_.clear();
  due_.clear();
  adapters_.resize(replicas);
  for (Adapter& adapter : adapters_) {
    adapter.flows.clear();
    adapter.idle_from = adapter.idle_until = 0;
  }
  started_ = 0;
  moment_ = reading_since_ = 0;
  in_fabric_.clear();
}

// Layers that left while later ones were computed, in time that neither end needed for anything else.
double Transfers::share_ahead(double now, const Shipment& shipment) {
  if (shipment.last_share >= 1) return 0;
  Adapter& from = adapters_[shipment.from];
  Adapter& to = adapters_[shipment.to];
  for (Adapter* end : {&from, &to}) {
    if (end->flows.empty()) end->idle_until = now;
  }
  const double reading_since = whole_moment(shipment.reading_since, reading_since_);
  // The first layer is there when its share of the prompt has been read.
  const double first = reading_since + shipment.last_share * (now - reading_since);
  const double begin = std::max({first, from.idle_from, to.idle_from});
  const double window = std::min(from.idle_until, to.idle_until) - begin;
  // A prompt that began to be read when an end was busy again cannot use the idle time before.
  if (window <= kSameMoment) return 0;
  const double alone = alone_of(shipment);
  const double ahead = std::min(1 - shipment.last_share, window / alone);
  from.idle_from = to.idle_from = begin + ahead * alone;
  return ahead;
}

std::int32_t Transfers::new_flow() {
  if (unused_.empty()) {
    flows_.emplace_back();
    return std::int32_t(flows_.size() - 1);
  }
  const std::int32_t slot = unused_.back();
  unused_.pop_back();
  return slot;
}

void Transfers::start_from_below(double end, std::size_t to, std::int32_t slot) {
  const std::int32_t flow = new_flow();
  flows_[std::size_t(flow)].shipment = {.from = kFromBelow, .to = to, .slot = slot};
  due_.push_back({end, started_++, flow, flows_[std::size_t(flow)].version});
  std::ranges::push_heap(due_, std::greater<>{});
}

std::size_t Transfers::start(double time, const Shipment& shipment) {
  const double now = whole_moment(time, moment_);
  const std::int32_t slot = new_flow();
  Flow& flow = flows_[std::size_t(slot)];
  const std::uint32_t version = flow.version;
  flow = {.shipment = shipment,
          .started = now,
          .left = 1 - share_ahead(now, shipment),
          .since = now,
          .order = started_++,
          .version = version};
  Adapter& from = adapters_[shipment.from];
  Adapter& to = adapters_[shipment.to];
  for (Adapter* end : {&from, &to}) {
    if (end->flows.empty()) end->idle_until = now;
    end->flows.push_back(slot);
  }
  if (shipment.fabric > 0) {
    in_fabric_.push_back(slot);
    share_fabric(now);
    return in_fabric_.size();
  }
  share_again(now, from);
  share_again(now, to);
  return from.flows.size() + to.flows.size();
}

double Transfers::adapter_rate(const Shipment& shipment) const {
  const double sharing_from = double(adapters_[shipment.from].flows.size());
  const double sharing_to = double(adapters_[shipment.to].flows.size());
  return 1 / std::max({shipment.sent * sharing_from, shipment.received * sharing_to, kLeast});
}

void Transfers::set_rate(double now, std::int32_t slot, double rate) {
  Flow& flow = flows_[std::size_t(slot)];
  if (rate == flow.rate) return;
  // All of it has left: when it is there is settled.
  if (flow.rate > 0 && flow.since + flow.left / flow.rate <= now) return;
  flow.left = std::max(0.0, flow.left - flow.rate * (now - flow.since));
  flow.since = now;
  flow.rate = rate;
  ++flow.version;
  due_.push_back({now + flow.left / rate, flow.order, slot, flow.version});
}

// What was added behind the first `settled` joins the heap. Where flows share a link, one that comes or goes changes the
// rates of all others: the heap is then made anew of what holds, rather than kept in order for entries that mean nothing.
void Transfers::settle(std::size_t settled) {
  if (4 * (due_.size() - settled) > settled) {
    std::erase_if(due_, [this](const Due& due) { return !holds(due); });
    std::ranges::make_heap(due_, std::greater<>{});
    return;
  }
  while (settled < due_.size()) {
    ++settled;
    std::push_heap(due_.begin(), due_.begin() + std::ptrdiff_t(settled), std::greater<>{});
  }
  drop_outdated();
}

void Transfers::share_again(double now, const Adapter& adapter) {
  const std::size_t settled = due_.size();
  for (const std::int32_t slot : adapter.flows) {
    set_rate(now, slot, adapter_rate(flows_[std::size_t(slot)].shipment));
  }
  settle(settled);
}

// All shipments have equal shares of the fabric. One that cannot use its share, because of its adapters, leaves the rest to the others.
void Transfers::share_fabric(double now) {
  uses_.clear();
  for (const std::int32_t slot : in_fabric_) {
    const Shipment& shipment = flows_[std::size_t(slot)].shipment;
    uses_.push_back(shipment.fabric * adapter_rate(shipment));
  }
  std::ranges::sort(uses_);
  double room = 1, level = kNone;
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const double even = room / double(uses_.size() - i);
    if (uses_[i] > even) {
      level = even;
      break;
    }
    room -= uses_[i];
  }
  const std::size_t settled = due_.size();
  for (const std::int32_t slot : in_fabric_) {
    const Shipment& shipment = flows_[std::size_t(slot)].shipment;
    set_rate(now, slot, std::min(adapter_rate(shipment), level / shipment.fabric));
  }
  settle(settled);
}

void Transfers::leave(double now, std::size_t replica, std::int32_t flow) {
  Adapter& adapter = adapters_[replica];
  std::erase(adapter.flows, flow);
  if (adapter.flows.empty()) {
    adapter.idle_from = adapter.idle_until = now;
  } else if (in_fabric_.empty()) {
    share_again(now, adapter);
  }
}

// Of shipments that arrive at one moment, which rounding may put in any order, the one that began first.
std::int32_t Transfers::first_of_this_moment() {
  const double latest = due_.front().end + kSameMoment;
  const Due* first = &due_.front();
  // Below one that comes later, nothing in the heap comes sooner.
  at_this_moment_.assign(1, 0);
  for (std::size_t i = 0; i < at_this_moment_.size(); ++i) {
    const std::size_t place = at_this_moment_[i];
    const Due& due = due_[place];
    if (holds(due) && due.order < first->order) first = &due;
    for (const std::size_t below : {2 * place + 1, 2 * place + 2}) {
      if (below < due_.size() && due_[below].end <= latest) at_this_moment_.push_back(below);
    }
  }
  return first->flow;
}

Transfers::Arrived Transfers::take() {
  const double now = due_.front().end;
  const std::int32_t slot = first_of_this_moment();
  const Flow& flow = flows_[std::size_t(slot)];
  if (!flow.crosses && flow.shipment.latency > kSameMoment) {
    cross(now, slot);
    return {.shipment = {.to = kStillCrossing}, .started = 0};
  }
  const Arrived arrived{flow.shipment, flow.started};
  end(now, slot);
  return arrived;
}

void Transfers::leave_ways(double now, std::int32_t slot) {
  const Shipment shipment = flows_[std::size_t(slot)].shipment;
  leave(now, shipment.from, slot);
  leave(now, shipment.to, slot);
  if (shipment.fabric > 0) {
    std::erase(in_fabric_, slot);
    share_fabric(now);
  }
}

// Its last byte has left, and is there when it has crossed the link.
void Transfers::cross(double time, std::int32_t slot) {
  const double now = same_moment(time, moment_);
  Flow& flow = flows_[std::size_t(slot)];
  flow.crosses = true;
  ++flow.version;
  due_.push_back({time + flow.shipment.latency, flow.order, slot, flow.version});
  std::ranges::push_heap(due_, std::greater<>{});
  leave_ways(now, slot);
  drop_outdated();
}

void Transfers::end(double time, std::int32_t slot) {
  const double now = same_moment(time, moment_);
  Flow& flow = flows_[std::size_t(slot)];
  ++flow.version;
  if (flow.shipment.from != kFromBelow && !flow.crosses) leave_ways(now, slot);
  unused_.push_back(slot);
  drop_outdated();
}

void Transfers::cancel(double now, std::size_t to, std::int32_t slot) {
  const auto found = std::ranges::find_if(due_, [&](const Due& due) {
    const Flow& flow = flows_[std::size_t(due.flow)];
    return holds(due) && flow.shipment.to == to && flow.shipment.slot == slot;
  });
  if (found != due_.end()) end(whole_moment(now, moment_), found->flow);
}

// The front of the heap is always true.
void Transfers::drop_outdated() {
  while (!due_.empty() && !holds(due_.front())) {
    std::ranges::pop_heap(due_, std::greater<>{});
    due_.pop_back();
  }
}

}  // namespace engine
