#include "engine/training/pipeline/pipeline_dual.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <memory>

#include "engine/base/check.h"
#include "engine/training/pipeline/pipeline_waves.h"

namespace engine {
namespace {

// When one way's passes of one kind ended on one rank. Others need only the last ones, of which there is room for a power of two.
class Ends {
 public:
  void keep_in(double* room, std::int64_t size) {
    moments_ = room;
    mask_ = size - 1;
  }
  std::int64_t done() const { return done_; }
  bool has(std::int64_t number) const { return number < done_; }
  double operator[](std::int64_t number) const { return moments_[number & mask_]; }
  void add(double moment) { moments_[done_++ & mask_] = moment; }
  void go_on_at(std::int64_t number) { done_ = number; }

 private:
  double* moments_ = nullptr;
  std::int64_t mask_ = 0, done_ = 0;
};

// Gradients of weights that wait for their turn, first come first served.
struct PutOff {
  std::vector<double> times;
  std::size_t next = 0;
};

class Ways {
 public:
  explicit Ways(const Pipeline& pipeline)
      : pipeline_(pipeline),
        ranks_(dual_rank(pipeline, 0).ranks),
        passes_(passes_of_a_way(pipeline)),
        // At the turn data stays on its stage, where there is one; else it goes to the one that is the same, seen from the other end.
        turn_(pipeline.schedule == Schedule::dualpipe ? pipeline.send.value : 0),
        free_(std::size_t(ranks_), 0),
        inward_(free_.size(), 0),
        put_off_(free_.size()) {
    const auto kept = std::int64_t(std::bit_ceil(std::uint64_t(4 * ranks_ + 4)));
    room_ = std::make_unique_for_overwrite<double[]>(std::size_t(4 * ranks_ * kept));
    double* room = room_.get();
    for (auto* ends : {&forward_, &backward_}) {
      for (std::vector<Ends>& way : *ends) {
        way.resize(free_.size());
        for (Ends& rank : way) {
          rank.keep_in(room, kept);
          room += kept;
        }
      }
    }
  }

  double run() {
    std::vector<std::vector<DualPass>> orders(free_.size());
    for (std::int64_t r = 0; r < ranks_; ++r) {
      const DualRank rank{ranks_, r};
      orders[std::size_t(r)].reserve(std::size_t(6 * ranks_ + 4));
      rank.add_opening(orders[std::size_t(r)]);
      rank.add_rounds(0, 1, orders[std::size_t(r)]);
    }
    follow(orders);
    do_rounds();
    for (std::int64_t r = 0; r < ranks_; ++r) {
      const DualRank rank{ranks_, r};
      std::vector<DualPass>& order = orders[std::size_t(r)];
      order.clear();
      rank.add_rounds(rounds_of_all() + 1, rank.rounds(passes_), order);
      rank.add_closing(order);
    }
    follow(orders);
    return *std::max_element(free_.begin(), free_.end());
  }

 private:
  const ChunkTime& chunk(std::int64_t rank, int way) const {
    const std::size_t at = std::size_t(rank), all = pipeline_.chunks.size();
    return pipeline_.chunks[way == 0 ? at : all - 1 - at];
  }

  // When the result of the pass arrives for which another one waits; null: it waits for none.
  struct Awaited {
    const Ends* ends = nullptr;
    double send = 0;
  };
  Awaited before_forward(std::int64_t rank, int way) const {
    const std::size_t r = std::size_t(rank);
    const double send = pipeline_.send.value;
    if (way == 0) return rank == 0 ? Awaited{} : Awaited{&forward_[0][r - 1], send};
    if (rank == ranks_ - 1) return {&forward_[0][r], turn_};
    return {&forward_[1][r + 1], send};
  }
  Awaited before_backward(std::int64_t rank, int way) const {
    const std::size_t r = std::size_t(rank);
    const double send = pipeline_.send.value;
    if (way == 1) return rank == 0 ? Awaited{} : Awaited{&backward_[1][r - 1], send};
    if (rank == ranks_ - 1) return {&backward_[1][r], turn_};
    return {&backward_[0][r + 1], send};
  }
  static bool waits(const Awaited& awaited, const Ends& own) {
    return awaited.ends != nullptr && !awaited.ends->has(own.done());
  }
  static double arrival(const Awaited& awaited, const Ends& own) {
    return awaited.ends == nullptr ? 0 : (*awaited.ends)[own.done()] + awaited.send;
  }

