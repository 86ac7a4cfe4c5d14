#include "engine/base/many_draws.h"

#if defined(__SSE2__)
#include <emmintrin.h>

#include <array>
#endif

namespace engine {
namespace {

void draw_one(std::uint64_t seed, Stream stream, Draw& draw) {
  draw.u = uniform(mixed_seed(seed, draw.owner), stream, draw.n);
}

#if defined(__SSE2__)

// As in `random.cc`; below 2^53, so that it may be taken for a signed number.
double open_interval(std::uint64_t bits) {
  return (double(std::int64_t(bits >> 11)) + 0.5) * 0x1p-53;
}

// The ten rounds of Philox4x32 for two numbers side by side, each word of either in the lower half of 64 bits: what is
// above does not count.
void draw_two(std::uint64_t seed, Stream stream, Draw& one, Draw& other) {
  const __m128i first = _mm_set1_epi64x(0xD2511F53), second = _mm_set1_epi64x(0xCD9E8D57);
  const __m128i rise0 = _mm_set1_epi64x(0x9E3779B9), rise1 = _mm_set1_epi64x(0xBB67AE85);
  __m128i c0 = _mm_set_epi64x(std::int64_t(other.n), std::int64_t(one.n));
  __m128i c1 = _mm_srli_epi64(c0, 32);
  __m128i c2 = _mm_set1_epi64x(static_cast<std::uint32_t>(stream));
  __m128i c3 = _mm_setzero_si128();
  __m128i key0 = _mm_set_epi64x(std::int64_t(mixed_seed(seed, other.owner)),
                                std::int64_t(mixed_seed(seed, one.owner)));
  __m128i key1 = _mm_srli_epi64(key0, 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const __m128i of0 = _mm_mul_epu32(c0, first), of2 = _mm_mul_epu32(c2, second);
    c0 = _mm_xor_si128(_mm_xor_si128(_mm_srli_epi64(of2, 32), c1), key0);
    c2 = _mm_xor_si128(_mm_xor_si128(_mm_srli_epi64(of0, 32), c3), key1);
    c1 = of2;
    c3 = of0;
    key0 = _mm_add_epi64(key0, rise0);
    key1 = _mm_add_epi64(key1, rise1);
  }
  const __m128i low = _mm_srli_epi64(_mm_slli_epi64(c0, 32), 32);
  std::array<std::uint64_t, 2> bits{};
  _mm_storeu_si128(reinterpret_cast<__m128i*>(bits.data()),
                   _mm_or_si128(_mm_slli_epi64(c1, 32), low));
  one.u = open_interval(bits[0]);
  other.u = open_interval(bits[1]);
}

#else

void draw_two(std::uint64_t seed, Stream stream, Draw& one, Draw& other) {
  draw_one(seed, stream, one);
  draw_one(seed, stream, other);
}

#endif

}  // namespace

void draw(std::uint64_t seed, Stream stream, std::span<Draw> draws) {
  for (std::size_t i = 0; i + 1 < draws.size(); i += 2) {
    draw_two(seed, stream, draws[i], draws[i + 1]);
  }
  if (draws.size() % 2 == 1) draw_one(seed, stream, draws.back());
}

}  // namespace engine
