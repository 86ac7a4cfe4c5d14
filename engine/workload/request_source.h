// The stream of requests of a load: open, recorded, closed, or sessions that go on.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/fetch_lines.h"
#include "engine/base/moment.h"
#include "engine/base/small_list.h"
#include "engine/workload/arrivals.h"
#include "engine/workload/lengths.h"
#include "engine/workload/load.h"
#include "engine/workload/request.h"
#include "engine/workload/trace.h"

namespace engine {

// Why the load cannot be made, or nothing.
std::optional<std::string> load_problem(const Load& load, const Trace* trace);

// Requests in all; where the load leaves that open, those of the whole trace or (about) of the whole curve, or 1,000.
std::int64_t total_requests(const Load& load, const Trace* trace);

// What a load's relative settings come to at this point.
struct LoadLevel {
  double rate = 1;           // requests a second (sessions a second when turns > 1)
  std::int64_t clients = 1;  // of a closed loop
};

// Numbers drawn for one load, to be used again by the next point that meets the same requests: in a
// sweep nearly all of them do. Bounded; what lies beyond is drawn anew.
class RequestMemory {
 public:
  static constexpr std::size_t kMost = 1 << 17;  // requests: three megabytes

  // Forgets what belongs to another load.
  void prepare(const Load& load, std::uint64_t seed);

  LengthPair lengths_of(std::int64_t number, const LengthSampler& sampler) {
    const std::size_t n = std::size_t(number);
    return n < lengths_.size() && lengths_[n].prompt > 0 ? lengths_[n] : draw_lengths(n, sampler);
  }
  // Output tokens of the `sample`-th answer to a request, which `draw` says where they are not known.
  template <class Draw>
  std::int64_t answer_of(std::int64_t number, std::int64_t sample, Draw draw) {
    const auto place = std::size_t(number * (samples_ - 1) + sample - 1);
    if (place < answers_.size() && answers_[place] > 0) return answers_[place];
    return keep_answer(place, draw());
  }
  // Time of the `count`-th arrival of a clock that stretches, all before it known or taken.
  double arrival(std::int64_t count, ArrivalClock& clock) {
    const std::size_t n = std::size_t(count);
    return n < arrivals_.size() ? arrivals_[n] * clock.mean_gap() : draw_arrival(n, clock);
  }

 private:
  double draw_arrival(std::size_t n, ArrivalClock& clock);
  std::int64_t keep_answer(std::size_t place, std::int64_t tokens);
  LengthPair draw_lengths(std::size_t n, const LengthSampler& sampler);

  std::vector<double> arrivals_;     // in mean gaps: the rate does not matter
  std::vector<LengthPair> lengths_;  // a prompt of 0: not drawn yet
  std::vector<std::int64_t>
      answers_;               // beside the first, request by request; 0 tokens: not drawn yet
  std::int64_t samples_ = 1;  // answers to a request
  ArrivalKind kind_ = ArrivalKind::poisson;
  double cv_ = 0;
  Lengths drawn_;
  std::uint64_t seed_ = 0;
};

// Where the lengths of a load come from: its draws, or a trace.
struct DrawnLoad {
  const Load& load;
  const Trace* trace = nullptr;
  std::uint64_t seed = 0;
  RequestMemory& memory;
};

// For estimates: exact where the distribution is, else over the first few hundred requests.
MeanLengths mean_lengths(const DrawnLoad& drawn);
// Mean lengths of the requests inside at a moment, where a request stays for a time in proportion to its output.
MeanLengths lengths_inside(const DrawnLoad& drawn);
// Output tokens of the longest of so many answers that are generated at once, on average.
double longest_output(const DrawnLoad& drawn, std::int64_t answers);

// Makes requests one at a time, in the order of their arrival; memory follows the sessions and
// clients that are alive. Load, trace and memory outlive it; `load_problem` found nothing.
class RequestSource {
 public:
  struct Options {
    LoadLevel level;
    std::uint64_t seed = 0;
    bool prefixes = false;  // fill in Request::prefix
    bool endless = false;   // requests come until `stop`
  };
  RequestSource(const Load& load, const Trace* trace, RequestMemory& memory,
                const Options& options);

