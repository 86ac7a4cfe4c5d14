#include "engine/workload/request_source.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "engine/base/check.h"
#include "engine/base/large_pages.h"
#include "engine/base/moment.h"
#include "engine/base/random.h"
#include "engine/workload/shares.h"

namespace engine {
namespace {

// Lanes of Stream::sessions, so that the uses of it do not share numbers.
constexpr std::uint32_t kGroupLane = 1;

}  // namespace

RequestSource::RequestSource(const Load& load, const Trace* trace, RequestMemory& memory,
                             const Options& options)
    : load_(load),
      trace_(trace),
      memory_(memory),
      options_(options),
      lengths_(load.lengths, options.seed, trace),
      clock_(load, options.level.rate, options.seed),
      total_(options.endless || clock_.ends() ? std::numeric_limits<std::int64_t>::max() / 2
                                              : total_requests(load, trace)),
      open_time_(kNever),
      next_time_(kNever) {
  memory_.prepare(load, options.seed);
  const std::int64_t calls = load.calls_of_session();
  sessions_ = (total_ + calls - 1) / calls;
  plain_ = load.priorities <= 1 && !load.classes.any() && load.image_prompt() == 0 &&
           load.turns <= 1 && load.tenants <= 1 && load.adapters == 0 && !options.prefixes;
  if (load.classes.any()) mean_ = lengths_.mean();
  if (load.tenants > 1) tenants_ = summed_shares(load.tenants, load.tenant_skew);
  adapters_ = summed_shares(load.adapters, load.adapter_skew);
  if (load.arrivals == ArrivalKind::closed) {
    start_closed_loop();
  } else {
    advance_open();
  }
  find_next();
}

void RequestSource::start_closed_loop() {
  const std::int64_t count = std::min(options_.level.clients, total_);
  clients_.resize(std::size_t(count));
  promised_ = count;
  for (std::int64_t i = 0; i < count; ++i) {
    push_due(load_.ramp.value * double(i) / double(count), i);
  }
}

void RequestSource::push_due(double time, std::int64_t client) {
  // Answers that came at one moment, up to rounding, are followed in the order in which they came, however long each takes to be told.
  due_.push_back({time, std::round(time / kSameMoment), order_++, client});
  std::ranges::push_heap(due_, std::greater<>{});
}

std::int64_t RequestSource::pop_due() {
  std::ranges::pop_heap(due_, std::greater<>{});
  const std::int64_t client = due_.back().client;
  due_.pop_back();
  return client;
}

void RequestSource::advance_open() {
  if (issued_ >= sessions_) {
    open_time_ = kNever;
  } else if (load_.arrivals == ArrivalKind::trace) {
    const std::size_t row = std::size_t(issued_);
    open_time_ = (trace_->arrival[row] - trace_->arrival[0]) / load_.trace_speed;
  } else {
    open_time_ = next_open();
  }
}

void RequestSource::find_next() { next_time_ = follows() ? due_.front().time : open_time_; }

void RequestSource::take(Request& out) {
  check(next_time_ < kNever, "a request is taken only when one is due");
  out.arrival = next_time_;
  if (follows()) {
    const std::int64_t index = pop_due();
    Client& client = clients_[std::size_t(index)];
    if (load_.arrivals == ArrivalKind::closed) {
      client.number = index + client.asked++ * std::int64_t(clients_.size());
      ++issued_;
    }
    fill(out, client.number, index);
    begin_branch(index, out.arrival);
  } else if (load_.turns > 1) {
    // A session begins; its requests are numbered together, whenever they come.
    if (idle_.empty()) {
      idle_.push_back(std::int64_t(clients_.size()));
      if (clients_.size() == clients_.capacity())
        reserve_large_pages(clients_, 2 * clients_.size());
      clients_.emplace_back();
    }
    const std::int64_t index = idle_.back();
    idle_.pop_back();
    Client& client = clients_[std::size_t(index)];
    client.turn = client.branch = 0;
    const std::int64_t number = issued_++ * load_.calls_of_session();
    advance_open();
    fill(out, number, index);
    client.open = 1;
  } else {
    const std::int64_t number = issued_++;
    advance_open();
    fill(out, number, -1);
  }
  find_next();
}

// What is random about a request belongs to what it is: in a closed loop to the client and how often it
// asked, however soon its answers come and however many clients there are.
std::uint64_t RequestSource::draw_of(std::int64_t number, std::int64_t client_index) const {
  if (load_.arrivals != ArrivalKind::closed) return std::uint64_t(number);
  constexpr std::uint64_t most_clients = std::uint64_t{1} << 32;
  const Client& client = clients_[std::size_t(client_index)];
  return std::uint64_t(client_index) + most_clients * std::uint64_t(client.asked - 1);
}

void RequestSource::fill(Request& out, std::int64_t number, std::int64_t client_index) {
  out.number = number;
  out.session = -1;
  out.client = client_index;
  out.tenant = 0;
  out.service_class = RequestClass::normal;
  out.history = 0;
  out.opens = out.closes = true;
  out.prefix.clear();
  out.samples = load_.samples;
  out.adapter = -1;
  if (load_.arrivals == ArrivalKind::trace) {
    fill_from_trace(out, number);
    return specialise(out, std::uint64_t(number));
  }
  const std::uint64_t draw = draw_of(number, client_index);
  const LengthPair lengths = memory_.lengths_of(std::int64_t(draw), lengths_);
  out.prompt = lengths.prompt;
  out.output = lengths.output;
  out.priority = 0;
  if (!plain_) add_particulars(out, draw, client_index);
}

// All that a request has besides its lengths, in a load that says something of it.
void RequestSource::add_particulars(Request& out, std::uint64_t draw, std::int64_t client_index) {
  const std::int64_t number = out.number;
  if (load_.priorities > 1) {
    out.priority =
        std::int64_t(uniform(options_.seed, Stream::priorities, draw) * double(load_.priorities));
  }
  if (load_.classes.any()) assign_class(out, draw);
  out.prompt += load_.image_prompt();
  Client* client = nullptr;
  if (client_index >= 0 && load_.turns > 1) {
    client = &clients_[std::size_t(client_index)];
    const bool first_call = client->branch == 0;
    if (client->turn == 0) {
      client->session = number;
      client->session_draw = draw;
      client->history = 0;
      client->shared = std::min(load_.shared_prefix, out.prompt - 1);
      client->turn_end.clear();
    }
    client->number = number;
    out.opens = client->turn == 0;
    const bool cut = load_.arrivals != ArrivalKind::closed && number + 1 == total_;
    const bool last_call = client->turn == 0 || client->branch + 1 == load_.branches;
    out.closes = (client->turn + 1 == load_.turns && last_call) || cut;
    out.session = client->session;
    if (first_call) client->before_turn = client->history;
    out.history = client->before_turn;
    out.prompt += out.history;
    if (first_call) {
      client->history = out.prompt + out.output;
      // The last token of an answer is never run through the model, so its KV is not there to share.
      client->turn_end.push_back(client->history - 1);
    } else {
      // The next turn re-sends what the first call began with, and reads the other answers.
      client->history += out.output;
    }
  }
  const std::uint64_t owner = client != nullptr ? client->session_draw : draw;
  if (load_.tenants > 1) out.tenant = tenant_of(owner);
  if (options_.prefixes) add_prefix(out, owner, client);
  specialise(out, owner);
}

// Its adapter, with which no other adapter's KV can be shared, and its own prompt where several answers share that.
void RequestSource::specialise(Request& out, std::uint64_t owner) const {
  if (load_.adapters > 0) {
    out.adapter = adapter_of(owner);
    for (PrefixExtent& part : out.prefix)
      part.key = mixed_seed(part.key, std::uint64_t(out.adapter));
  }
  if (load_.samples > 1 && options_.prefixes) add_own_prompt(out);
}

// The answers to one prompt share all of it.
void RequestSource::add_own_prompt(Request& out) const {
  constexpr std::uint64_t prompts = 3;
  if (!out.prefix.empty() && out.prefix.back().end >= out.prompt) return;
  const std::uint64_t chain = mixed_seed(options_.seed, prompts);
  out.prefix.push_back({mixed_seed(chain, std::uint64_t(out.number)), out.prompt});
}

void RequestSource::assign_class(Request& out, std::uint64_t draw) const {
  const LoadClasses& classes = load_.classes;
  const double u = uniform(options_.seed, Stream::classes, draw);
  const bool high = u < classes.high.share, low = u >= 1 - classes.low.share;
  out.service_class = high ? RequestClass::high : low ? RequestClass::low : RequestClass::normal;
  out.priority = std::int64_t(out.service_class);
  if (!high && !low) return;
  const LoadClass& stated = high ? classes.high : classes.low;
  const auto scaled = [](std::int64_t tokens, std::int64_t wanted, double mean) {
    if (wanted == 0) return tokens;
    return std::max<std::int64_t>(1, std::llround(double(tokens) * double(wanted) / mean));
  };
  out.prompt = scaled(out.prompt, stated.prompt, mean_.prompt);
  out.output = scaled(out.output, stated.output, mean_.output);
}

std::int64_t RequestSource::tenant_of(std::uint64_t owner) const {
  return share_at(tenants_, uniform(options_.seed, Stream::tenants, owner));
}

std::int64_t RequestSource::adapter_of(std::uint64_t owner) const {
  return share_at(adapters_, uniform(options_.seed, Stream::adapters, owner));
}

std::int64_t RequestSource::output_of(std::int64_t number, std::int64_t sample,
                                      std::int64_t first) const {
  const bool drawn = load_.arrivals != ArrivalKind::trace;
  if (!drawn || load_.lengths.distribution == LengthKind::fixed) return first;
  return memory_.answer_of(number, sample, [&] {
    const std::uint64_t draw =
        random_bits(options_.seed, Stream::samples, std::uint64_t(number), std::uint32_t(sample));
    return lengths_(std::int64_t(draw >> 2)).output;
  });
}

void RequestSource::fill_from_trace(Request& out, std::int64_t number) const {
  const std::size_t row = std::size_t(number);
  out.prompt = trace_->prompt[row] + load_.image_prompt();
  out.output = trace_->output[row];
  out.priority = trace_->priority.empty() ? 0 : trace_->priority[row];
  if (load_.classes.any()) assign_class(out, std::uint64_t(number));
  if (!trace_->session.empty()) out.session = trace_->session[row];
  if (!trace_->tenant.empty()) out.tenant = trace_->tenant[row];
  if (!options_.prefixes || trace_->first_block.empty()) return;
  const std::uint32_t first = trace_->first_block[row], last = trace_->first_block[row + 1];
  for (std::uint32_t i = first; i < last; ++i) {
    const std::int64_t end = std::int64_t(i - first + 1) * trace_->block_tokens;
    out.prefix.push_back({trace_->blocks[i], std::min(end, out.prompt)});
  }
}

void RequestSource::add_prefix(Request& out, std::uint64_t owner, const Client* client) const {
  // Keys of groups and of sessions come from different halves of the seed's mix.
  constexpr std::uint64_t groups = 1, sessions = 2;
  // A prompt that is shorter than the shared prefix follows it to its last token, which is its own. A
  // session re-sends its first prompt: what it shares is settled there.
  const std::int64_t shared =
      client != nullptr ? client->shared : std::min(load_.shared_prefix, out.prompt - 1);
  if (shared > 0) {
    const double u = uniform(options_.seed, Stream::sessions, owner, kGroupLane);
    const auto group = std::uint64_t(u * double(load_.prefix_groups));
    out.prefix.push_back({mixed_seed(mixed_seed(options_.seed, groups), group), shared});
  }
  if (client == nullptr) return;
  const std::uint64_t chain = mixed_seed(mixed_seed(options_.seed, sessions), owner);
  // Other calls of a turn share what was before it.
  const std::size_t turns = client->turn_end.size() - (client->branch > 0 ? 1 : 0);
  for (std::size_t turn = 0; turn < turns; ++turn) {
    out.prefix.push_back({mixed_seed(chain, turn), client->turn_end[turn]});
  }
}

void RequestSource::stop() {
  // Sessions that have begun go on to their end.
  const bool sessions = load_.arrivals != ArrivalKind::closed && load_.turns > 1;
  total_ = sessions ? issued_ * load_.calls_of_session() : issued_;
  sessions_ = issued_;
  open_time_ = kNever;
  find_next();
}

// The first call of a client's turn has come. The other calls of the turn come with it, as far as the load has requests left.
void RequestSource::begin_branch(std::int64_t client_index, double time) {
  Client& client = clients_[std::size_t(client_index)];
  const bool closed = load_.arrivals == ArrivalKind::closed;
  if (client.branch == 0) {
    // Requests that are left, this first call included.
    const std::int64_t left = closed ? total_ - promised_ + 1 : total_ - client.number;
    const std::int64_t calls = client.turn == 0 ? 1 : load_.branches;
    client.calls = client.open = std::max<std::int64_t>(1, std::min(calls, left));
    if (closed) promised_ += client.calls - 1;
  }
  if (client.branch + 1 == client.calls) {
    client.branch = 0;
    return;
  }
  ++client.branch;
  if (!closed) ++client.number;
  push_due(time, client_index);
}

void RequestSource::answered(std::int64_t client_index, double time) {
  if (client_index < 0) return;
  Client& client = clients_[std::size_t(client_index)];
  const bool closed = load_.arrivals == ArrivalKind::closed;
  if (--client.open > 0) return;  // other calls of its turn are not
  client.turn = client.turn + 1 < load_.turns ? client.turn + 1 : 0;
  bool goes_on = false;
  if (closed) {
    goes_on = promised_ < total_;
    if (goes_on) ++promised_;
  } else {
    ++client.number;
    goes_on = client.turn > 0 && client.number < total_;
  }
  if (goes_on) {
    // The pause belongs to the request that was answered: the same in every design.
    double pause = 0;
    if (load_.think_time.value > 0) {
      const std::uint64_t draw = draw_of(client.number, client_index);
      pause = load_.think_time.value * exponential(options_.seed, Stream::think_time, draw);
    }
    push_due(time + pause, client_index);
  } else if (!closed) {
    idle_.push_back(client_index);
  }
  find_next();
}

}  // namespace engine
