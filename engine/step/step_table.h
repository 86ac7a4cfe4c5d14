// Step times in nanoseconds each, from a table over token counts (TokenTable) and one over total context
// (AttentionTable): both are filled from the kernel model where a simulation looks, and the breakdown is counted in the
// same cells.
//
// A decode step of b sequences that attend to C tokens takes, on the device, A_b plus attention that
// is linear in C between knots; the host turns device time D into max(D + added, least). So the time
// of a long stretch of decode steps is a sum in closed form, and what each kernel took follows from
// the number of steps and the sum of C in each cell. Where the longest context outlasts the mean by o
// keys, it adds T_b o; all contexts of a stretch grow alike, so that is a constant of it.
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
#include "engine/step/draft_lengths.h"
#include "engine/step/draft_table.h"
#include "engine/step/known_prompts.h"
#include "engine/step/lockstep.h"
#include "engine/step/step_inputs.h"
#include "engine/step/token_table.h"

namespace engine {

// Decode steps of one batch between two knots: step time as a function of what is attended to. Times
// are plain seconds; contexts are whole numbers held as doubles.
struct DecodeLine {
  double fixed = 0;         // device time at no context, on this line
  double slope = 0;         // a token attended to by layers without a window
  double window_slope = 0;  // a token attended to by layers with one
  double context_end = 0;   // the line holds below these
  double window_end = 0;
  double context_begin = 0;  // and above these
  double window_begin = 0;
  double added = 0;
  double least = 0;
  double listing_slope = 0;  // what the host adds for a token in the caches, whoever sets the pace
  double overhang = 0;       // keys of the longest context beyond the mean: its time is in `fixed`
  // No layer has a window, the host adds nothing for tokens in the caches, and nobody proposes: their slopes are 0.
  bool plain = false;
  std::int32_t batch = 0;  // cells its steps are counted in
  std::int32_t cell = -1;
  std::int32_t window_cell = -1;
  std::int32_t adapter_cell = -1;
  std::int32_t clock_level = -1;  // -1: at the device's own clock
  std::int32_t length = -1;       // of proposals, among several; -1: there is one
  std::int64_t sequences = 0;
  // Proposals, which are waited for before each step: they grow with what is attended to whether or not the step does.
  double proposing = 0;
  double proposing_slope = 0;
  double proposing_window_slope = 0;
  struct Proposal {  // cells of the draft's own table
    std::int32_t batch = 0;
    std::int32_t cell = -1;
    std::int32_t window_cell = -1;
    std::int32_t adapter_cell = -1;
    std::int64_t adapters = 0;
    double overhang = 0;
    double later = 0;  // attended to beyond the main model's context
  };
  Proposal proposal;

  double device(double context, double window) const {
    return fixed + slope * context + window_slope * window;
  }
  double step(double context, double window) const {
    return after_proposals(device(context, window) + added, context, window);
  }
  // The same, where the device's and the host's time of a step are known.
  double after_proposals(double busy, double context, double window) const {
    return (busy > least ? busy : least) + listing_slope * context + proposals(context, window);
  }
  double proposals(double context, double window) const {
    return proposing + proposing_slope * context + proposing_window_slope * window;
  }
};

// Of no decodes at all.
inline constexpr DecodeLine kNoLine;

// What a line is for: `sequences` decodes that attend to `context` tokens in all, to `window` of
// them in layers with a sliding window, and to `longest` in the longest sequence.
struct Decodes {
  std::int64_t sequences = 1;
  double context = 0;
  double window = 0;
  double longest = 0;         // not looked at where `uneven()` is false
  std::int64_t adapters = 0;  // different low-rank adapters among them
  int length = -1;            // that was picked for them; -1: there is nothing to pick
  std::int64_t batches = 1;   // in the pipeline, where a length is picked; with this one
};

inline Decodes decodes_of(const BatchShape& batch) {
  return {.sequences = batch.decode_sequences,
          .context = batch.decode_kv_tokens,
          .window = batch.decode_window_kv_tokens,
          .longest = batch.decode_longest,
          .adapters = batch.adapters};
}

// What decode steps verify: tokens that somebody proposed.
struct Verification {
  std::int64_t queries = 1;  // new tokens of each sequence, proposed ones and the one before them
  double made = 1;           // of these, how many hold, on average
  const DraftStep* draft = nullptr;  // who proposes; null: the time of that is not counted

