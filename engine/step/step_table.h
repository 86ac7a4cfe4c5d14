// What a step takes, found in nanoseconds: a table over token counts (TokenTable) and one over total context (AttentionTable). Both are
// filled from the kernel model where a simulation looks, and the breakdown by kernel is counted in the same cells.
//
// On the device a decode step of b sequences that attend to C tokens in all takes A_b plus attention, which is linear in C between knots.
// The host turns device time D into max(D + added, least). So the time of a long stretch of decode steps is a sum in closed form, and
// what each kernel took follows from the number of steps and the sum of C in each cell. Where the longest context exceeds the mean by o
// keys, a step takes T_b o longer; all contexts of a stretch grow alike, so o is a constant of it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "engine/step/adapter_table.h"
#include "engine/step/attention_table.h"
#include "engine/step/breakdown.h"
#include "engine/step/clock_levels.h"
#include "engine/step/decode_line.h"
#include "engine/step/draft_lengths.h"
#include "engine/step/draft_table.h"
#include "engine/step/known_prompts.h"
#include "engine/step/lockstep.h"
#include "engine/step/step_inputs.h"
#include "engine/step/token_table.h"

namespace engine {

// What decode steps verify.
struct Verification {
  std::int64_t queries = 1;  // new tokens of each sequence: proposed ones and the one before them
  double made = 1;           // how many of these are kept, on average
  const DraftStep* draft = nullptr;  // proposes the tokens; null: the time of that is not counted

  bool plain() const { return queries == 1 && draft == nullptr; }
};

// How many times longer steps take than their kernels and their host say, by phase.
using StepScale = std::array<double, kServedPhases>;
constexpr StepScale kAsPredicted = {1, 1, 1};

class StepTable {
 public:
  // Sets all counts to zero. Times are kept where all that they follow from is the same as before, as it is for points of a sweep that
  // differ in load or policy; reports do not depend on that. The context outlives the use. Time that a scale other than
  // `kAsPredicted` adds is reported as waiting for a neighbour.
  void reset(const StepContext& context, const StepScale& scale = kAsPredicted,
             const Verification& verification = {}, const ClockChoice& clock = {},
             std::span<const DraftLength> lengths = {});

  // Whether `saved` will be asked for. It counts as asked for until this is called, and again after a reset.
  void count_savings(bool counts) { counts_savings_ = counts; }

  // Where the number of proposed tokens is picked by load: the length that is best for these decodes, and what it is.
  bool picks() const { return lengths_.any(); }
  int pick(const Decodes& decodes) { return lengths_.pick(decodes); }
  int pick_beside_prompts(const Decodes& decodes, int picked) {
    return lengths_.pick_beside_prompts(decodes, picked);
  }
  const DraftLength& length(int picked) const { return lengths_.at(picked); }
  // The table in which steps of that length are timed and counted; -1: there is only one length.
  StepTable& of_length(int length) { return length < 0 ? *this : lengths_.table(length); }
  // What proposals save in a step of these decodes, without prompts in it and with some.
  const DraftLengths::Saving& saving(const Decodes& decodes) { return lengths_.saving(decodes); }
  const DraftLengths::Saving& saving_beside_prompts(const Decodes& decodes) {
    return lengths_.saving_beside_prompts(decodes);
  }
  // Counts prompts that the draft reads when it is first asked to propose, and returns the seconds that it takes.
  double read_by_draft(const BatchShape& prompts) { return lengths_.read(prompts); }

  // Fills in all of `line`.
  void decode_line(const Decodes& decodes, DecodeLine& line) {
    if (clock_varies_ || decodes.length >= 0) {
      chosen_line(decodes, line);
    } else {
      own_line(decodes, line);
    }
  }
  // The same where `last` is the line that this table gave last, or `kNoLine`; step after step it is often the same one. Lines that
  // follow from a cell alone are kept by the table until it is reset; others are filled into `own`.
  const DecodeLine& decode_line_again(const Decodes& decodes, const DecodeLine& last,
                                      DecodeLine& own) {
    if (last.sequences == decodes.sequences && holds(last, decodes)) return last;
    if (keeps_lines_ && decodes.adapters == 0) return kept_line(decodes);
    decode_line(decodes, own);
    return own;
  }
  // Whether unequal contexts take longer than equal ones.
  bool uneven() const { return attention_.uneven(); }
  // Counts `steps` steps on a line, given the sums over them of context, window and time.
  void count_decode(const DecodeLine& line, double steps, double context_sum, double window_sum,
                    double seconds) {
    if (line.kept < 0) return count_other(line, steps, context_sum, window_sum, seconds);
    KeptCount& count = kept_counts_[std::size_t(line.kept)];
    count.steps += steps;
    count.context_sum += context_sum;
    seconds_[std::size_t(Phase::decode)] += seconds;
  }

