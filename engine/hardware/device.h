// What one accelerator can do, as its datasheet says and as a sweep may vary it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "engine/base/fields.h"
#include "engine/base/task.h"
#include "engine/base/units.h"
#include "engine/hardware/dtype.h"
#include "engine/hardware/link.h"
#include "engine/hardware/rated_powers.h"
#include "engine/hardware/systolic_array.h"

namespace engine {

// Dense peak of products per format, at the rated clock and multiprocessor count. Zero: the device has no
// such arithmetic, and a point that needs it is infeasible; but any vector unit multiplies fp32.
struct MatrixPeaks {
  FlopsPerSecond fp32;
  FlopsPerSecond tf32;
  FlopsPerSecond bf16;
  FlopsPerSecond fp16;
  FlopsPerSecond fp8;
  FlopsPerSecond int8;
  FlopsPerSecond int4;
  FlopsPerSecond fp4;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("fp32", self.fp32,
          "dense peak of products in fp32, of the matrix units where these multiply it (AMD, TPU), "
          "else of the vector units; 0: vector_peak",
          non_negative.faster());
    visit("tf32", self.tf32, "dense matrix peak in tf32", non_negative.faster());
    visit("bf16", self.bf16, "dense matrix peak in bf16", non_negative.faster());
    visit("fp16", self.fp16, "dense matrix peak in fp16", non_negative.faster());
    visit("fp8", self.fp8, "dense matrix peak in fp8", non_negative.faster());
    visit("int8", self.int8, "dense matrix peak in int8", non_negative.faster());
    visit("int4", self.int4, "dense matrix peak in int4", non_negative.faster());
    visit("fp4", self.fp4, "dense matrix peak in fp4", non_negative.faster());
  }

  bool operator==(const MatrixPeaks&) const = default;
};

struct Device;
// What a device draws that was made from another, where nobody states it: multiprocessors draw in proportion to their number, matrix units
// to the peak, memory to its bandwidth, and the board at rest to both. The same work so takes the same energy, but for rests.
void follow_rated_powers(Device& device);
// Takes powers as they stand for those of a device's file.
void record_powers(Device& device);

// Links between devices are the device's own, unless its cluster states some. A draft whose device differs in them lies on
// devices of its own.
inline constexpr const Condition& without_cluster_scale_up =
    either<"cluster.scale_up.topology {} (this cluster has links of its own in cluster.scale_up)",
           is_one_of<"cluster.scale_up.topology", Topology::none>, is_set<"draft.present">>;