  bool plain() const { return queries == 1 && draft == nullptr; }
};

// How much longer steps take than their kernels and their host say, by phase.
using StepScale = std::array<double, kServedPhases>;
constexpr StepScale kAsPredicted = {1, 1, 1};

class StepTable {
 public:
  // Nothing is counted. Times stay where what they follow from is the same as before, as it is for
  // points of a sweep that differ in load or policy; reports do not depend on it. The context outlives
  // the use. What a scale other than `kAsPredicted` adds is reported as waiting for a neighbour.
  void reset(const StepContext& context, const StepScale& scale = kAsPredicted,
             const Verification& verification = {}, const ClockChoice& clock = {},
             std::span<const DraftLength> lengths = {});

  // Whether anybody asks what limits the steps that are counted (`saved`); until the next reset, somebody does.
  void count_savings(bool counts) { counts_savings_ = counts; }

  // Where steps propose more or fewer tokens: the length that is best for these decodes, and what it is.
  bool picks() const { return lengths_.any(); }
  int pick(const Decodes& decodes) { return lengths_.pick(decodes); }
  int pick_beside_prompts(const Decodes& decodes, int picked) {
    return lengths_.pick_beside_prompts(decodes, picked);
  }
  const DraftLength& length(int picked) const { return lengths_.at(picked); }
  // Where steps of that length are timed and counted; -1: nothing is picked.
  StepTable& of_length(int length) { return length < 0 ? *this : lengths_.table(length); }
  // What proposals save in a step of these decodes, without prompts in it and with.
  const DraftLengths::Saving& saving(const Decodes& decodes) { return lengths_.saving(decodes); }
  const DraftLengths::Saving& saving_beside_prompts(const Decodes& decodes) {
    return lengths_.saving_beside_prompts(decodes);
  }
  // Prompts that the draft reads when it is first asked to propose: counted. Returns their seconds.
  double read_by_draft(const BatchShape& prompts) { return lengths_.read(prompts); }

  // Says all of `line` anew.
  void decode_line(const Decodes& decodes, DecodeLine& line) {
    if (clock_varies_ || decodes.length >= 0) {
      chosen_line(decodes, line);
    } else {
      own_line(decodes, line);
    }
  }
  // The same, where `last` is what this table said last, or no line: step after step it is the same one. What follows from a cell
  // alone the table keeps until it is reset; anything else is said in `own`.
  const DecodeLine& decode_line_again(const Decodes& decodes, const DecodeLine& last,
                                      DecodeLine& own) {
    if (last.sequences == decodes.sequences && holds(last, decodes)) return last;
    if (keeps_lines_ && decodes.adapters == 0) return kept_line(decodes);
    decode_line(decodes, own);
    return own;
  }
  // Unequal contexts take longer than equal ones.
  bool uneven() const { return attention_.uneven(); }
  // Counts `steps` steps on a line: the sums over them of context, window and time.
  void count_decode(const DecodeLine& line, double steps, double context_sum, double window_sum,
                    double seconds);

  // Time of a step with prompt chunks in it, and counts it. The decodes of the batch, if any, are as
  // in a decode line.
  double run_mixed(const BatchShape& batch, int length = -1) {
    if (length >= 0) return lengths_.table(length).run_mixed(batch);
    return verification_.plain() ? run_step(batch) : run_verification(batch);
  }
  // Of a step of these decodes at the device's own clock, and of proposing in it; replicas that share experts all have as
  // many.
  struct StepSeconds {
    double all = 0, proposing = 0;
  };
  StepSeconds seconds_among_alike(const Decodes& decodes);

  // Seconds that the draft took of what was counted last.
  double drafting() const { return drafting_; }
  // Where replicas that share experts step together (lockstep.cc): the local part of a step with this batch, which is
  // counted but for its time. A step with prompts has its decodes as above.
  MemberStep own_step(const BatchShape& batch, int length = -1);
  // What members that take steps on this line send.
  Senders senders_of(const DecodeLine& line);
  // What they share in a step: members with steps of their own, and senders, of whom it says what the shared part adds.
  struct AtExperts {  // follows from the tokens of all
    TokenTable::Spot experts_at, fuller_at;
    KernelSums experts, fuller;
    double fullest = 0;  // how long the exchange lasts for the device whose experts are sent most
  };
  struct SharedStep : AtExperts {
    std::int64_t tokens = 0;  // of all
    TokenTable::Part exchange = TokenTable::Part::exchange;
    SharedPart part;
  };
  void find_shared(std::span<const MemberStep> steps, std::span<Senders> senders,
                   SharedStep& shared);
  // Counts the shared part: of a step of a member, which lasts `seconds` because somebody takes so long; of steps of
  // senders, whose time is counted when they stop (`count_decode`); what they waited for others in them; and the steps of those
  // that have nothing to do.
  void count_member(const MemberStep& own, const SharedStep& shared, double seconds);
  void count_senders(const Senders& senders, const SharedStep& shared, double steps);
  void count_wait(double seconds, int length) {
    of_length(length).waited_[std::size_t(Phase::decode)] += seconds;
  }
  void count_idle(const SharedStep& shared, double idle, double steps, double seconds);