  // Every rank does what it can, until all have come to the ends of their orders.
  void follow(const std::vector<std::vector<DualPass>>& orders) {
    std::vector<std::size_t> at(orders.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < orders.size(); ++r) {
        while (at[r] < orders[r].size() && did(std::int64_t(r), orders[r][at[r]])) {
          ++at[r];
          moved = true;
        }
      }
    }
    for (std::size_t r = 0; r < orders.size(); ++r) {
      check(at[r] == orders[r].size(), "a pipeline's order leads to its end");
    }
  }

  bool did(std::int64_t rank, const DualPass& pass) {
    const std::size_t r = std::size_t(rank);
    double& free = free_[r];
    const bool forwards = pass.work == StageWork::forward || pass.work == StageWork::pair;
    const int back_way = pass.work == StageWork::pair ? 1 - pass.way : pass.way;
    if (pass.work == StageWork::weights) {
      free += put_off_[r].times[put_off_[r].next++];
      return true;
    }
    Ends &forward = forward_[pass.way][r], &backward = backward_[std::size_t(back_way)][r];
    const ChunkTime &down = chunk(rank, pass.way), &up = chunk(rank, back_way);
    const bool backwards = pass.work != StageWork::forward;
    const Awaited input = forwards ? before_forward(rank, pass.way) : Awaited{};
    const Awaited gradient = backwards ? before_backward(rank, back_way) : Awaited{};
    if ((forwards && waits(input, forward)) || (backwards && waits(gradient, backward))) {
      return false;
    }
    free = std::max({free, forwards ? arrival(input, forward) : 0,
                     backwards ? arrival(gradient, backward) : 0});
    if (pass.work == StageWork::pair) {
      free += (down.beside_forward + up.beside_backward).value;
    } else if (pass.work == StageWork::forward) {
      free += down.forward.value;
    } else {
      free += up.backward.value;
      if (pass.work == StageWork::backward) free += up.weights.value;
      if (pass.work == StageWork::inputs) put_off_[r].times.push_back(up.weights.value);
    }
    if (forwards) forward.add(free);
    if (backwards) backward.add(free);
    return true;
  }

  std::int64_t rounds_of_all() const { return passes_ - 2 * ranks_; }

  // Rounds that all ranks do, after the first one: a pair that goes inward to the turn, for which a rank waits for the one before it in
  // the round before, and one that comes back, for which it waits for the next rank in the same round. What is skipped makes the passes
  // of each way fewer.
  void do_rounds() {
    const std::size_t ranks = free_.size();
    std::vector<double> inward(ranks), back(ranks), both(ranks);
    for (std::size_t r = 0; r < ranks; ++r) {
      const ChunkTime &near = chunk(std::int64_t(r), 0), &far = chunk(std::int64_t(r), 1);
      inward[r] = (near.beside_forward + far.beside_backward).value;
      back[r] = (far.beside_forward + near.beside_backward).value;
      both[r] = inward[r] + back[r];
      inward_[r] = forward_[0][r][forward_[0][r].done() - 1];
    }
    const double send = pipeline_.send.value;
    Repetition repetition(slowest_loop(both, {}, 2 * send));
    for (std::int64_t round = 1; round <= rounds_of_all(); ++round) {
      passes_ -= repetition.left_out(rounds_of_all() - round + 1, {&free_, &inward_});
      if (round > rounds_of_all()) break;
      for (std::size_t r = ranks; r-- > 0;) {
        const double arrives = r == 0 ? 0 : inward_[r - 1] + send;
        inward_[r] = std::max(free_[r], arrives) + inward[r];
      }
      for (std::size_t r = ranks; r-- > 0;) {
        const double arrives = r + 1 == ranks ? inward_[r] + turn_ : free_[r + 1] + send;
        free_[r] = std::max(inward_[r], arrives) + back[r];
      }
    }
    write_down();
  }