  // Infinite when nothing is due until some request finishes, or ever.
  double next_arrival() const { return next_time_; }
  // Takes the request that arrives next; `out` keeps its memory.
  void take(Request& out);
  // The client's request was answered (or refused) at `time`: its client or session goes on.
  void answered(std::int64_t client, double time);
  // Asks for what is known of a client before it is told.
  void fetch_client(std::int64_t client) const {
    if (client >= 0) fetch_lines(clients_.data() + client, clients_.data() + client + 1);
  }
  // The same of the one that asks next.
  void fetch_next_client() const {
    if (!due_.empty()) fetch_client(due_.front().client);
  }

  // Tokens of the `sample`-th answer to a request whose first one has `first` tokens: recorded ones are all alike.
  std::int64_t output_of(std::int64_t number, std::int64_t sample, std::int64_t first) const;

  // Nothing begins from now on: no request, no session, no client's next request.
  void stop();

  // Requests in all.
  std::int64_t total() const { return total_; }
  const LengthSampler& lengths() const { return lengths_; }

 private:
  // One that waits for answers: a client of a closed loop, or a session with more turns to come. It fills two cache lines, which with many
  // sessions have to be fetched from memory for every request.
  struct alignas(64) Client {
    std::int64_t session = -1;
    std::uint64_t session_draw = 0;       // what its group and tenant are drawn by
    std::int32_t turn = 0;                // of the session, the one being answered,
    std::int32_t branch = 0;              // its call that comes next,
    std::int32_t calls = 1, open = 1;     // its calls, and those that are not answered,
    std::int64_t before_turn = 0;         // and tokens before it
    std::int64_t number = 0;              // of the request being answered
    std::int64_t asked = 0;               // closed: requests so far
    std::int64_t history = 0;             // tokens so far, prompts and outputs
    std::int64_t shared = 0;              // tokens at the start that other sessions have, too
    SmallList<std::int64_t, 4> turn_end;  // tokens whose KV each turn leaves behind
  };
  static_assert(sizeof(Client) == 128);
  // A client's next request.
  struct Due {
    double time;
    double moment;        // that the time belongs to: a whole number
    std::uint64_t order;  // of two at one moment, the one that was first to be known
    std::int64_t client;
    bool operator>(const Due& other) const {
      return moment != other.moment ? moment > other.moment : order > other.order;
    }
  };

  void start_closed_loop();
  void push_due(double time, std::int64_t client);
  void begin_branch(std::int64_t client, double time);
  std::int64_t pop_due();
  // Whether the next request is that of a client that was answered. At one moment it comes before requests of new clients, whatever
  // rounding makes of their times.
  bool follows() const { return !due_.empty() && due_.front().time <= open_time_ + kSameMoment; }
  void find_next();
  void advance_open();
  double next_open() {
    return clock_.stretches() ? memory_.arrival(issued_, clock_) : clock_.next();
  }
  std::uint64_t draw_of(std::int64_t number, std::int64_t client_index) const;
  void fill(Request& out, std::int64_t number, std::int64_t client_index);
  void fill_from_trace(Request& out, std::int64_t row) const;
  void add_particulars(Request& out, std::uint64_t draw, std::int64_t client_index);
  void assign_class(Request& out, std::uint64_t draw) const;
  std::int64_t tenant_of(std::uint64_t owner) const;
  std::int64_t adapter_of(std::uint64_t owner) const;
  void add_prefix(Request& out, std::uint64_t owner, const Client* client) const;
  void specialise(Request& out, std::uint64_t owner) const;
  void add_own_prompt(Request& out) const;

  const Load& load_;
  const Trace* trace_;
  RequestMemory& memory_;
  Options options_;
  LengthSampler lengths_;
  MeanLengths mean_;  // of them, where classes have means of their own
  ArrivalClock clock_;
  bool plain_ = false;         // requests have nothing but their lengths
  std::int64_t sessions_ = 0;  // that begin in an open load, or requests where it has no turns
  std::int64_t total_ = 0;
  std::int64_t issued_ = 0;    // requests taken, or sessions begun where an open load has turns
  std::int64_t promised_ = 0;  // closed: requests taken, and those that clients are about to ask
  double open_time_;           // next arrival that does not wait for an answer
  double next_time_;
  std::uint64_t order_ = 0;
  std::vector<Due> due_;            // a heap, earliest first
  std::vector<Client> clients_;     // alive ones, and slots to be used again
  std::vector<std::int64_t> idle_;  // those slots
  std::vector<double> tenants_;     // their shares of the requests, summed up
  std::vector<double> adapters_;    // likewise
};

}  // namespace engine
