// Parts of the simulation for requests with an adapter or with images, and for those with several answers.
#include "engine/serving/serving_sim.h"

namespace engine {
namespace {

// Of an answer, which stays in memory until it is done.
constexpr double kWorkOfAnAnswer = 32;

}  // namespace

// Prompts that have been read: their other answers begin, each with an output of its own length.
void ServingSim::fork(std::size_t index, const RequestSource& source) {
  Replica& replica = replicas_[index];
  for (const std::int32_t slot : replica.forking()) {
    const std::int64_t count = replica.sequence(slot).branches;
    problem_->pools[0].context.charge(kWorkOfAnAnswer * double(count));
    const std::int32_t answers = answers_.open(replica.sequence(slot), count);
    replica.sequence(slot).answers = answers;
    for (std::int64_t i = 1; i < count; ++i) {
      const Sequence& first = replica.sequence(slot);
      std::int64_t output = source.output_of(first.number, i, first.output);
      // As long as the model and the cache allow.
      while (output > 1 && !replica.fits(first.prompt, output)) output /= 2;
      replica.fork(slot, output, answers, now_);
    }
  }
  replica.forking().clear();
}

// Where all adapters fit nobody waits for any.
void ServingSim::start_adapters() {
  const PoolSetup& pool = problem_->pools[0];
  const bool some = pool.adapters.slots > 0 && pool.adapters.slots < problem_->load.adapters;
  adapters_.resize(some ? replicas_.size() : 0);
  for (AdapterCache& cache : adapters_) cache.reset(pool.adapters);
}

void ServingSim::enqueue_with_adapter(std::size_t index, std::int64_t output) {
  AdapterCache& cache = adapters_[index];
  PoolSums& sums = stats_.pool(pool_of_[index]);
  const double now = request_.arrival;
  const double ready = cache.need(request_.adapter, now);
  sums.adapters_asked += 1;
  if (ready <= now + kSameMoment) {
    sums.adapters_there += 1;
    replicas_[index].enqueue(request_, output, Replica::Adapter::there);
    return;
  }
  const std::int32_t slot = replicas_[index].enqueue(request_, output, Replica::Adapter::awaited);
  if (ready < AdapterCache::kNoRoom) {
    transfers_.start_from_below(ready, index, slot);
  } else {
    cache.waiting.push_back(slot);
  }
}

// Requests have left: those that waited for a place for their adapter may have one now, in the order in which they came.
void ServingSim::find_room_for_adapters(std::size_t index) {
  AdapterCache& cache = adapters_[index];
  std::size_t found = 0;
  for (; found < cache.waiting.size(); ++found) {
    const std::int32_t slot = cache.waiting[found];
    const double ready = cache.need(replicas_[index].sequence(slot).adapter, now_);
    if (ready == AdapterCache::kNoRoom) break;
    transfers_.start_from_below(ready, index, slot);
  }
  cache.waiting.erase(cache.waiting.begin(), cache.waiting.begin() + std::ptrdiff_t(found));
}

// It queues up once its images have come; its replica is known from the start.
void ServingSim::enqueue_with_images(std::size_t index, std::int64_t output) {
  const std::int32_t slot = replicas_[index].enqueue(request_, output, Replica::Adapter::awaited);
  if (encoders_.batches()) {
    encoders_.enqueue({.replica = index, .slot = slot, .arrival = request_.arrival});
    return start_encoders();
  }
  transfers_.start_from_below(encoders_.take(request_.arrival), index, slot);
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

void ServingSim::take_awaited(std::size_t index, std::int32_t slot) {
  Replica& replica = replicas_[index];
  stats_.pool(pool_of_[index]).adapter_wait += now_ - replica.sequence(slot).arrival;
  replica.join_queue(slot, now_);
  start_loads(index);
  note(index);
}

}  // namespace engine
