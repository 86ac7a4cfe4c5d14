#include "engine/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace engine {
namespace {

constexpr std::uint64_t kNoPoint = ~std::uint64_t{0};
thread_local std::uint64_t current_point = kNoPoint;

}  // namespace

CurrentPoint::CurrentPoint(std::uint64_t index) { current_point = index; }
CurrentPoint::~CurrentPoint() { current_point = kNoPoint; }

void check_failed(std::string_view why, std::source_location where) {
  std::fprintf(stderr, "llmsweep: internal error at %s:%u: %.*s\n", where.file_name(),
               unsigned(where.line()), int(why.size()), why.data());
  if (current_point != kNoPoint) {
    std::fprintf(stderr,
                 "  while evaluating point %llu; 'llmsweep explain SPEC --point %llu' replays it\n",
                 static_cast<unsigned long long>(current_point),
                 static_cast<unsigned long long>(current_point));
  }
  std::abort();
}

}  // namespace engine
