// Times of the kernels that follow from one count of tokens: timed at grid points, on a line between two of them, and
// counted where steps use them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/step/breakdown.h"
#include "engine/step/kernel_sums.h"

namespace engine {

class TokenTable {
 public:
  // All kernels but those that follow; logits and sampling; products around latent attention; the exchange of tokens
  // with their experts, in steps with prompts and in others; attention of one prompt read from its start on. Where replicas
  // step together, apart from the first: shared experts, by the tokens of all; what runs beside an exchange; and, by the tokens
  // of all, how long an exchange lasts for the device whose experts are sent most, and how much of that is because it is, in
  // steps with prompts and in others. The last is in the prompt's part already: attention without scans and exchanges.
  enum class Part : std::uint8_t {
    body,
    head,
    absorb,
    exchange,
    decode_exchange,
    prompt,
    experts,
    beside,
    fullest,
    decode_fullest,
    fuller,
    decode_fuller,
    prompt_attention,
  };

  // Nothing is counted. The context outlives the use; times stay, as it is no other than before.
  void reset(const StepContext& context);
  // As above, and no times are known: they follow from another context.
  void forget(const StepContext& context);

  // The kernels of one step that has `tokens` of what the part grows with.
  const KernelSums& at(Part part, std::int64_t tokens) { return count_at(part, tokens).sums; }
  // The same, counted as `steps` steps.
  const KernelSums& use(Part part, std::int64_t tokens, Phase phase, double steps = 1) {
    Count& count = count_at(part, tokens);
    count.steps[std::size_t(phase)] += steps;
    return count.sums;
  }

  // The same of a part that has too many counts to keep each: the grid points that one lies between.
  struct Spot {
    std::int32_t low = 0, high = 0;
    double share = 0;  // of high
  };
  Spot spot(Part part, std::int64_t tokens);
  KernelSums at(const Spot& spot) const;
  double time_at(const Spot& spot) const {
    const double below = nodes_[std::size_t(spot.low)].sums.time;
    return below + spot.share * (nodes_[std::size_t(spot.high)].sums.time - below);
  }
  void use(const Spot& spot, Phase phase, double steps) {
    nodes_[std::size_t(spot.low)].steps[std::size_t(phase)] += steps * (1 - spot.share);
    nodes_[std::size_t(spot.high)].steps[std::size_t(phase)] += steps * spot.share;
  }

  // Adds the rows of everything counted in a phase; `weigh` comes first, once all is counted.
  void weigh();
  void report(Phase phase, Breakdown& rows) const;
  std::size_t rows() const { return rows_.size(); }

 private:
  static constexpr std::size_t kParts = 13;

  struct Node {
    KernelSums sums;
    std::uint32_t first_row = 0, last_row = 0;  // in rows_
    ByPhase steps{};                            // counted here, and not by tokens
    ByPhase weight{};                           // while reporting: steps it stands for
  };
  struct Count {
    KernelSums sums;
    Spot spot;
    ByPhase steps{};
  };
  struct Counts {
    std::vector<std::int32_t> node;   // by grid point; -1: not yet
    std::vector<std::int32_t> index;  // of met, by count; -1: not yet
    std::vector<Count> met;
  };

  Count& count_at(Part part, std::int64_t tokens) {
    Counts& counts = counts_[std::size_t(part)];
    const std::size_t place = std::size_t(tokens);
    if (place >= counts.index.size() || counts.index[place] < 0) add_count(part, tokens);
    return counts.met[std::size_t(counts.index[place])];
  }
  void add_count(Part part, std::int64_t tokens);
  // The node of a count that is kept there.
  std::int32_t node_at(Part part, std::int64_t place, std::int64_t point) {
    const std::vector<std::int32_t>& known = counts_[std::size_t(part)].node;
    const bool is_known = place < std::int64_t(known.size()) && known[std::size_t(place)] >= 0;
    return is_known ? known[std::size_t(place)] : add_node(part, place, point);
  }
  std::int32_t add_node(Part part, std::int64_t place, std::int64_t point);
  // The ops of a part in a step that has `point` of what it grows with.
  void part_ops(Part part, std::int64_t point, OpList& ops) const;

  const StepContext* context_ = nullptr;
  std::array<Counts, kParts> counts_;
  std::vector<Node> nodes_;
  std::vector<std::int32_t> order_;  // of nodes in a report
  std::vector<KernelRow> rows_;
};

}  // namespace engine
