// Random kernel calls and devices, each a function of its number, and the ways a call can grow: what the
// laws of the kernel model are tried on.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/base/random.h"
#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/op.h"

namespace toys {

class Draw {
 public:
  explicit Draw(std::uint64_t n) : n_(n) {}
  double uniform(double low, double high) {
    return low + (high - low) * engine::uniform(11, engine::Stream::sampling, n_, lane_++);
  }
  double size(double low, double high) {
    return std::floor(low * std::pow(high / low, uniform(0, 1)) + 0.5);
  }
  template <class T, class... More>
  T pick(T first, More... more) {
    const std::array<T, 1 + sizeof...(more)> all{first, more...};
    return all[std::size_t(uniform(0, 1) * double(all.size()))];
  }

 private:
  std::uint64_t n_;
  std::uint32_t lane_ = 0;
};

engine::Device random_device(std::uint64_t n);

struct Call {
  engine::Family family = engine::Family::gemm;
  engine::Op op;
};

// A random call of any family but prompts, which grow in a way of their own.
Call random_call(std::uint64_t n);

// The parts of a random prompt, so that it can be built again a little larger.
struct Prompt {
  engine::AttentionPrefill heads;
  std::int64_t sequences;
  double query, cached;

  engine::Op op() const;
};
Prompt random_prompt(Draw& draw, engine::Family family);

// Every way the shape of an op can grow, by a factor; none may make a call faster.
using Growth = std::function<engine::Op(const engine::Op&, double)>;
std::vector<Growth> growths(const engine::Op& op);

}  // namespace toys
