#include "tools/calibrate/tables/network_calls.h"

#include <functional>
#include <string_view>
#include <utility>

#include "sweep/language/sweep_spec.h"
#include "tools/calibrate/tables/table_row.h"

namespace tools {
namespace {

namespace fs = std::filesystem;
using engine::Family;
using Kernels = engine::ExpertExchange::Kernels;

// The A100 nodes of the profile reach 7.8 GB/s from device to device: a third of the adapters of a DGX
// A100. The profile does not name its network; of the library's links this is the likeliest.
constexpr const char* kA100Network = "roce-100";
// The V100 nodes reach 1.19 GB/s.
constexpr const char* kV100Network = "ethernet-10";

// Eight ranks a node take longer than four do, on the same message: 17.5 GB/s a node instead of 22.4.
// Something other than a device's adapter bounds them, so they are a check and not fitted.
constexpr double kMostFittedPerNode = 4;

constexpr double kExchangeRanks = 8;  // all rows are of one node

// Rows of one device, from several files.
class Rows {
 public:
  void add(const KernelCall& call, double seconds) {
    table_.records.push_back({.call = call, .seconds = seconds});
  }
  DeviceCalls of(engine::Device device) const {
    return {std::move(device), gather_calls(table_, {}).value().calls};
  }

 private:
  KernelTable table_{.impls = {"profile"}};
};

KernelCall message(Family family, double bytes, double ranks, double nodes) {
  KernelCall call{.family = family, .dtype = Format::fp16, .library = engine::Library::general};
  call[Size::bytes] = bytes;
  call[Size::ranks] = ranks;
  call[Size::nodes] = nodes;
  return call;
}

using TakeRow = std::function<void(const TableRow&)>;

// Reads tables one after another; mistakes of a file are kept.
class Files {
 public:
  explicit Files(fs::path data) : data_(std::move(data)) {}

  void each_row(const fs::path& file, const TakeRow& take) {
    const auto table = results::read_table(data_ / file);
    if (!table) {
      mistakes.insert(mistakes.end(), table.mistakes().begin(), table.mistakes().end());
      return;
    }
    for (std::size_t row = 0; row < table->rows(); ++row) take(TableRow(*table, row));
  }

  // Send-receive and all-reduce of a network profile, milliseconds.
  void profile(const fs::path& file, Family family,
               const std::function<bool(double, double)>& wanted, Rows& rows) {
    const std::string time = "time_stats." + std::string(engine::name_of(family)) + ".median";
    each_row(file, [&](const TableRow& row) {
      const double ranks = row.number("num_workers"), per_node = row.number("devices_per_node");
      if (row.count("rank") != 0 || !wanted(ranks, per_node)) return;
      rows.add(message(family, row.number("size"), ranks, ranks / per_node),
               row.number(time) * 1e-3);
    });
  }

  // Runs of nccl-tests, microseconds; those of less than a KiB have lost their size.
  void tests(const fs::path& file, Family family, const std::function<bool(double, double)>& wanted,
             Rows& rows) {
    each_row(file, [&](const TableRow& row) {
      const double nodes = row.number("num_nodes"), per_node = row.number("num_gpus_per_node");
      const double bytes = row.number("size(kb)") * 1024;
      if (bytes <= 0 || !wanted(nodes * per_node, per_node)) return;
      rows.add(message(family, bytes, nodes * per_node, nodes), row.number("time(us)") * 1e-6);
    });
  }

  // Dispatch sends eight bits (its published rate says so), combine sixteen; microseconds.
  void exchange(const std::string& device, Kernels kernels, Rows& rows) {
    const bool quick = kernels == Kernels::low_latency;
    const fs::path file =
        fs::path("expert_parallel_deepep") /
        (device + "__wideep_deepep_" + (quick ? "ll" : "normal") + "__sglang_0.5.12.csv.gz");
    each_row(file, [&](const TableRow& row) {
      for (const Family family : {Family::expert_dispatch, Family::expert_combine}) {
        const bool dispatch = family == Family::expert_dispatch;
        const std::string way = dispatch ? "dispatch" : "combine";
        KernelCall call{
            .family = family, .dtype = dispatch ? Format::fp8 : Format::bf16, .exchange = kernels};
        call[Size::tokens] = row.number("num_token");
        call[Size::hidden] = row.number("hidden_size");
        call[Size::topk] = row.number("num_topk");
        call[Size::experts] = row.number("num_experts");
        call[Size::ranks] = kExchangeRanks;
        call[Size::sms] = quick ? 0 : row.number(way + "_sms");
        rows.add(call, row.number(way + (quick ? "_avg_t_us" : "_transmit_us")) * 1e-6);
      }
    });
  }

