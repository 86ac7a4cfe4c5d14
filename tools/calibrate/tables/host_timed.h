// Kernels of a table whose rows timed the host that called them, not the device: such rows say how long
// one Python call takes, and no step that runs from a graph pays that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/hardware/device.h"
#include "tools/calibrate/tables/kernel_table.h"

namespace tools {

// What one implementation computes: rows that share a form, nearly.
struct KernelKind {
  std::uint32_t impl = 0;  // into KernelTable::impls
  engine::Family family = engine::Family::gemm;
  Format dtype = Format::bf16;
  Format kv_dtype = Format::bf16;
  auto operator<=>(const KernelKind&) const = default;
};
KernelKind kind_of(const KernelRecord& record);

struct HostTimed {
  KernelKind kind;
  std::size_t rows = 0;  // all of the kernel's
  double seconds = 0;    // what its short calls take, whatever their shape
  double work = 0;       // how many times the longest roofline among those is the shortest
  double slower = 0;     // than the fastest kernel for the same sizes, their median
};

// The mark: a kernel's shortest calls take the same time although their work differs by more than ten
// times, and other kernels do calls of the same sizes, in whatever format, several times faster on the
// same device. A kernel that nobody else can be compared with is believed, and so are collectives.
std::vector<HostTimed> host_timed(const KernelTable& table, const engine::Device& device);

bool is_host_timed(const std::vector<HostTimed>& kernels, const KernelRecord& record);

// A sentence for each: how many rows, and why.
std::vector<std::string> remarks_on(const std::vector<HostTimed>& kernels,
                                    const KernelTable& table);

}  // namespace tools
