// What one accelerator can do, as its datasheet says and as a sweep may vary it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/fields.h"
#include "engine/base/units.h"
#include "engine/hardware/dtype.h"
#include "engine/hardware/link.h"
#include "engine/hardware/systolic_array.h"

namespace engine {

// Dense matrix peak per format, at the rated clock and multiprocessor count. Zero: the device has no
// such arithmetic, and a point that needs it is infeasible.
struct MatrixPeaks {
  FlopsPerSecond fp32;
  FlopsPerSecond bf16;
  FlopsPerSecond fp16;
  FlopsPerSecond fp8;
  FlopsPerSecond int8;
  FlopsPerSecond int4;
  FlopsPerSecond fp4;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("fp32", self.fp32, "dense matrix peak in fp32 or tf32", non_negative.faster());
    visit("bf16", self.bf16, "dense matrix peak in bf16", non_negative.faster());
    visit("fp16", self.fp16, "dense matrix peak in fp16", non_negative.faster());
    visit("fp8", self.fp8, "dense matrix peak in fp8", non_negative.faster());
    visit("int8", self.int8, "dense matrix peak in int8", non_negative.faster());
    visit("int4", self.int4, "dense matrix peak in int4", non_negative.faster());
    visit("fp4", self.fp4, "dense matrix peak in fp4", non_negative.faster());
  }

  bool operator==(const MatrixPeaks&) const = default;
};

struct Device {
  static constexpr std::string_view library = "devices";

  std::string name = "unnamed";
  std::string measured_as;
  std::string vendor;
  std::string architecture;
  std::int64_t multiprocessors = 0;  // 0: not known
  Hertz clock{1e9};
  std::int64_t rated_multiprocessors = 0;
  Hertz rated_clock{0};
  MatrixPeaks peak;
  FlopsPerSecond vector_peak;
  Bytes memory_capacity;
  BytesPerSecond memory_bandwidth;
  Bytes l2_capacity;
  BytesPerSecond l2_bandwidth;
  Bytes shared_memory;
  Seconds launch_latency{2e-6};
  Link scale_up;
  Link scale_out;
  Link host_link;
  bool peer_access = true;
  SystolicArray array;
  Watts idle_power;
  Watts power_limit;
  Watts busy_power;
  Watts tensor_power;
  Watts memory_power;
  double power_spread = 0;
  DollarsPerSecond rent;
  Dollars purchase;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name, "name of the device", a_label);
    visit("measured_as", self.measured_as,
          "calibration measured on the device this one was made from; it holds, rescaled and less "
          "certain, where fields were altered since; empty: none",
          a_label);
    visit("vendor", self.vendor, "its maker; no figure depends on it", a_label);
    visit("architecture", self.architecture,
          "generation of the processor, which decides whose measured kernels speak for it: Ampere, "
          "Hopper, Blackwell; Ampere RTX, Ada, Blackwell RTX, Turing, Volta, Pascal (by A100's); "
          "TPU, Gaudi, NeuronCore, systolic (roofline only); any other: by all GPUs' together",
          any_value);
    visit("multiprocessors", self.multiprocessors,
          "streaming multiprocessors, compute units or cores; unknown: kernels are bounds "
          "(roofline), since how work spreads over them cannot be told",
          non_negative_or("unknown").faster());
    visit("clock", self.clock,
          "clock the device runs at; peaks and L2 bandwidth scale with it, and what the processor "
          "draws above idle_power with its square, as far as power_limit allows",
          positive.faster());
    visit("rated_multiprocessors", self.rated_multiprocessors,
          "multiprocessors the peaks were stated for; 0: those of the device's file or, where that "
          "states none, any number",
          non_negative.slower());
    visit("rated_clock", self.rated_clock,
          "clock the peaks and powers were stated for; 0: that of the device's file",
          // A higher one lowers peaks and raises what a power limit leaves.
          non_negative.neither());
    visit("peak", self.peak, "dense matrix peak per format", any_value);
    visit("vector_peak", self.vector_peak, "fp32 rate outside the matrix units",
          non_negative.faster());
    visit("memory_capacity", self.memory_capacity, "memory a program can see", positive.faster());
    visit("memory_bandwidth", self.memory_bandwidth, "peak off-chip bandwidth", positive.faster());
    visit("l2_capacity", self.l2_capacity, "last-level cache", non_negative.faster());
    visit("l2_bandwidth", self.l2_bandwidth, "peak last-level cache read bandwidth",
          non_negative.faster());
    visit("shared_memory", self.shared_memory, "scratch memory of one multiprocessor",
          non_negative.faster());
    visit("launch_latency", self.launch_latency, "time of the smallest kernel",
          non_negative.slower());
    visit("scale_up", self.scale_up, "link to devices of the same node or domain", any_value);
    visit("scale_out", self.scale_out, "link to other nodes, per device", any_value);
    visit("host_link", self.host_link, "link to the host", any_value);
    visit("peer_access", self.peer_access,
          "devices reach one another's memory over the bus; false: what they send goes through the "
          "host's memory, as with GeForce cards",
          any_value);
    visit(
        "array", self.array,
        "a grid of multipliers on each multiprocessor that does matrix products, for accelerators "
        "of one's own design",
        any_value);
    visit("idle_power", self.idle_power, "board power when nothing runs", non_negative.neither());
    visit("power_limit", self.power_limit, "board power limit", non_negative.faster());
    visit("busy_power", self.busy_power,
          "power that any running kernel draws, besides tensor_power and memory_power",
          non_negative.slower());
    visit("tensor_power", self.tensor_power,
          "power that matrix units draw on top of busy_power at their peak; 0: not known, and "
          "nothing slows down",
          non_negative.slower());
    visit("memory_power", self.memory_power,
          "power that memory draws on top of busy_power at its peak bandwidth",
          non_negative.slower());
    visit("power_spread", self.power_spread,
          "how far devices of this kind differ in what they draw for the same work: deviation over "
          "mean; a training job waits for the one that its power limit slows down most",
          between(0, 0.5).slower());
    visit("rent", self.rent, "on-demand rent of one device; unknown: there are no prices",
          non_negative_or("unknown").neither());
    visit("purchase", self.purchase, "street price of one device", non_negative.neither());
  }

  // A spec file states its peaks for its own clock and multiprocessors unless it says otherwise.
  void complete() {
    if (rated_multiprocessors == 0) rated_multiprocessors = multiprocessors;
    if (rated_clock.value == 0) rated_clock = clock;
  }

  // Parts that take tiles of work side by side: one where nobody says how many there are, so that no work waits for a turn.
  double processors() const { return double(std::max<std::int64_t>(1, multiprocessors)); }

  // How much faster or slower the on-chip parts run than the datasheet's figures.
  double on_chip_scale() const { return rated_clock.value > 0 ? clock / rated_clock : 1; }

  bool operator==(const Device&) const = default;
};

// Dense matrix peak of a format at the device's present clock and size.
FlopsPerSecond matrix_peak(const Device& device, Dtype dtype);

}  // namespace engine
