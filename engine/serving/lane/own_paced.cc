#include "engine/serving/lane/own_paced.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/base/many_draws.h"

namespace engine {
namespace {

// ---- loops over columns, which compilers turn into a few instructions for four at a time ---------------

struct Counts {
  std::span<const std::int64_t> bases, unmade;
  std::int64_t lane_tokens = 0;
  std::span<std::uint64_t> made;
};
[[gnu::always_inline]] inline void count_made(const Counts& of) {
  const std::int64_t *const bases = of.bases.data(), *const unmade = of.unmade.data();
  std::uint64_t* const made = of.made.data();
  const std::size_t count = of.made.size();
  const std::int64_t tokens = of.lane_tokens;
  for (std::size_t i = 0; i < count; ++i) made[i] = std::uint64_t(bases[i] - unmade[i] + tokens);
}

struct Chances {
  std::span<const double> chances;  // that the first, the second, ... position holds
  std::span<const double> luck;
  std::span<std::int64_t> behind;
};
[[gnu::always_inline]] inline void judge_luck(const Chances& of) {
  const std::size_t count = of.behind.size();
  const double* const luck = of.luck.data();
  std::int64_t* const behind = of.behind.data();
  std::fill_n(behind, count, std::int64_t(of.chances.size()));
  for (const double chance : of.chances) {
    for (std::size_t i = 0; i < count; ++i) behind[i] -= luck[i] < chance ? 1 : 0;
  }
}

struct Rooms {
  std::span<const std::int64_t> bases, behind, least;
  std::int64_t ahead = 0;
  int shift = 0;  // of the block size
};
[[gnu::always_inline]] inline std::int64_t saved_blocks(const Rooms& of) {
  const std::int64_t *const bases = of.bases.data(), *const behind = of.behind.data();
  const std::int64_t* const least = of.least.data();
  const std::size_t count = of.behind.size();
  const std::int64_t up = of.ahead + (std::int64_t{1} << of.shift) - 1;
  const int shift = of.shift;
  std::int64_t saved = 0;
  for (std::size_t i = 0; i < count; ++i) {
    // No context is negative.
    const auto with = std::int64_t(std::uint64_t(bases[i] + up) >> shift);
    const auto without = std::int64_t(std::uint64_t(bases[i] + up - behind[i]) >> shift);
    saved += (with > least[i] ? with : least[i]) - (without > least[i] ? without : least[i]);
  }
  return saved;
}

#if defined(__SSE2__)

[[gnu::target("avx2")]] void count_made_by_fours(const Counts& of) { count_made(of); }
[[gnu::target("avx2")]] void judge_luck_by_fours(const Chances& of) { judge_luck(of); }
[[gnu::target("avx2")]] std::int64_t saved_blocks_by_fours(const Rooms& of) {
  return saved_blocks(of);
}
bool takes_fours() { return __builtin_cpu_supports("avx2"); }

#else

void count_made_by_fours(const Counts& of) { count_made(of); }
void judge_luck_by_fours(const Chances& of) { judge_luck(of); }
std::int64_t saved_blocks_by_fours(const Rooms& of) { return saved_blocks(of); }
bool takes_fours() { return false; }

#endif

}  // namespace

void OwnPaced::keep(std::size_t count) {
  slots_.resize(count);
  seeds_.resize(count);
  bases_.resize(count);
  unmade_.resize(count);
  least_.resize(count);
}

std::size_t OwnPaced::place_after(std::int32_t slot) const {
  if (slot < 0) return 0;
  if (slots_.back() == slot) return slots_.size();
  return std::size_t(std::ranges::find(slots_, slot) - slots_.begin()) + 1;
}

void OwnPaced::insert(std::int32_t slot, std::int32_t before, const Sequence& sequence,
                      std::uint64_t seed) {
  const auto at = std::ptrdiff_t(place_after(before));
  // Blocks that are set aside for good are more than any context takes.
  const std::int64_t least = sequence.reserved > 0 ? std::numeric_limits<std::int64_t>::max()
                                                   : std::max(sequence.kv.shared, sequence.taken);
  slots_.insert(slots_.begin() + at, slot);
  seeds_.insert(seeds_.begin() + at, seed);
  bases_.insert(bases_.begin() + at, sequence.context_base);
  unmade_.insert(unmade_.begin() + at, sequence.prompt - 1);
  least_.insert(least_.begin() + at, least);
}

void OwnPaced::erase(std::int32_t slot) {
  const auto at = std::ptrdiff_t(place_after(slot)) - 1;
  slots_.erase(slots_.begin() + at);
  seeds_.erase(seeds_.begin() + at);
  bases_.erase(bases_.begin() + at);
  unmade_.erase(unmade_.begin() + at);
  least_.erase(least_.begin() + at);
}

// A few more than there are: none is drawn by itself.
void OwnPaced::draw(std::size_t decodes) {
  const std::size_t count = seeds_.size();
  const std::size_t drawn = (decodes + kDrawnTogether - 1) / kDrawnTogether * kDrawnTogether;
  seeds_.resize(std::max(drawn, count));
  made_.resize(drawn);
  luck_.resize(drawn);
  engine::draw(Stream::acceptance, {seeds_.data(), drawn}, made_, luck_);
  seeds_.resize(count);
}

std::span<const std::int64_t> OwnPaced::behind(const Step& step, const SequencePaces& paces,
                                               const Sequences& sequences) {
  const std::int64_t positions = step.tokens - 1;
  behind_.resize(step.decodes);
  made_.resize(step.decodes);
  const Counts counts{
      .bases = bases_, .unmade = unmade_, .lane_tokens = step.lane_tokens, .made = made_};
  takes_fours() ? count_made_by_fours(counts) : count_made(counts);
  if (paces.drawn) draw(step.decodes);
  if (paces.drawn && !paces.by_class) {
    const Chances chances{
        .chances = {paces.of(RequestClass::normal).chances.data(), std::size_t(positions)},
        .luck = luck_,
        .behind = behind_};
    takes_fours() ? judge_luck_by_fours(chances) : judge_luck(chances);
    return behind_;
  }
  for (std::size_t i = 0; i < step.decodes; ++i) {
    const auto& own = paces.of(sequences[std::size_t(slots_[i])].service_class);
    behind_[i] = step.tokens - (paces.drawn ? own.drawn_tokens(positions, luck_[i])
                                            : own.mean_tokens(positions, std::int64_t(made_[i])));
  }
  return behind_;
}

std::int64_t OwnPaced::fewer_blocks(std::int64_t ahead, std::int64_t block_size) const {
  if (std::has_single_bit(std::uint64_t(block_size))) {
    const Rooms rooms{.bases = bases_,
                      .behind = behind_,
                      .least = least_,
                      .ahead = ahead,
                      .shift = std::countr_zero(std::uint64_t(block_size))};
    return takes_fours() ? saved_blocks_by_fours(rooms) : saved_blocks(rooms);
  }
  const auto held = [&](std::size_t i, std::int64_t context) {
    return std::max((context + ahead + block_size - 1) / block_size, least_[i]);
  };
  std::int64_t fewer = 0;
  for (std::size_t i = 0; i < behind_.size(); ++i) {
    fewer += held(i, bases_[i]) - held(i, bases_[i] - behind_[i]);
  }
  return fewer;
}

}  // namespace engine
