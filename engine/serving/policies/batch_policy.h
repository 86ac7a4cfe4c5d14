// What a batching policy sees and what it decides. A policy is a pure function from a view to a plan;
// the lane carries the plan out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/small_list.h"
#include "engine/memory/kv_pool.h"
#include "engine/serving/sequences/sequence.h"
#include "engine/serving/settings/serving_settings.h"
#include "engine/step/pace.h"

namespace engine {

// What a policy wants to know of earlier steps. It has no state itself: it sees this, and its plan says what to remember.
struct PolicyMemory {
  // Share of the outputs still to come for which admission leaves room, as it was after `since` decode steps; negative: as the
  // settings say.
  double ratio = -1;
  std::int64_t since = 0;
  // A request did not fit when so many sequences had left (`RunningSet::departures`); -1: none was tried in vain.
  std::int64_t full_after = -1;
};

// The running sequences of one lane. A replica has one lane, or one per stage where it is a pipeline.
struct RunningSet {
  std::int32_t first = -1,
               last = -1;  // ends of a list through `Sequence`, in the order of admission
  std::int64_t count = 0;
  std::int64_t decoding = 0;
  std::int64_t growing = 0;               // decoding sequences that take blocks as they grow
  SmallList<std::int32_t, 4> prefilling;  // slots, in the order of admission
  std::int64_t step = 0;                  // decode steps so far
  std::int64_t tokens = 0;                // tokens that a sequence makes in so many steps
  std::int64_t finish_sum = 0;            // sum of `Sequence::finish_token` of those that decode
  std::int64_t base_sum = 0;              // sum of `Sequence::context_base` of those that decode
  std::int64_t next_tokens = 1;           // tokens that each makes in the next decode step
  std::int64_t next_blocks = 0;           // blocks that all of them take in the next decode step
  std::int64_t departures = 0;            // sequences that have left so far, done or preempted
  PolicyMemory remembered;
};

// What a policy sees that is the same in all replicas of a pool while a run lasts.
struct PolicyConstants {
  const ServingSettings* settings = nullptr;
  Pace pace;  // the one of the pool's paces that makes the most tokens and needs the most room
  std::int64_t longest = 1;  // tokens of the longest sequence that the model is made for
  std::int64_t margin = 0;   // blocks that admission leaves free while other sequences run
  // Of one replica: one per pipeline stage, each with a batch in flight. They share the blocks.
  std::int64_t lanes = 1;
};

struct ReplicaView {
  const PolicyConstants& common;
  const Sequences& sequences;
  const WaitingQueue& waiting;
  const KvPool& pool;
  const RunningSet& running;
  std::int64_t seats = 0;       // most sequences this lane may run
  std::int32_t queries = 1;     // tokens of a sequence that the next step works on
  bool others_running = false;  // other lanes hold some of the blocks