  // Device time a token of a long prompt takes, attention left out: a scale for estimates.
  double prompt_token_seconds();
  // Prompts that the draft reads, and nothing else: counted. Returns their seconds.
  double read_draft(const BatchShape& prompts) { return draft_.read(prompts); }

  // Rows of everything counted, host and gaps included, by phase. Once, at the end.
  void report(std::vector<KernelRow>& rows);
  // The same, as though no kernel ran beside another: for who adds it up (`add_sums`) and says what is hidden.
  void report_one_by_one(std::vector<KernelRow>& rows);
  double steps(Phase phase) const { return steps_[std::size_t(phase)]; }
  // Of all steps counted; and the mean clock in that time, as a share of the device's.
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
  // Sums of the report of another table become part of this one's.
  void add_sums(const StepTable& other);
  // What everything counted would save if one part were free, the host's included: after the report.
  const Savings& saved() const { return saved_; }
  // Of all decode steps: how many sequences took part in them, and how long they took with their proposals, as far
  // as proposals are counted; after the report.
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
    double beside =
        0;  // of `fixed`, while an exchange may be under way, where replicas step together
    std::int64_t rows = 0;  // tokens its kernels work on, padding included
    double steps = 0;
    double kv_tokens = 0;  // in the caches of its sequences, summed over steps
  };

  // Those of another context follow.
  void forget_times();
  std::int32_t batch_of(std::int64_t sequences) {
    const std::size_t place = std::size_t(sequences);
    if (place >= batch_index_.size() || batch_index_[place] < 0) add_batch(sequences);
    return batch_index_[place];
  }
  void add_batch(std::int64_t sequences);
  // Whether a line of as many sequences is that of these decodes, too.
  bool holds(const DecodeLine& line, const Decodes& decodes) const {
    return lines_recur_ && !attention_.uneven() && decodes.context > line.context_begin &&
           decodes.context < line.context_end && decodes.window > line.window_begin &&
           decodes.window < line.window_end && decodes.adapters == 0 && line.adapter_cell < 0;
  }
  // The line of the clock or the number of proposals that is chosen.
  void chosen_line(const Decodes& decodes, DecodeLine& line);
  void own_line(const Decodes& decodes, DecodeLine& line);
  const DecodeLine& kept_line(const Decodes& decodes) {
    const std::int32_t cell = attention_.cell_at(batch_of(decodes.sequences), decodes.context, {});
    const bool known =
        std::size_t(cell) < line_of_cell_.size() && line_of_cell_[std::size_t(cell)] != nullptr;
    return known ? *line_of_cell_[std::size_t(cell)] : add_line(std::size_t(cell), decodes);
  }
  const DecodeLine& add_line(std::size_t cell, const Decodes& decodes);
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
  // The batch with all tokens that are verified. Those proposed for it take so long.
  BatchShape wider(const BatchShape& batch) const;
  double propose(const BatchShape& batch);
  // Of a step with prompts, and of decodes alone.
  MemberStep own_mixed(const BatchShape& batch);
  MemberStep own_decodes(const BatchShape& batch);
  // Of steps without prompts all numbers of tokens are kept: they are few, and come again and again.
  AtExperts at_experts(std::int64_t tokens, bool reads);
  const AtExperts& decodes_at_experts(std::int64_t tokens);
  // The shared part of a step that another table with the same kernels has found.
  SharedStep found_here(SharedStep shared);
  // The exchange of a member that sends so many tokens, as predicted: devices send and receive at the same time. Where it
  // is done with sending it waits for the device that is sent most, as far as that is sent more than the mean.
  double exchange_time(const SharedStep& shared, std::int64_t rows) {
    const double sending = tokens_.at(shared.exchange, rows).time;
    return sending + std::clamp(shared.fullest - sending, 0.0, shared.fuller.time);
  }
  // Of so many steps of a phase in which a member sends so many tokens: the shared part, whose kernels take `time` of it as
  // the others run beside them.
  struct Sent {
    std::int64_t rows = 0;
    double exchange = 0;  // how long that lasts
    Phase phase = Phase::decode;
    double steps = 1;
    double time = 0;
  };
  KernelSums count_sent(const SharedStep& shared, const Sent& sent);
  // Some kernels of a step with prompts.
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
  // Likewise, and no layer has a window: each cell of attention_ has one line; null: not yet. Lines stay where they are, and
  // their memory stays from run to run.
  bool keeps_lines_ = false;
  std::vector<const DecodeLine*> line_of_cell_;
  std::deque<DecodeLine> lines_;
  std::size_t lines_in_use_ = 0;
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
  Savings saved_;
};

}  // namespace engine
