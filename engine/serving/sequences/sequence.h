// A request inside a replica, and the sets it moves through: waiting, reading its prompt, decoding.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/fetch_lines.h"
#include "engine/base/small_list.h"
#include "engine/memory/kv_pool.h"
#include "engine/serving/settings/serving_settings.h"
#include "engine/workload/request.h"

namespace engine {

// Where a sequence is in its replica.
enum class Whereabouts : std::uint8_t {
  nowhere,
  waiting,   // in the queue
  awaiting,  // outside the queue until its images or its adapter are there
  loading,   // outside the queue until KV has come from a tier below
  running,   // in a lane
  expected,  // read elsewhere, and waits for blocks here
  fetched,   // read elsewhere, and has blocks here; its KV is under way
  landed,    // read elsewhere, and waits for its first step here
  kept,      // preempted, and its KV waits in the host's memory for blocks
  restored,  // the same, and has blocks; its KV is on its way back
  leaving,   // read here, and holds its blocks until its KV has been carried away
};

// What a sequence waits for outside the queue.
enum class Awaited : std::uint8_t { nothing, images, adapter };

// Times are plain seconds. With many replicas each cache line has to be fetched from memory. So first comes what is looked at while a
// sequence is admitted and runs, then what is looked at when it leaves, then what only some sequences have.
struct alignas(64) Sequence {
  std::int64_t context_base = 0;  // while decoding: its KV tokens less the tokens of its lane
  std::int64_t finish_token = 0;  // while decoding: tokens of its lane when its last one comes
  std::int64_t generated = 0;     // tokens made before the prompt is read (again)
  std::int64_t target = 1;        // tokens to read before decoding: prompt and generated ones
  std::int64_t computed = 0;      // of these, tokens whose KV is there
  std::int64_t reserved = 0;      // blocks set aside for all of it; 0: it takes blocks as it grows
  // Neighbours among the running sequences, in the order of admission; of an unused slot, the next one.
  std::int32_t before = -1, after = -1;
  bool decoding = false;
  bool drafted = false;          // while decoding: the draft has read it, too
  bool waited_for_room = false;  // it waited for room before its KV was carried here, or for a seat
  bool closes = true;            // the last request of its session
  bool encoded = false;          // its images are encoded, where the replica does that itself
  bool goes_on = false;          // its KV comes back from the host: it decodes on without reading
  Awaited awaits = Awaited::nothing;
  RequestClass service_class = RequestClass::normal;
  Whereabouts whereabouts = Whereabouts::nowhere;

  std::int64_t taken = 0;   // blocks taken ahead of its context, for a whole prompt
  std::int64_t output = 1;  // tokens it makes here
  // When its last token came, or decoding began. Of later tokens the lane knows.
  double last_token = 0;
  double joined = -1;  // when it began to decode here, or before that to wait for adapter or blocks
  double arrival = 0;
  double scheduled = -1;
  double first_token = -1;
  std::int64_t cached = 0;  // prompt tokens found in the cache when first admitted

  std::int64_t adapter = -1;  // -1: none
  std::int64_t prompt = 1;
  std::int64_t predicted = 1;  // output tokens, as far as the router knows
  std::int32_t branches = 1;   // answers to be generated once its prompt is read
  // Its group of answers to one prompt (engine/serving/replica/answer_groups.h); -1: it is alone.
  std::int32_t answers = -1;
  std::int64_t asked = 1;  // tokens its client asked for: the next pool makes those beyond `output`
  std::int64_t client = -1;
  std::int64_t others_made = 0;  // tokens of the other answers of its group that are done
  std::int64_t tenant = 0;

  // Three cache lines, of which only the first is looked at where no prefixes are cached.
  KvHolding kv;
  SmallList<PrefixExtent, 5> prefix;  // room for a session of four turns

  std::int64_t history = 0;  // tokens of its prompt that are earlier turns of its session
  double received = -1;      // when its KV had come from another replica; -1: it was read here
  double read = -1;          // when its prompt had been read there
  std::int64_t number = 0;
  std::int64_t session = -1;
  std::int64_t priority = 0;
  double order = 0;  // smaller is served first, where the queue is ordered
  // When its prefix will have come from a lower tier; 0: nothing is to come; -1: not looked up yet.
  double loaded = -1;
  bool loads_with_room = false;  // something is to come, once there is room for it

  std::int32_t preemptions = 0;
  std::int32_t attempts = 1;
  std::int32_t from_replica = -1, from_slot = -1;  // where its KV is carried from; -1: nowhere
  std::int32_t to_replica = -1, to_slot = -1;      // where it is carried to, once that is known
  std::int64_t carried = 0;                        // tokens of it that were not here already
  std::int32_t had = 0;          // tokens whose KV it had when it was last preempted
  std::int32_t found_again = 0;  // of these, tokens that were still there when it came back
  // Tokens that loads have brought for it since it began to wait, by tier; and what the cache had before.
  struct Brought {
    std::int32_t before = 0;
    std::array<std::int32_t, kTiers> tokens{};
  };
  Brought brought;