inline constexpr const Condition& without_cluster_scale_out =
    either<"cluster.scale_out.topology {} (this cluster has links of its own in cluster.scale_out)",
           is_one_of<"cluster.scale_out.topology", Topology::none>, is_set<"draft.present">>;

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
  double exponentials = 16;
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
  double energy_scale = 1;
  bool power_assumed = false;
  RatedPowers rated_powers;
  double power_spread = 0;
  DollarsPerSecond rent;
  bool rent_assumed = false;
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
    visit(
        "peak", self.peak,
        "dense matrix peak per format; none stated on a device with an array: what its multipliers "
        "do, in every format",
        any_value);
    visit("vector_peak", self.vector_peak, "fp32 rate outside the matrix units",
          non_negative.faster());
    visit("exponentials", self.exponentials,
          "exponentials that the special-function units of one multiprocessor give a clock; the "
          "softmax of prompts waits for them; 16 on NVIDIA's generations from Volta to Blackwell, "
          "32 on Blackwell Ultra",
          between(1, 1 << 12).faster());
    visit("memory_capacity", self.memory_capacity, "memory a program can see",
          positive.faster().for_no_time());
    visit("memory_bandwidth", self.memory_bandwidth, "peak off-chip bandwidth", positive.faster());
    visit(
        "l2_capacity", self.l2_capacity,
        "last-level cache; what a kernel leaves in it the next one finds there. Tiles of fitted "
        "matrix products go through it at the rate of the devices that were measured, whatever it "
        "holds",
        non_negative.faster());
    visit(
        "l2_bandwidth", self.l2_bandwidth,
        "peak last-level cache read bandwidth; below memory_bandwidth it counts as that. Tiles of "
        "fitted matrix products go through the cache at the rate of the devices that were "
        "measured, which follows multiprocessors and clock and not this",
        non_negative.faster());
    visit("shared_memory", self.shared_memory, "scratch memory of one multiprocessor",
          non_negative.neither().for_no_time().where(
              never<"kernels' times follow from it, which they do not yet">));
    visit("launch_latency", self.launch_latency, "time of the smallest kernel",
          non_negative.slower());
    visit("scale_up", self.scale_up, "link to devices of the same node or domain",
          any_value.for_links().where(without_cluster_scale_up));
    visit("scale_out", self.scale_out, "link to other nodes, per device",
          any_value.for_links().where(without_cluster_scale_out));
    visit("host_link", self.host_link, "link to the host", any_value);
    visit("peer_access", self.peer_access,
          "devices reach one another's memory over the bus; false: what they send goes through the "
          "host's memory, as with GeForce cards",
          any_value.for_links());
    visit(
        "array", self.array,
        "a grid of multipliers on each multiprocessor that does matrix products, for accelerators "
        "of one's own design",
        any_value.for_no_time());
    visit("idle_power", self.idle_power,
          "board power while a process holds the device and nothing runs",
          non_negative.neither().for_no_time());
    visit("power_limit", self.power_limit,
          "board power limit; clocks fall until it is met (power_limited_share)",
          non_negative_or("unlimited").faster().for_no_time());
    visit("busy_power", self.busy_power,
          "power that any running kernel draws, besides tensor_power and memory_power; this, "
          "idle_power and those two follow multiprocessors, peak and memory_bandwidth of a device "
          "made from another, unless they are stated",
          non_negative.slower().for_no_time());
    visit("tensor_power", self.tensor_power,
          "power that matrix units draw on top of busy_power at their peak; 0: not known, and "
          "nothing slows down",
          non_negative.slower().for_no_time());
    visit(
        "memory_power", self.memory_power,
        "power that memory, and the way to it through the chip, draws on top of busy_power at its "
        "peak bandwidth",
        non_negative.slower().for_no_time());
    visit("energy_scale", self.energy_scale,
          "what the processor draws for the same work over what the powers of the device's file "
          "say: 0.7 in a process that needs 30% less, 0.81 at 0.9 of the voltage",
          Range{.low = 1e-6, .high = 1e6, .in_key = false, .raising = Raising::never_faster}
              .for_no_time());
    visit("power_assumed", self.power_assumed,
          "nobody measured what this processor draws: its powers are shares of power_limit, as "
          "another one has them, and so is what the limit leaves it",
          Range{.in_key = false}.for_no_time());
    visit("rated_powers", self.rated_powers,
          "powers of the device's file, which those of an altered device follow",
          any_value.for_no_time());
    visit("power_spread", self.power_spread,
          "how far devices of this kind differ in what they draw for the same work: deviation over "
          "mean; a training job waits for the one that its power limit slows down most",
          between(0, 0.5).slower().for_links().where(while_training));
    visit("rent", self.rent, "on-demand rent of one device; unknown: there are no prices",
          non_negative_or("unknown").neither().for_no_time());
    visit("rent_assumed", self.rent_assumed,
          "nobody lists this rent: it is an estimate, as the device's file says",
          Range{.in_key = false}.for_no_time());
    visit("purchase", self.purchase, "street price of one device",
          non_negative.neither().for_no_time().where(
              never<"prices follow from purchases, which they do not yet">));
  }

  // A spec file states its peaks for its own clock and multiprocessors unless it says otherwise.
  void complete() {
    if (rated_multiprocessors == 0) rated_multiprocessors = multiprocessors;
    if (rated_clock.value == 0) rated_clock = clock;
  }

  // A whole spec: what is made from it draws what follows from its powers.
  void rate() {
    follow_rated_powers(*this);
    record_powers(*this);
  }

  // Parts that take tiles of work side by side: one where nobody says how many there are, so that no work waits for a turn.
  double processors() const { return double(std::max<std::int64_t>(1, multiprocessors)); }

  // How much faster or slower the on-chip parts run than the datasheet's figures.
  double on_chip_scale() const { return rated_clock.value > 0 ? clock / rated_clock : 1; }

  bool operator==(const Device&) const = default;
};

// Dense peak of products in a format at the device's present clock and size.
FlopsPerSecond matrix_peak(const Device& device, Dtype dtype);

// Of a device that was made from another: takes the rates that it `states` for those at its own clock and size, and keeps what the others
// come to there. Nothing changes, and false, where it states none, or says itself which clock or size they are for.
bool hold_stated_rates(Device& device, const std::function<bool(std::string_view name)>& states);

// What the grids of a device of one's own do, each of their multipliers one product and sum a clock; where the device states no peak at all,
// that is its peak in every format.
FlopsPerSecond grid_peak(const Device& device);

// Whether products in a format are done by matrix units: in fp32 many devices have their vector units alone.
bool on_matrix_units(const Device& device, Dtype dtype);

}  // namespace engine
