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
  awaiting,  // not in it before its images, or its adapter, have come
  loading,   // for KV from a tier below
  running,   // in a lane
  expected,  // read elsewhere: it waits for blocks
  fetched,   // read elsewhere: it has blocks, and its KV is under way
  landed,    // read elsewhere: it waits for its first step here
  leaving,   // read here: it holds its blocks until its KV has been carried away
};

// What a sequence is out of the queue for.
enum class Awaited : std::uint8_t { nothing, images, adapter };

// Times are plain seconds. With many replicas every line of memory has to be fetched anew: what is asked while it is let in and
// runs stands first, then what is asked when it leaves, then what is asked only of some.
struct alignas(64) Sequence {
  std::int64_t context_base = 0;  // decoding: KV tokens less the tokens of its lane
  std::int64_t finish_token = 0;  // decoding: tokens of its lane when the last one comes
  std::int64_t generated = 0;     // tokens made before the prompt is read (again)
  std::int64_t target = 1;    // tokens to read before decoding: the prompt, and what was generated
  std::int64_t computed = 0;  // of these, those whose KV is there
  std::int64_t reserved = 0;  // blocks set aside for good; 0: it grows
  std::int32_t before = -1, after = -1;  // among the running, in the order of admission; or unused
  bool decoding = false;
  bool drafted = false;          // decoding: the draft has read it, too
  bool waited_for_room = false;  // before its KV was carried here; then, for a seat
  bool closes = true;            // the last of its session
  bool encoded = false;          // its images, where those who read prompts do that
  Awaited awaits = Awaited::nothing;
  RequestClass service_class = RequestClass::normal;
  Whereabouts whereabouts = Whereabouts::nowhere;

  std::int64_t taken = 0;   // blocks taken ahead of its context, for a whole prompt
  std::int64_t output = 1;  // tokens it makes here
  double last_token = 0;    // or the time decoding began; later ones are the lane's last decode
  double joined =
      -1;  // when it began to decode here; before, to wait for its adapter or for blocks
  double arrival = 0;
  double scheduled = -1;
  double first_token = -1;
  std::int64_t cached = 0;  // prompt tokens found in the cache when first admitted

  std::int64_t adapter = -1;  // -1: none
  std::int64_t prompt = 1;
  std::int64_t predicted = 1;  // output tokens, as far as the router knows
  std::int32_t branches = 1;   // answers to be generated once its prompt is read
  std::int32_t answers =
      -1;  // those it belongs to (engine/serving/replica/answer_groups.h); -1: it is alone
  std::int64_t asked = 1;  // tokens its client asked for: the rest is made by the next pool
  std::int64_t client = -1;
  std::int64_t others_made = 0;  // tokens of the answers beside it that are done
  std::int64_t tenant = 0;

  // Three lines, of which only the first is looked at where no prefixes are cached.
  KvHolding kv;
  SmallList<PrefixExtent, 5> prefix;  // those of a session of four turns

  std::int64_t history = 0;  // of the prompt, tokens of its session before it
  double received = -1;      // when its KV had come from another replica; -1: it was read here
  double read = -1;          // when its prompt had been read there
  std::int64_t number = 0;
  std::int64_t session = -1;
  std::int64_t priority = 0;
  double order = 0;  // smaller is served first, where the queue is ordered
  // When its prefix has come from a lower tier; 0: nothing is to come; -1: nobody has looked.
  double loaded = -1;
  bool loads_with_room = false;  // something is to come, and waits for room

  std::int32_t preemptions = 0;
  std::int32_t attempts = 1;
  std::int32_t from_replica = -1, from_slot = -1;  // where its KV is carried from; -1: nowhere
  std::int32_t to_replica = -1, to_slot = -1;      // and to, once somebody expects it
  std::int64_t carried = 0;                        // tokens of it that were not here already
  std::int32_t had = 0;                            // tokens whose KV it had when it last made way,
  std::int32_t found_again = 0;  // and those of them that were still there when it came back
  // What a load has brought for it since it began to wait, by tier, and what the cache had before.
  struct Brought {
    std::int32_t before = 0;
    std::array<std::int32_t, kTiers> tokens{};
  };
  Brought brought;

  // Other answers are to begin once its prompt has been read.
  bool forks() const { return branches > 1 && answers < 0; }
  // Whether it has left something in the cache that nobody else has.
  bool left_own() const { return !prefix.empty() && prefix.back().own(); }
  // Of one that loads: nobody has taken the blocks back that were set aside for it.
  bool has_room_to_load() const { return taken > 0; }
  // Where it begins again: which of its tokens reading gives, and what is read before. An answer that is complete is read
  // again with its last token, for other answers that begin with its prompt.
  std::int64_t token_by_reading() const { return std::min(generated + 1, asked); }
  std::int64_t to_read() const { return prompt + token_by_reading() - 1; }
  // Asks for the line that has its place among the running; for those of one that is let in or runs, or that leaves.
  void fetch_place() const { fetch_lines(this, &taken); }
  void fetch_running() const { fetch_lines(this, &kv.parts); }
  void fetch_leaving() const {
    fetch_running();
    fetch_lines(&history, &preemptions);
  }
  // Of either, where prefixes are cached.
  void fetch_prefix() const { fetch_lines(&kv.parts, &history); }
};

// The sequences of a replica, by slot. They may stand in room that is lent: with many replicas, side by side with those of the
// others, in large pages.
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
  // From now on it has this room, as long as it is enough, and nobody in it. Once it has it, nothing changes.
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
  // Only so many of the first may be let in, until it is open again.
  void close_after(std::int64_t count) { most_ = count; }
  void open() { most_ = std::numeric_limits<std::int64_t>::max(); }
  std::int64_t admissible() const { return std::min(size(), most_); }
  std::int32_t at(std::int64_t i) const { return slots_[head_ + std::size_t(i)]; }
  std::int32_t* begin() { return slots_.data() + head_; }

  // How many would be before one of this order.
  std::int64_t place_of(double order, const Sequences& sequences) const {
    if (!ordered_) return size();
    const auto first = slots_.begin() + std::ptrdiff_t(head_);
    return std::upper_bound(first, slots_.end(), order,
                            [&](double value, std::int32_t other) {
                              return value < sequences[std::size_t(other)].order;
                            }) -
           first;
  }

  // By order where the queue has one (after equals), else to the end.
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
  // Somebody who was running comes back: before all others that are not more urgent.
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
      // Memory follows the queue: the part already served is dropped when nobody is left, and now and then.
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
  std::int64_t most_ = std::numeric_limits<std::int64_t>::max();  // that may be let in
};

}  // namespace engine