  // Counts a step with prompt chunks in it, and returns its time. Decodes of the batch, if any, are as in a decode line.
  double run_mixed(const BatchShape& batch, int length = -1) {
    if (length >= 0) return lengths_.table(length).run_mixed(batch);
    return verification_.plain() ? run_step(batch) : run_verification(batch);
  }
  // Seconds of a step of these decodes at the device's own clock, and of proposing in it. Where replicas share experts, all of them have
  // as many decodes.
  struct StepSeconds {
    double all = 0, proposing = 0;
  };
  StepSeconds seconds_among_alike(const Decodes& decodes);

  // Seconds that the draft took of what was counted last.
  double drafting() const { return drafting_; }
  // For replicas that share experts and step together (lockstep.cc): a member's own part of a step with this batch, which is counted but
  // for its time.
  MemberStep own_step(const BatchShape& batch, int length = -1);
  // What members send to the experts that take steps on this line.
  Senders senders_of(const DecodeLine& line);
  // What all members share in a step. Of senders it says what the shared part adds to their own.
  struct AtExperts {  // follows from the tokens of all members
    TokenTable::Spot experts_at, fuller_at;
    KernelSums experts, fuller;
    double fullest = 0;  // how long the exchange takes for the device whose experts are sent most
  };
  struct SharedStep : AtExperts {
    std::int64_t tokens = 0;  // of all members
    TokenTable::Part exchange = TokenTable::Part::exchange;
    SharedPart part;
  };
  void find_shared(std::span<MemberStep> steps, std::span<Senders> senders, SharedStep& shared);
  // Count the shared part: of members' steps, which last `seconds` because the slowest member takes so long; of steps of senders,
  // whose time is counted when they stop (`count_decode`); the time that they waited for others; and steps of `idle` members that have
  // nothing to do.
  void count_members(std::span<const MemberStep> members, const SharedStep& shared, double seconds);
  void count_senders(std::span<const Senders> senders, const SharedStep& shared, double steps);
  void count_wait(double seconds, int length) {
    of_length(length).waited_[std::size_t(Phase::decode)] += seconds;
  }
  void count_idle(const SharedStep& shared, double idle, double steps, double seconds);

  // Device time per token of a long prompt, attention left out: a scale for estimates.
  double prompt_token_seconds();
  // Counts prompts that only the draft reads, and returns the seconds that it takes.
  double read_draft(const BatchShape& prompts) { return draft_.read(prompts); }

  // Rows of everything counted, host and gaps included, by phase. Called once, at the end.
  void report(std::vector<KernelRow>& rows);
  // The same as if no kernel ran beside another. The table that adds this up (`add_sums`) then says what is hidden.
  void report_one_by_one(std::vector<KernelRow>& rows);
  double steps(Phase phase) const { return steps_[std::size_t(phase)]; }
  // Seconds of all steps counted; and the mean clock in that time, as a share of the device's own.
  double seconds() const { return seconds_[0] + seconds_[1] + seconds_[2]; }
  // The same with those of a draft on the same devices.
  double clocked_seconds() const {
    const bool drafts =
        verification_.draft != nullptr && verification_.draft->place != DraftPlace::elsewhere;
    return seconds() + (drafts ? draft_.seconds() + draft_.reading() : 0);
  }
  ClockLevels::Sums clock_sums() const;
  double clock_mean() const {
    const ClockLevels::Sums sums = clock_sums();
    return sums.seconds > 0 ? sums.clock_seconds / sums.seconds : 1;
  }
  // Adds the sums of another table's report to this one's.
  void add_sums(const StepTable& other);
  // What all that was counted would save if one part were free, the host's included. Valid after the report.
  const Savings& saved() const { return saved_; }
  // Sums over all decode steps: sequences that took part, seconds with proposals, and seconds of proposals. Valid after the report.
  struct DecodeSums {
    double sequence_steps = 0;
    double seconds = 0;
    double proposing = 0;
  };
  const DecodeSums& decode_sums() const { return decode_sums_; }

