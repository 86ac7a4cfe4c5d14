#include "sweep/run/runner.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/base/check.h"
#include "engine/evaluate.h"
#include "sweep/run/chunk_queue.h"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace sweep {
namespace {

// A chunk should take about this long: long enough that handing it over costs nothing beside it,
// short enough that the last chunks of a run do not leave threads idle.
constexpr double kChunkSeconds = 0.01;
// Each worker has a chunk of rows in memory.
constexpr std::uint64_t kMostPositions = 1024;

// Everything the workers share.
struct Shared {
  const Space& space;
  ChunkQueue& queue;
  RowSink& sink;
  const engine::Resources& resources;
  OutcomeArchive* archive;
  double point_budget;
  StopSignal& stop;
  Progress& progress;
  std::mutex mutex;  // guards the two below
  Tally total;
  std::exception_ptr failure;
};

class Worker {
 public:
  explicit Worker(Shared& shared)
      : shared_(shared), builder_(shared.space), work_(shared.point_budget, &shared.stop.flag()) {}

  void work() {
    // The first chunk is one point: it may be a simulation of seconds, with a million rows.
    std::uint64_t size = 1;
    while (!shared_.stop.requested()) {
      const auto chunk = shared_.queue.next(size);
      if (!chunk) return;
      const auto start = std::chrono::steady_clock::now();
      const std::uint64_t done = run_chunk(*chunk);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      // Grow and shrink gently: one slow point among fast ones should not make chunks tiny.
      const double fitting = double(done) * kChunkSeconds / std::max(taken.count(), 1e-9);
      size = std::clamp(std::uint64_t(fitting), std::max<std::uint64_t>(1, size / 4), 4 * size);
      size = std::min(size, kMostPositions);
    }
  }

 private:
  // Returns how many positions were done: fewer than asked for after a stop.
  std::uint64_t run_chunk(IndexRange chunk) {
    std::unique_ptr<ChunkRows> rows = shared_.sink.start_chunk();
    Tally tally;
    tally.rejected.resize(shared_.space.requirements().size());
    std::uint64_t index = chunk.begin;
    try {
      for (; index < chunk.end && !shared_.stop.requested(); ++index)
        run_point(index, *rows, tally);
    } catch (const engine::WorkStopped&) {
      // The point at `index` is left for another time; those before it are done.
    }
    if (index > chunk.begin) {
      shared_.sink.finish_chunk(std::move(rows), {chunk.begin, index}, tally);
      shared_.progress.add(tally);
      const std::lock_guard lock(shared_.mutex);
      shared_.total.add(tally);
    }
    return index - chunk.begin;
  }

  void run_point(std::uint64_t index, ChunkRows& rows, Tally& tally) {
    const engine::CurrentPoint current(index);
    switch (builder_.build(index, point_)) {
      case Admission::rejected:
        ++tally.rejected[std::size_t(builder_.rejected_by())];
        return;
      case Admission::not_applicable:
        ++tally.not_applicable;
        return;
      case Admission::admitted:
        break;
    }
    if (reused()) {
      ++tally.reused;
    } else {
      engine::evaluate_into(point_.scenario, shared_.resources, outcome_, work_, scratch_);
    }
    tally.count(outcome_);
    rows.add(point_, outcome_);
  }

  // A point that failed may do better now: with another budget, or on another machine.
  bool reused() {
    return shared_.archive != nullptr && shared_.archive->find(point_.key, outcome_) &&
           outcome_.status != engine::Status::failed;
  }

  Shared& shared_;
  PointBuilder builder_;
  engine::WorkMeter work_;
  engine::Scratch scratch_;
  Point point_;
  engine::Outcome outcome_;
};

void work_guarded(Shared& shared) {
  try {
    Worker(shared).work();
  } catch (...) {
    shared.stop.request();
    const std::lock_guard lock(shared.mutex);
    if (!shared.failure) shared.failure = std::current_exception();
  }
}

// oneTBB is not built with the thread sanitizer, which therefore cannot see that workers start after
// all that was prepared for them, and that we go on after them. It is told.
#ifdef __SANITIZE_THREAD__
char hand_over;
void give() { __tsan_release(&hand_over); }
void take() { __tsan_acquire(&hand_over); }
#else
void give() {}
void take() {}
#endif

}  // namespace

RunReport run_points(const Space& space, const IndexSet& todo, RowSink& sink,
                     const RunOptions& options, StopSignal& stop, Progress& progress) {
  Supply once = [left = todo]() mutable { return std::exchange(left, {}); };
  return run_points(space, std::move(once), sink, options, stop, progress);
}

RunReport run_points(const Space& space, Supply supply, RowSink& sink, const RunOptions& options,
                     StopSignal& stop, Progress& progress) {
  const int threads =
      options.threads > 0 ? options.threads : std::max(1, int(std::thread::hardware_concurrency()));
  ChunkQueue queue(std::move(supply));
  const engine::Resources nothing;
  const engine::Resources& resources = options.resources != nullptr ? *options.resources : nothing;
  Shared shared{space,    queue, sink, resources, options.archive, options.point_budget, stop,
                progress, {},    {},   {}};
  // TBB starts no more threads than there are cores unless told to.
  const tbb::global_control allow(tbb::global_control::max_allowed_parallelism,
                                  std::size_t(threads));
  tbb::task_arena arena(threads);
  const auto work = [&shared](int) {
    take();
    work_guarded(shared);
    give();
  };
  give();
  arena.execute([&] { tbb::parallel_for(0, threads, work, tbb::simple_partitioner()); });
  take();
  if (shared.failure) std::rethrow_exception(shared.failure);
  sink.flush();
  return {.tally = shared.total, .stopped = !queue.all_done(shared.total.positions())};
}

}  // namespace sweep