  // What others wait for is of the last of these rounds.
  void write_down() {
    if (rounds_of_all() < 1) return;
    for (std::int64_t r = 0; r < ranks_; ++r) {
      const std::size_t at = std::size_t(r);
      const std::int64_t round = rounds_of_all();
      const auto add = [&](Ends& ends, std::int64_t number, double moment) {
        ends.go_on_at(number);
        ends.add(moment);
      };
      add(forward_[0][at], 2 * ranks_ - r - 1 + round, inward_[at]);
      add(backward_[1][at], ranks_ - 1 - r + round, inward_[at]);
      add(forward_[1][at], ranks_ + round, free_[at]);
      add(backward_[0][at], round, free_[at]);
    }
  }

  const Pipeline& pipeline_;
  std::int64_t ranks_, passes_;
  double turn_;
  std::vector<double> free_, inward_;
  std::vector<PutOff> put_off_;
  std::unique_ptr<double[]> room_;
  std::array<std::vector<Ends>, 2> forward_, backward_;
};

}  // namespace

void DualRank::add_opening(std::vector<DualPass>& order) const {
  const std::int64_t inside = ranks - rank - 1;
  for (std::int64_t i = 0; i < 2 * inside; ++i) order.push_back({StageWork::forward, 0});
  for (std::int64_t i = 0; i <= rank; ++i) {
    order.push_back({StageWork::forward, 0});
    order.push_back({StageWork::forward, 1});
  }
  for (std::int64_t i = 0; i < inside; ++i) {
    order.push_back({StageWork::inputs, 1});
    order.push_back({StageWork::weights});
    order.push_back({StageWork::forward, 1});
  }
}

void DualRank::add_rounds(std::int64_t from, std::int64_t upto,
                          std::vector<DualPass>& order) const {
  for (std::int64_t i = from; i < upto; ++i) {
    // The rank at the turn has nothing to wait for with its first backward pass but the forward pass.
    if (i == 0 && rank == ranks - 1) {
      order.push_back({StageWork::forward, 0});
      order.push_back({StageWork::backward, 1});
    } else {
      order.push_back({StageWork::pair, 0});
    }
    order.push_back({StageWork::pair, 1});
  }
}

void DualRank::add_closing(std::vector<DualPass>& order) const {
  const std::int64_t inside = ranks - rank - 1;
  for (std::int64_t i = 0; i < inside; ++i) {
    order.push_back({StageWork::backward, 1});
    order.push_back({StageWork::pair, 1});
  }
  // Gradients of weights are put off from the middle of these passes on, to follow while gradients of inputs are waited for.
  const std::int64_t each = rank + 1;
  for (std::int64_t i = 0; i < 2 * each; ++i) {
    const bool puts_off = i >= each / 2 * 2 + (rank % 2 == 0 ? 1 : 0);
    order.push_back({puts_off ? StageWork::inputs : StageWork::backward, std::uint8_t(1 - i % 2)});
  }
  for (std::int64_t i = 0; i < inside; ++i) {
    order.push_back({StageWork::weights});
    order.push_back({StageWork::inputs, 0});
  }
  for (std::int64_t i = 0; i < each; ++i) order.push_back({StageWork::weights});
}

DualRank dual_rank(const Pipeline& pipeline, std::int64_t stage) {
  if (pipeline.schedule == Schedule::dualpipe_v) return {pipeline.stages, stage};
  return {pipeline.stages / 2, std::min(stage, pipeline.stages - 1 - stage)};
}

std::int64_t passes_of_a_way(const Pipeline& pipeline) {
  return pipeline.micro_batches / (pipeline.schedule == Schedule::dualpipe ? 2 : 1);
}

Seconds time_by_ways(const Pipeline& pipeline) { return Seconds{Ways(pipeline).run()}; }

}  // namespace engine
