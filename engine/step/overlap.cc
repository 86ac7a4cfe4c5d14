#include "engine/step/overlap.h"

#include <algorithm>
#include <array>

#include "engine/kernels/power.h"

namespace engine {
namespace {

struct StreamSum {
  Seconds time, low, high;
  Savings saved;
  double exposed = 1;  // share of its time that the streams before it do not cover
};

// The streams of one group, summed up.
class StreamGroup {
 public:
  explicit StreamGroup(const Device& device) : device_(&device) {}

  void add(const StreamRow& row) {
    StreamSum& stream = streams_[row.beside.stream];
    taken_ = std::max(taken_, double(row.beside.multiprocessors));
    stream.time += row.row.work.time;
    stream.low += row.row.work.low;
    stream.high += row.row.work.high;
    stream.saved.add(row.row.work.saved);
    own_.add(row.row.work.saved);
  }

  // How much longer the first stream takes for what others occupy.
  double slowdown() const {
    if (taken_ <= 0 || streams_[0].time.value <= 0) return 1;
    Seconds others;
    for (std::size_t i = 1; i < streams_.size(); ++i) others = std::max(others, streams_[i].time);
    const Seconds longer = longer_beside(streams_[0].time, others, taken_of(taken_, *device_));
    return 1 + longer / streams_[0].time;
  }

  void compose() {
    std::array<Seconds, enum_names(Bound{}).size()> without{};
    for (StreamSum& stream : streams_) {
      const Seconds left = std::max(Seconds{0}, stream.time - all_.time);
      stream.exposed = stream.time.value > 0 ? left / stream.time : 0;
      all_.time = std::max(all_.time, stream.time);
      all_.low = std::max(all_.low, stream.low);
      all_.high = std::max(all_.high, stream.high);
      for (std::size_t i = 0; i < without.size(); ++i) {
        without[i] = std::max(without[i], stream.time - stream.saved.by_part[i]);
      }
    }
    for (std::size_t i = 0; i < without.size(); ++i) all_.saved.by_part[i] = all_.time - without[i];
  }

  void apply(StreamRow& row) const {
    Work& work = row.row.work;
    work.hidden = work.time * (1 - streams_[row.beside.stream].exposed);
    const double share = all_.time.value > 0 ? work.exposed() / all_.time : 0;
    work.low = all_.low * share;
    work.high = all_.high * share;
    for (std::size_t i = 0; i < own_.by_part.size(); ++i) {
      const double own = own_.by_part[i].value;
      work.saved.by_part[i] *= own > 0 ? all_.saved.by_part[i].value / own : 0;
    }
  }

 private:
  std::array<StreamSum, kMostStreams> streams_;
  StreamSum all_;
  Savings own_;  // of all streams, each on its own
  const Device* device_;
  double taken_ = 0;  // of these, by streams after the first
};

void slow_down(double times, Work& work) {
  work.time *= times;
  work.low *= times;
  work.high *= times;
  work.clocked *= times;
  work.limited *= times;
  for (Seconds& part : work.saved.by_part) part *= times;
}

}  // namespace

void draw_beside(Seconds hidden, const Device& device, Joules& energy) {
  energy = std::max(Joules{0}, energy - power_at_rest(device) * hidden);
}

Taken taken_of(double multiprocessors, const Device& device) {
  constexpr std::int64_t few =
      16;  // channels of a collective, of which each takes a multiprocessor
  const std::int64_t rated =
      device.rated_multiprocessors > 0 ? device.rated_multiprocessors : device.multiprocessors;
  return {rated > few ? multiprocessors : 0, device.processors()};
}

// While both run, work goes on at the pace that the multiprocessors left to it allow; what remains of it then has all of them.
Seconds longer_beside(Seconds work, Seconds beside, const Taken& taken) {
  const double share = std::min(0.5, taken.multiprocessors / taken.of);
  return std::min(work * (share / (1 - share)), beside * share);
}

void overlap(std::span<StreamRow> rows, const Device& device) {
  std::uint8_t groups = 0;
  for (const StreamRow& row : rows) groups = std::max(groups, row.beside.group);
  for (int number = 1; number <= groups; ++number) {
    const auto summed = [&] {
      StreamGroup group(device);
      for (const StreamRow& row : rows) {
        if (row.beside.group == number) group.add(row);
      }
      return group;
    };
    StreamGroup group = summed();
    if (const double slower = group.slowdown(); slower > 1) {
      for (StreamRow& row : rows) {
        const bool first = row.beside.group == number && row.beside.stream == 0;
        if (first) slow_down(slower, row.row.work);
      }
      group = summed();
    }
    group.compose();
    for (StreamRow& row : rows) {
      if (row.beside.group == number) group.apply(row);
    }
  }
}

}  // namespace engine
