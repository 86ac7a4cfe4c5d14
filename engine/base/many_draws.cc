#include "engine/base/many_draws.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace engine {
namespace {

struct Draws {
  Stream stream{};
  std::span<const std::uint64_t> seeds, n;
  std::span<double> u;
};

#if defined(__SSE2__)

// As in `random.cc`, of two words: a number below 2^53 is the sum of its halves, each written behind the exponent at which
// its last bit counts what it should. No sum here is rounded but the last, as there.
__m128d open_interval(__m128i bits) {
  const __m128i number = _mm_srli_epi64(bits, 11), above = _mm_srli_epi64(number, 32);
  const __m128i below = _mm_srli_epi64(_mm_slli_epi64(number, 32), 32);
  const __m128d ones = _mm_set1_pd(0x1p52), many = _mm_set1_pd(0x1p84);
  const __m128d low =
      _mm_sub_pd(_mm_castsi128_pd(_mm_or_si128(below, _mm_castpd_si128(ones))), ones);
  const __m128d high =
      _mm_sub_pd(_mm_castsi128_pd(_mm_or_si128(above, _mm_castpd_si128(many))), many);
  const __m128d sum = _mm_add_pd(_mm_add_pd(high, low), _mm_set1_pd(0.5));
  return _mm_mul_pd(sum, _mm_set1_pd(0x1p-53));
}

// The ten rounds of Philox4x32 for two numbers side by side, each word of either in the lower half of 64 bits: what is
// above does not count.
void draw_two(const Draws& draws, std::size_t at) {
  const __m128i first = _mm_set1_epi64x(0xD2511F53), second = _mm_set1_epi64x(0xCD9E8D57);
  const __m128i rise0 = _mm_set1_epi64x(0x9E3779B9), rise1 = _mm_set1_epi64x(0xBB67AE85);
  __m128i c0 = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&draws.n[at]));
  __m128i c1 = _mm_srli_epi64(c0, 32);
  __m128i c2 = _mm_set1_epi64x(static_cast<std::uint32_t>(draws.stream));
  __m128i c3 = _mm_setzero_si128();
  __m128i key0 = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&draws.seeds[at]));
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
  _mm_storeu_pd(&draws.u[at], open_interval(_mm_or_si128(_mm_slli_epi64(c1, 32), low)));
}

[[gnu::target("avx2")]] inline __m256d open_interval_of_four(__m256i bits) {
  const __m256i number = _mm256_srli_epi64(bits, 11), above = _mm256_srli_epi64(number, 32);
  const __m256i below = _mm256_blend_epi32(number, _mm256_setzero_si256(), 0xaa);
  const __m256d ones = _mm256_set1_pd(0x1p52), many = _mm256_set1_pd(0x1p84);
  const __m256d low = _mm256_sub_pd(_mm256_or_pd(_mm256_castsi256_pd(below), ones), ones);
  const __m256d high = _mm256_sub_pd(_mm256_or_pd(_mm256_castsi256_pd(above), many), many);
  const __m256d sum = _mm256_add_pd(_mm256_add_pd(high, low), _mm256_set1_pd(0.5));
  return _mm256_mul_pd(sum, _mm256_set1_pd(0x1p-53));
}

// The same for `kFours` times four, on processors that can: while one product is under way the next one begins.
// Draws from `at` on as far as they go, and moves it there.
template <std::size_t kFours>
[[gnu::target("avx2")]] void draw_fours(const Draws& draws, std::size_t& at) {
  const __m256i first = _mm256_set1_epi64x(0xD2511F53), second = _mm256_set1_epi64x(0xCD9E8D57);
  const __m256i rise0 = _mm256_set1_epi64x(0x9E3779B9), rise1 = _mm256_set1_epi64x(0xBB67AE85);
  for (; at + 4 * kFours <= draws.u.size(); at += 4 * kFours) {
    __m256i c0[kFours], c1[kFours], c2[kFours], c3[kFours], key0[kFours], key1[kFours];
    for (std::size_t k = 0; k < kFours; ++k) {
      c0[k] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(&draws.n[at + 4 * k]));
      c1[k] = _mm256_srli_epi64(c0[k], 32);
      c2[k] = _mm256_set1_epi64x(static_cast<std::uint32_t>(draws.stream));
      c3[k] = _mm256_setzero_si256();
      key0[k] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(&draws.seeds[at + 4 * k]));
      key1[k] = _mm256_srli_epi64(key0[k], 32);
    }
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      for (std::size_t k = 0; k < kFours; ++k) {
        const __m256i of0 = _mm256_mul_epu32(c0[k], first), of2 = _mm256_mul_epu32(c2[k], second);
        c0[k] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(of2, 32), c1[k]), key0[k]);
        c2[k] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(of0, 32), c3[k]), key1[k]);
        c1[k] = of2;
        c3[k] = of0;
        key0[k] = _mm256_add_epi64(key0[k], rise0);
        key1[k] = _mm256_add_epi64(key1[k], rise1);
      }
    }
    for (std::size_t k = 0; k < kFours; ++k) {
      const __m256i bits = _mm256_blend_epi32(c0[k], _mm256_slli_epi64(c1[k], 32), 0xaa);
      _mm256_storeu_pd(&draws.u[at + 4 * k], open_interval_of_four(bits));
    }
  }
}

// Together as far as they go. Returns how many.
std::size_t draw_together(const Draws& draws) {
  const std::size_t size = draws.u.size();
  std::size_t at = 0;
  if (__builtin_cpu_supports("avx2")) {
    draw_fours<2>(draws, at);
    draw_fours<1>(draws, at);
  }
  for (; at + 2 <= size; at += 2) draw_two(draws, at);
  return at;
}

#else

std::size_t draw_together(const Draws&) { return 0; }

#endif

}  // namespace

void draw(Stream stream, std::span<const std::uint64_t> seeds, std::span<const std::uint64_t> n,
          std::span<double> u) {
  const Draws draws{.stream = stream, .seeds = seeds, .n = n, .u = u};
  for (std::size_t i = draw_together(draws); i < u.size(); ++i) {
    u[i] = uniform(seeds[i], stream, n[i]);
  }
}

}  // namespace engine