  const ServingSettings& settings() const { return *common.settings; }
  const Sequence& at(std::int32_t slot) const { return sequences[std::size_t(slot)]; }
  bool idle() const { return running.count == 0 && !others_running; }
  std::int64_t context(const Sequence& sequence) const {
    return sequence.decoding ? sequence.context_base + running.tokens : sequence.computed;
  }
  // Room in tokens that the next step needs beyond a sequence's last token, and with tokens that it makes past its end.
  std::int64_t ahead() const { return std::max<std::int64_t>(queries - 1, common.pace.room); }
  std::int64_t past_end() const { return ahead() + common.pace.most() - 1; }
  // Blocks for so many tokens and that room.
  std::int64_t blocks_for(std::int64_t tokens) const { return pool.blocks_for(tokens + ahead()); }
  // Blocks that a running sequence holds now, and once `tokens` more of it are computed. Blocks that it shares may reach beyond what
  // counts as computed, since the last token of a prompt is always read.
  std::int64_t blocks_held(const Sequence& sequence) const { return blocks_after(sequence, 0); }
  std::int64_t blocks_after(const Sequence& sequence, std::int64_t tokens) const {
    if (sequence.reserved > 0) return sequence.reserved;
    return std::max({blocks_for(context(sequence) + tokens), sequence.kv.shared, sequence.taken});
  }
  // Tokens that `decodes` sequences put into a step, and blocks that one sequence takes in it.
  std::int64_t step_tokens(std::int64_t decodes) const { return decodes * queries; }
  std::int64_t blocks_to_decode(const Sequence& sequence) const {
    return blocks_to_add(sequence, running.next_tokens);
  }
  // Blocks it takes to compute `tokens` more of it.
  std::int64_t blocks_to_add(const Sequence& sequence, std::int64_t tokens) const {
    return blocks_after(sequence, tokens) - blocks_held(sequence);
  }
  KvPool::Match match(const Sequence& sequence) const {
    return pool.match(sequence.prefix, sequence.target - 1);
  }
  // Blocks that it takes to admit a request that found `hit` in the cache and reads up to `tokens`. Cache that no request holds
  // counts as free until then.
  std::int64_t blocks_to_admit(const KvPool::Match& hit, std::int64_t tokens) const {
    return std::max(blocks_for(tokens), hit.blocks) - hit.blocks + hit.idle;
  }
  // Output tokens the decoding sequences still have to make.
  std::int64_t outputs_to_come() const {
    return running.finish_sum - running.decoding * running.tokens;
  }
  // KV tokens of the decoding sequences.
  std::int64_t decode_tokens() const {
    return running.base_sum + running.decoding * running.tokens;
  }
  // Blocks admission must leave free.
  std::int64_t margin() const { return idle() ? 0 : common.margin; }
};

// Tokens of a prompt to be read in this step.
struct Chunk {
  std::int32_t slot = -1;
  std::int64_t tokens = 0;
};
struct Admission {
  std::int32_t slot = -1;
  std::int64_t tokens = 0;  // of its prompt that are read in this step, cached ones left out
  std::int64_t reserved_tokens = 0;  // room set aside for all of it; 0: it takes blocks as it grows
  bool whole_prompt = false;         // blocks for the whole prompt are taken now
  KvPool::Match hit = {};            // what the cache has of it
};

// Until when the policy would make the same plan again, step after step, as long as blocks suffice. A plan that holds until an
// arrival, while no request waits, is also made again after completions.
enum class Steady : std::uint8_t { no, until_arrival, until_completion };

struct StepPlan {
  std::int64_t decodes = 0;             // the first so many decoding sequences take part
  std::vector<Chunk> chunks;            // prompts of running sequences that are read on
  std::vector<Admission> admissions;    // requests from the queue, in this order
  std::vector<std::int32_t> preempted;  // in the order in which they leave; they take no part
  bool retracted_last = false;          // preempted ones go to the end of the queue
  bool remembers = false;               // later steps see `memory`
  PolicyMemory memory;
  Steady steady = Steady::no;

  void clear() {
    decodes = 0;
    chunks.clear();
    admissions.clear();
    preempted.clear();
    retracted_last = remembers = false;
    steady = Steady::no;
  }
  void remember(const PolicyMemory& what) {
    memory = what;
    remembers = true;
  }
  bool empty() const {
    return decodes == 0 && chunks.empty() && admissions.empty() && preempted.empty();
  }
};

// ---- what several policies share (batch_policy.cc) ----------------------------------------------

// One token for every decoding sequence and up to `most_chunk` for every one that reads its prompt,
// in the order of admission, within `budget` tokens. Where blocks run out the newest sequence is
// preempted. Returns the tokens left of the budget.
std::int64_t plan_running(const ReplicaView& view, std::int64_t budget, std::int64_t most_chunk,
                          StepPlan& plan);

// Prompts that are being read go on in the order of admission, each as far as what is left of `budget` tokens goes. Returns the
// tokens left.
std::int64_t read_on(const ReplicaView& view, std::int64_t budget, StepPlan& plan);

// Tokens that policies with `reserves` set aside for a sequence, wherever its prompt is read: of the longest one that the model
// is made for (orca), or of its prompt and the most that it may answer.
std::int64_t tokens_set_aside(const ReplicaView& view, const Sequence& sequence);

// Blocks left when the running part of a plan has taken its own.
std::int64_t blocks_left(const ReplicaView& view, const StepPlan& plan);

// How long a plan holds in which all sequences only decode: until a request arrives, or, where requests wait behind one that does
// not fit, until a sequence ends. It does not hold where the cache may reorder the queue.
Steady steadiness(const ReplicaView& view, const StepPlan& plan);
// The same where requests wait behind one that does not fit, whatever is cached.
Steady steady_behind_queue(const ReplicaView& view);

}  // namespace engine