  // Whether other answers begin once its prompt has been read.
  bool forks() const { return branches > 1 && answers < 0; }
  // Whether others of its tokens, or other answers, are made by another pool.
  bool is_handed_over() const { return output < asked || forks(); }
  // Whether it has left something in the cache that only it can use.
  bool left_own() const { return !prefix.empty() && prefix.back().own(); }
  // While it loads: whether it still has the blocks that were set aside for that.
  bool has_room_to_load() const { return taken > 0; }
  // Where it begins again: the number of the token that reading makes, and the tokens to be read for it. A complete answer is read
  // again up to its last token, because other answers begin with its prompt.
  std::int64_t token_by_reading() const { return std::min(generated + 1, asked); }
  std::int64_t to_read() const { return prompt + token_by_reading() - 1; }
  // Fetch the cache line with its place among the running sequences; those of a sequence that is admitted or runs; and those of
  // one that leaves.
  void fetch_place() const { fetch_lines(this, &taken); }
  void fetch_running() const { fetch_lines(this, &kv.parts); }
  void fetch_leaving() const {
    fetch_running();
    fetch_lines(&history, &preemptions);
  }
  // What further is looked at in either case where prefixes are cached.
  void fetch_prefix() const { fetch_lines(&kv.parts, &history); }
};

// The sequences of a replica, by slot. With many replicas they first stand in room that is lent to them, in large pages beside the
// sequences of other replicas.
class Sequences {
 public:
  Sequences() = default;
  Sequences(Sequences&&) noexcept = default;
  Sequences& operator=(Sequences&&) noexcept = default;

  Sequence& operator[](std::size_t slot) { return data_[slot]; }
  const Sequence& operator[](std::size_t slot) const { return data_[slot]; }
  Sequence* data() { return data_; }
  const Sequence* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool has_room() const { return room_ > 0; }
  // Empties it, and uses the lent room from now on as long as that is enough. Does nothing where it has that room already.
  void use(std::span<Sequence> lent) {
    if (lent.data() == lent_) return;
    own_.reset();
    lent_ = data_ = lent.data();
    room_ = std::uint32_t(lent.size());
    size_ = 0;
  }
  void take_room(std::size_t count) {
    auto larger = std::make_unique<Sequence[]>(count);
    std::move(data_, data_ + size_, larger.get());
    own_ = std::move(larger);
    data_ = own_.get();
    room_ = std::uint32_t(count);
  }
  void add() {
    if (size_ == room_) take_room(2 * std::size_t(room_) + 1);
    ++size_;
  }

 private:
  Sequence* data_ = nullptr;
  std::uint32_t size_ = 0, room_ = 0;
  const Sequence* lent_ = nullptr;
  std::unique_ptr<Sequence[]> own_;
};

// The queue of a replica: slots in the order they are to be served.
class WaitingQueue {
 public:
  void reset(bool ordered) {
    slots_.clear();
    head_ = 0;
    ordered_ = ordered;
    open();
  }
  std::int64_t size() const { return std::int64_t(slots_.size() - head_); }
  bool empty() const { return head_ == slots_.size(); }
  bool ordered() const { return ordered_; }
  // Only the first `count` may be admitted, until the queue is open again.
  void close_after(std::int64_t count) { most_ = count; }
  void open() { most_ = std::numeric_limits<std::int64_t>::max(); }
  std::int64_t admissible() const { return std::min(size(), most_); }
  std::int32_t at(std::int64_t i) const { return slots_[head_ + std::size_t(i)]; }
  std::int32_t* begin() { return slots_.data() + head_; }

  // How many would be before a request with this order.
  std::int64_t place_of(double order, const Sequences& sequences) const {
    if (!ordered_) return size();
    const auto first = slots_.begin() + std::ptrdiff_t(head_);
    return std::upper_bound(first, slots_.end(), order,
                            [&](double value, std::int32_t other) {
                              return value < sequences[std::size_t(other)].order;
                            }) -
           first;
  }

  // Puts a slot behind all of smaller or equal order, or at the end of a queue without an order.
  void push(std::int32_t slot, const Sequences& sequences) {
    if (!ordered_) {
      slots_.push_back(slot);
      return;
    }
    const double order = sequences[std::size_t(slot)].order;
    const auto place = std::upper_bound(slots_.begin() + std::ptrdiff_t(head_), slots_.end(), order,
                                        [&](double value, std::int32_t other) {
                                          return value < sequences[std::size_t(other)].order;
                                        });
    slots_.insert(place, slot);
  }
  // Puts back a slot that was running: before all others that are not more urgent.
  void push_front(std::int32_t slot, const Sequences& sequences) {
    if (ordered_) {
      const double order = sequences[std::size_t(slot)].order;
      const auto place = std::lower_bound(slots_.begin() + std::ptrdiff_t(head_), slots_.end(),
                                          order, [&](std::int32_t other, double value) {
                                            return sequences[std::size_t(other)].order < value;
                                          });
      slots_.insert(place, slot);
    } else if (head_ > 0) {
      slots_[--head_] = slot;
    } else {
      slots_.insert(slots_.begin(), slot);
    }
  }
  void remove(std::int32_t slot) {
    if (slots_[head_] == slot) {
      // The part already served is dropped when the queue is empty, and whenever it is most of a long list.
      if (++head_ == slots_.size()) {
        slots_.clear();
        head_ = 0;
      } else if (head_ > 1024 && 2 * head_ > slots_.size()) {
        slots_.erase(slots_.begin(), slots_.begin() + std::ptrdiff_t(head_));
        head_ = 0;
      }
      return;
    }
    slots_.erase(std::find(slots_.begin() + std::ptrdiff_t(head_), slots_.end(), slot));
  }

 private:
  SmallList<std::int32_t, 6> slots_;
  std::uint32_t head_ = 0;
  bool ordered_ = false;
  std::int64_t most_ = std::numeric_limits<std::int64_t>::max();  // slots that may be admitted
};

}  // namespace engine