  std::vector<engine::Mistake> mistakes;

 private:
  fs::path data_;
};

bool in_node(double ranks, double per_node) { return ranks == per_node; }
bool fitted_between(double ranks, double per_node) {
  return ranks > per_node && per_node <= kMostFittedPerNode;
}
bool too_many_a_node(double ranks, double per_node) {
  return ranks > per_node && per_node > kMostFittedPerNode;
}
bool alone_on_node(double ranks, double per_node) { return ranks > 1 && per_node == 1; }

}  // namespace

engine::Result<NetworkCalls> network_calls(const fs::path& data, const sweep::Library& library) {
  Files files(data);
  const auto device = [&](const char* name, const char* network = nullptr) {
    engine::Device found;
    if (const auto spec = sweep::read_named(library, "devices", name)) {
      found = spec->scenario.device;
    } else {
      files.mistakes.insert(files.mistakes.end(), spec.mistakes().begin(), spec.mistakes().end());
    }
    if (network == nullptr) return found;
    const auto link = sweep::read_named(library, "links", network);
    // A link read on its own fills the first place that takes one.
    if (link) found.scale_out = link->scenario.device.scale_up;
    if (!link)
      files.mistakes.insert(files.mistakes.end(), link.mistakes().begin(), link.mistakes().end());
    return found;
  };
  const fs::path profiles = "vidur_profiles/network", tests = "apex_nccl";

  Rows a100, h100, b200, a100_full;
  files.profile(profiles / "a100_dgx/send_recv.csv", Family::send_recv, in_node, a100);
  files.profile(profiles / "a100_dgx/send_recv.csv", Family::send_recv, fitted_between, a100);
  files.profile(profiles / "a100_dgx/all_reduce.csv.gz", Family::all_reduce, fitted_between, a100);
  files.profile(profiles / "a100_dgx/all_reduce.csv.gz", Family::all_reduce, too_many_a_node,
                a100_full);
  files.profile(profiles / "h100_dgx/send_recv.csv", Family::send_recv, in_node, h100);
  files.profile(profiles / "h100_dgx/send_recv.csv", Family::send_recv, fitted_between, h100);
  files.tests(tests / "H100-SXM-80GB/sendrecv.csv", Family::send_recv, in_node, h100);
  for (const Kernels kernels : {Kernels::low_latency, Kernels::normal}) {
    files.exchange("h100_sxm", kernels, h100);
    files.exchange("b200_sxm", kernels, b200);
  }
  Rows v100;
  for (const auto& [file, family] : {std::pair{"all_reduce.csv", Family::all_reduce},
                                     {"all_gather.csv", Family::all_gather},
                                     {"reduce_scatter.csv", Family::reduce_scatter},
                                     {"alltoall.csv", Family::all_to_all},
                                     {"sendrecv.csv", Family::send_recv}}) {
    files.tests(tests / "V100-PCIE-16GB" / file, family, alone_on_node, v100);
  }

  NetworkCalls calls;
  calls.fitted.push_back(a100.of(device("a100-80gb-sxm", kA100Network)));
  calls.fitted.push_back(h100.of(device("h100-sxm")));
  calls.fitted.push_back(b200.of(device("b200-sxm")));
  calls.checks.push_back(
      {"two A100 nodes, all eight devices of each (not fitted: bound by the node)",
       a100_full.of(device("a100-80gb-sxm", kA100Network))});
  calls.checks.push_back(
      {"V100 nodes over 10 Gb/s Ethernet, one device of each (not fitted: sockets)",
       v100.of(device("v100-pcie-16gb", kV100Network))});
  if (!files.mistakes.empty()) return std::move(files.mistakes);
  return calls;
}

}  // namespace tools