 private:
  struct DecodeBatch {
    KernelSums fixed;  // kernels other than attention
    double added = 0, least = 0, gap = 0;
    double beside = 0;      // lockstep: seconds of `fixed` in which an exchange may be under way
    std::int64_t rows = 0;  // tokens its kernels work on, padding included
    double steps = 0;
    double kv_tokens = 0;  // in the caches of its sequences, summed over steps
  };

  // Forgets all times, because those of another context follow.
  void forget_times();
  std::int32_t batch_of(std::int64_t sequences) {
    const std::size_t place = std::size_t(sequences);
    if (place >= batch_index_.size() || batch_index_[place] < 0) add_batch(sequences);
    return batch_index_[place];
  }
  void add_batch(std::int64_t sequences);
  // Whether a line of equally many sequences also holds for these decodes.
  bool holds(const DecodeLine& line, const Decodes& decodes) const {
    return lines_recur_ && !attention_.uneven() && decodes.context > line.context_begin &&
           decodes.context < line.context_end && decodes.window > line.window_begin &&
           decodes.window < line.window_end && decodes.adapters == 0 && line.adapter_cell < 0;
  }
  // The line at the clock, or with the number of proposals, that is chosen for these decodes.
  void chosen_line(const Decodes& decodes, DecodeLine& line);
  void own_line(const Decodes& decodes, DecodeLine& line);
  const DecodeLine& kept_line(const Decodes& decodes) {
    const std::int32_t cell = attention_.cell_at(batch_of(decodes.sequences), decodes.context, {});
    const bool known =
        std::size_t(cell) < line_of_cell_.size() && line_of_cell_[std::size_t(cell)] != nullptr;
    return known ? *line_of_cell_[std::size_t(cell)] : add_line(std::size_t(cell), decodes);
  }
  const DecodeLine& add_line(std::size_t cell, const Decodes& decodes);
  // Adds what was counted on lines that are kept to what cells and batches have counted. These are whole numbers, so it does not
  // matter when they are added.
  void gather_kept_counts();
  void count_other(const DecodeLine& line, double steps, double context_sum, double window_sum,
                   double seconds);
  void count_chosen(DecodeLine line, double steps, double context_sum, double window_sum,
                    double seconds);
  // A step with prompts whose kernels are counted.
  struct PricedStep {
    KernelSums kernels;
    HostLine host;
    Phase phase = Phase::prefill;
  };
  PricedStep price_step(const BatchShape& batch);
  double run_step(const BatchShape& batch);
  double run_verification(const BatchShape& batch) {
    return propose(batch) + run_step(wider(batch));
  }
  // The batch with all tokens that are verified.
  BatchShape wider(const BatchShape& batch) const;
  // Seconds in which tokens are proposed for the batch.
  double propose(const BatchShape& batch);
  // A member's own part of a step with prompts, and of one of decodes alone.
  MemberStep own_mixed(const BatchShape& batch, double before);
  MemberStep own_decodes(const BatchShape& batch);
  // What was found for a number of tokens is kept: of steps without prompts always, since few numbers come again and again, and of
  // steps with prompts until others take its place.
  AtExperts at_experts(std::int64_t tokens, bool reads);
  const AtExperts& decodes_at_experts(std::int64_t tokens);
  const AtExperts& reads_at_experts(std::int64_t tokens);
  // The shared part of a step, found by another table with the same kernels, in terms of this table.
  SharedStep found_here(SharedStep shared);
  // Calls `count` with the table of proposals of this length (-1: this table) and the shared part in terms of it.
  template <class Count>
  void at_length(int length, const SharedStep& shared, Count count);
  // How long the exchange takes for a member that sends so many tokens. Devices send and receive at the same time. A member that is done
  // with sending waits for the device that is sent most, as far as that one is sent more than the mean.
  double exchange_time(const SharedStep& shared, std::int64_t rows) {
    const double sending = tokens_.at(shared.exchange, rows).time;
    return sending + std::clamp(shared.fullest - sending, 0.0, shared.fuller.time);
  }
  // Counts the shared part of `steps` steps in which a member sends `rows` tokens. Its kernels take `time`, since others run beside them.
  struct Sent {
    std::int64_t rows = 0;
    double exchange = 0;  // seconds of the exchange
    Phase phase = Phase::decode;
    double steps = 1;
    double time = 0;
  };
  KernelSums count_sent(const SharedStep& shared, const Sent& sent);
  void count_member(const MemberStep& own, const SharedStep& shared, double seconds);
  void count_alike(const Senders& senders, const SharedStep& shared, double steps);
  // Adds some kernels of a step with prompts to others.
  void add(KernelSums& to, const KernelSums& kernels, double times = 1) const {
    counts_savings_ ? to.add(kernels, times) : to.add_time(kernels, times);
  }
  // Attention of a step, which they count: of all of it, of its decodes and of its prompts.
  void run_attention(const BatchShape& batch, Phase phase, KernelSums& kernels) {
    if (batch.decode_sequences > 0) {
      if (decode_products_) {
        add(kernels, tokens_.use(TokenTable::Part::absorb, batch.decode_tokens(), phase));
      }
      if (context_->shard.overlapped_attention) return run_overlapped(batch, phase, kernels);
      run_decodes(batch, phase, kernels);
    }
    run_prompts(batch, phase, kernels);
  }
  void run_overlapped(const BatchShape& batch, Phase phase, KernelSums& kernels);
  void run_decodes(const BatchShape& batch, Phase phase, KernelSums& kernels);
  // Returns the seconds of attention among them, where that of decodes runs beside it.
  double run_prompts(const BatchShape& batch, Phase phase, KernelSums& kernels);
  // Parts of the report.
  void count_decode_tokens();
  void save_decodes();
  void hide_overlapped(std::vector<KernelRow>& rows) const;
  void hide_exchange(std::vector<KernelRow>& rows) const;
  void add_lockstep_row(Phase phase);
  HostTime host_rest(Phase phase, double device) const;

