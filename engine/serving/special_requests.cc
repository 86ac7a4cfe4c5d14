// Parts of the simulation for requests with an adapter or with images, and for those with several answers.
#include <algorithm>

#include "engine/serving/serving_sim.h"

namespace engine {
namespace {

// Of an answer, which stays in memory until it is done.
constexpr double kWorkOfAnAnswer = 32;

}  // namespace

// Prompts that have been read, or whose KV has come: their other answers begin, each with an output of its own length.
void ServingSim::fork(std::size_t index, const RequestSource& source) {
  Replica& replica = replicas_[index];
  for (const std::int32_t slot : replica.forking()) {
    const std::int64_t count = replica.sequence(slot).branches;
    charge(kWorkOfAnAnswer * double(count));
    const std::int32_t answers = answers_.open(count);
    replica.sequence(slot).answers = answers;
    const Sequence& asked = replica.sequence(slot);
    outputs_.clear();
    for (std::int64_t i = 1; i < count; ++i) {
      std::int64_t output = source.output_of(asked.number, i, asked.output);
      // As long as the model and the cache allow.
      while (output > 1 && !replica.fits(asked.prompt, output)) output /= 2;
      if (!adapters_.empty()) adapters_[index].need(asked.adapter, now_);
      outputs_.push_back(output);
    }
    replica.fork(slot, outputs_, answers, now_);
    // The replica that read the prompt has written the only token of the first answer.
    Sequence& first = replica.sequence(slot);
    if (first.whereabouts == Whereabouts::landed && first.generated == first.output) {
      answers_.done(first);
      expect_no_more(index, slot);
    }
  }
  replica.forking().clear();
}

// Where all adapters fit, no request waits for one.
void ServingSim::start_adapters() {
  const std::int64_t asked = problem_->load.adapters;
  const auto some = [asked](const PoolSetup& pool) {
    return pool.adapters.slots > 0 && pool.adapters.slots < asked;
  };
  adapters_.resize(std::ranges::any_of(problem_->pools, some) ? replicas_.size() : 0);
  for (std::size_t i = 0; i < adapters_.size(); ++i) {
    const PoolSetup& pool = problem_->pools[pool_of_[i]];
    adapters_[i].reset(some(pool) ? pool.adapters : AdapterCache::Setup{.slots = 0});
  }
}

std::int32_t ServingSim::take_in(std::size_t index, const Sequence& sequence, std::int64_t output) {
  const Awaited adapter = adapters_.empty() ? Awaited::nothing : Awaited::adapter;
  const Awaited awaits = encoders_.any() ? Awaited::images : adapter;
  const std::int32_t slot = replicas_[index].take_over(sequence, output, now_, awaits);
  if (awaits == Awaited::images) await_images(index, slot, now_);
  if (awaits == Awaited::adapter) await_adapter(index, slot, now_);
  return slot;
}

void ServingSim::await_adapter(std::size_t index, std::int32_t slot, double now) {
  AdapterCache& cache = adapters_[index];
  PoolSums& sums = stats_.pool(pool_of_[index]);
  Sequence& sequence = replicas_[index].sequence(slot);
  const double ready = cache.need(sequence.adapter, now);
  sums.adapters_asked += 1;
  if (ready <= now + kSameMoment) {
    sums.adapters_there += 1;
    return go_on(index, slot, now);
  }
  sequence.awaits = Awaited::adapter;
  sequence.joined = now;
  if (ready < AdapterCache::kNoRoom) {
    transfers_.start_from_below(ready, index, slot);
  } else {
    cache.waiting.push_back(slot);
  }
}

void ServingSim::go_on(std::size_t index, std::int32_t slot, double now) {
  Replica& replica = replicas_[index];
  Sequence& sequence = replica.sequence(slot);
  if (sequence.whereabouts != Whereabouts::expected) return replica.join_queue(slot, now);
  replica.ask_for_room(slot, now);
}

// A replica expects a sequence. Every sequence gets its adapter first and blocks afterwards: if some held blocks while they waited for
// adapters of others that wait for blocks, none would go on.
std::int32_t ServingSim::expect(std::size_t index, const Sequence& sequence, std::int32_t from,
                                std::int32_t from_slot) {
  const Awaited awaits = adapters_.empty() ? Awaited::nothing : Awaited::adapter;
  const std::int32_t slot = replicas_[index].expect(sequence, from, from_slot, now_, awaits);
  if (awaits == Awaited::adapter) await_adapter(index, slot, now_);
  note(index);
  return slot;
}

// It will not come.
void ServingSim::expect_no_more(std::size_t index, std::int32_t slot) {
  const Sequence& sequence = replicas_[index].sequence(slot);
  if (!adapters_.empty() && std::erase(adapters_[index].waiting, slot) == 0) {
    if (sequence.awaits == Awaited::adapter) transfers_.cancel(now_, index, slot);
    adapters_[index].release(sequence.adapter);
    find_room_for_adapters(index);
  }
  replicas_[index].expect_no_more(slot, now_);
  note(index);
}

// Requests have left, so waiting ones may get a place for their adapter now, in the order in which they came. A request whose adapter is
// loaded for another one goes on as well, and is not held up by those before it that want other adapters.
void ServingSim::find_room_for_adapters(std::size_t index) {
  AdapterCache& cache = adapters_[index];
  std::size_t left = 0;
  for (std::size_t i = 0; i < cache.waiting.size(); ++i) {
    const std::int32_t slot = cache.waiting[i];
    const double ready = cache.need(replicas_[index].sequence(slot).adapter, now_);
    if (ready == AdapterCache::kNoRoom) {
      // No waiting request has an adapter that was there before, so where the first finds no place, none of them does.
      if (i == 0) return;
      cache.waiting[left++] = slot;
      continue;
    }
    // One that is there already is there before anybody plans.
    if (ready <= now_ + kSameMoment) {
      take_awaited(index, slot);
    } else {
      transfers_.start_from_below(ready, index, slot);
    }
  }
  cache.waiting.resize(left);
}

// Its replica is known from the start.
void ServingSim::await_images(std::size_t index, std::int32_t slot, double now) {
  if (encoders_.batches()) {
    encoders_.enqueue({.replica = index, .slot = slot, .arrival = now});
    return start_encoders();
  }
  transfers_.start_from_below(encoders_.take(now), index, slot);
}

// Encoders that are free take those whose images wait.
void ServingSim::start_encoders() {
  const auto sent = [this](const Encoders::Request& request, double there) {
    transfers_.start_from_below(there, request.replica, request.slot);
  };
  while (const double free = encoders_.start(now_, sent)) {
    transfers_.start_from_below(free, kToEncoders, -1);
  }
}

// A request with images asks for its adapter once they are encoded, as in engines that get encoded images with the request.
void ServingSim::take_awaited(std::size_t index, std::int32_t slot) {
  const Sequence& sequence = replicas_[index].sequence(slot);
  if (sequence.awaits == Awaited::images && !adapters_.empty()) {
    await_adapter(index, slot, now_);
  } else {
    if (sequence.awaits == Awaited::adapter) {
      stats_.pool(pool_of_[index]).adapter_wait += now_ - sequence.joined;
    }
    go_on(index, slot, now_);
  }
  start_loads(index);
  note(index);
}

}  // namespace engine
