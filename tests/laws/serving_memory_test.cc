// What a simulation allocates: nothing in its loop once its memory has grown, and memory that follows
// the requests inside, not the requests in all.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "engine/evaluate.h"
#include "tests/support/serving_toys.h"

namespace {

thread_local bool counting = false;
thread_local std::int64_t allocations = 0;
thread_local std::int64_t bytes = 0;

[[maybe_unused]] void* counted(std::size_t size) {
  if (counting) {
    ++allocations;
    bytes += std::int64_t(size);
  }
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// The whole test program allocates through these; only what a test asks for is counted. Sanitizers keep
// theirs, which know more of what is freed by whom.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCounts = false;
#else
constexpr bool kCounts = true;
void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace engine {
namespace {

struct Allocated {
  std::int64_t count = 0;
  std::int64_t bytes = 0;
};

Allocated allocated_by(const Scenario& scenario, Outcome& outcome, Scratch& scratch) {
  const Resources none;
  WorkMeter work;
  allocations = bytes = 0;
  counting = true;
  evaluate_into(scenario, none, outcome, work, scratch);
  counting = false;
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return {allocations, bytes};
}

Scenario busy(PolicyName policy, std::int64_t requests) {
  Scenario scenario = toys::served(policy);
  scenario.serving.max_num_seqs = 16;
  scenario.serving.kv_blocks = 80;  // tight: some are preempted
  scenario.serving.prefix_caching = true;
  scenario.load.arrivals = ArrivalKind::poisson;
  scenario.load.trace.clear();
  scenario.load.rate = RequestsPerSecond{100};
  scenario.load.requests = requests;
  scenario.load.lengths.distribution = LengthKind::uniform;
  scenario.load.lengths.prompt = 12;
  scenario.load.lengths.output = 8;
  scenario.load.lengths.prompt_cv = scenario.load.lengths.output_cv = 0.3;
  scenario.load.shared_prefix = 8;
  scenario.load.prefix_groups = 3;
  scenario.output.requests = false;
  return scenario;
}

TEST(ServingMemory, TheLoopAllocatesNothing) {
  if (!kCounts) GTEST_SKIP() << "the sanitizer has the allocator";
  for (const PolicyEntry& entry : kPolicies) {
    const auto policy = static_cast<PolicyName>(&entry - kPolicies.data());
    Outcome outcome;
    Scratch scratch;
    allocated_by(busy(policy, 4000), outcome, scratch);  // what there is grows once
    const Allocated few = allocated_by(busy(policy, 1000), outcome, scratch);
    const Allocated many = allocated_by(busy(policy, 4000), outcome, scratch);
    // The report has as many rows as there are kinds of steps, which a longer run may have more of.
    EXPECT_NEAR(double(few.count), double(many.count), 4) << entry.name;
    EXPECT_LT(many.count, 64) << entry.name;
  }
}

TEST(ServingMemory, MemoryFollowsTheRequestsInside) {
  if (!kCounts) GTEST_SKIP() << "the sanitizer has the allocator";
  // Twice the requests, all percentiles in histograms: what a first point allocates hardly grows.
  const auto fresh = [](std::int64_t requests) {
    Outcome outcome;
    Scratch scratch;
    return allocated_by(busy(policy_named("vllm_v1"), requests), outcome, scratch).bytes;
  };
  const std::int64_t once = fresh(200'000), twice = fresh(400'000);
  EXPECT_LT(double(twice), 1.05 * double(once));
}

}  // namespace
}  // namespace engine