  const StepContext* context_ = nullptr;
  std::optional<StepInputs> inputs_;  // what the times below follow from
  TokenTable tokens_;
  AttentionTable attention_;
  AdapterTable adapters_;
  bool decode_products_ = false, exchanges_ = false;
  bool counts_savings_ = true;
  // Replicas step together, perhaps in two halves; and the launches of what they share.
  bool lockstep_ = false, halves_ = false;
  double shared_launches_ = 0;
  std::vector<std::int32_t> batch_index_;  // by sequences; -1: not yet
  std::vector<DecodeBatch> batches_;       // numbered as in attention_
  KnownPrompts known_prompts_;
  Breakdown prompt_rows_;  // of prompt attention that is in no other table
  std::vector<KernelRow> scratch_rows_;
  StepScale scale_ = kAsPredicted;
  Verification verification_;
  DraftTable draft_;
  double drafting_ = 0;
  ClockLevels clocks_;
  bool clock_varies_ = false;
  bool lines_recur_ = false;  // they follow from the batch and its context, and nothing else
  // The same, and no layer has a window, so that each cell of attention_ has one line; null: it is not known yet. Lines keep their
  // address, and their memory from run to run.
  bool keeps_lines_ = false;
  std::vector<const DecodeLine*> line_of_cell_;
  std::deque<DecodeLine> lines_;
  struct KeptCount {
    double steps = 0, context_sum = 0;
  };
  std::vector<KeptCount> kept_counts_;  // of each of `lines_` that is in use
  DraftLengths lengths_;
  double mixed_decodes_ = 0;  // sequences that decoded in steps with prompts
  double overlapped_ = 0;     // seconds of attention in these that other attention hid
  DecodeSums decode_sums_;
  ByPhase seconds_{}, steps_{}, gaps_{}, launches_{};
  // Where replicas step together: waited for others, exchanged beside other kernels; seconds of those that had nothing to
  // do; and what decodes shared.
  ByPhase waited_{}, hidden_{};
  double idle_seconds_ = 0, idle_steps_ = 0;
  KernelSums decodes_shared_;
  std::vector<std::int32_t> at_experts_index_;  // by tokens; -1: not yet
  std::vector<AtExperts> at_experts_;
  struct KnownReads {
    std::int64_t tokens = -1;  // -1: none
    AtExperts found;
  };
  std::vector<KnownReads> known_reads_;  // by tokens, which share places
  Savings saved_;
};

}  // namespace engine
