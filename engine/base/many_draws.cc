#include "engine/base/many_draws.h"

#if defined(__SSE2__)
#include <immintrin.h>

#include <array>
#endif

namespace engine {
namespace {

void draw_one(std::uint64_t seed, Stream stream, Draws& draws, std::size_t at) {
  draws.u[at] = uniform(mixed_seed(seed, draws.owner[at]), stream, draws.n[at]);
}

#if defined(__SSE2__)

// As in `random.cc`; below 2^53, so that it may be taken for a signed number.
double open_interval(std::uint64_t bits) {
  return (double(std::int64_t(bits >> 11)) + 0.5) * 0x1p-53;
}

// The ten rounds of Philox4x32 for two numbers side by side, each word of either in the lower half of 64 bits: what is
// above does not count.
void draw_two(std::uint64_t seed, Stream stream, Draws& draws, std::size_t at) {
  const __m128i first = _mm_set1_epi64x(0xD2511F53), second = _mm_set1_epi64x(0xCD9E8D57);
  const __m128i rise0 = _mm_set1_epi64x(0x9E3779B9), rise1 = _mm_set1_epi64x(0xBB67AE85);
  __m128i c0 = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&draws.n[at]));
  __m128i c1 = _mm_srli_epi64(c0, 32);
  __m128i c2 = _mm_set1_epi64x(static_cast<std::uint32_t>(stream));
  __m128i c3 = _mm_setzero_si128();
  __m128i key0 = _mm_set_epi64x(std::int64_t(mixed_seed(seed, draws.owner[at + 1])),
                                std::int64_t(mixed_seed(seed, draws.owner[at])));
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
  for (std::size_t i = 0; i < bits.size(); ++i) draws.u[at + i] = open_interval(bits[i]);
}

// The same for `kFours` times four, on processors that can: while one product is under way the next one begins.
template <std::size_t kFours>
[[gnu::target("avx2")]] void draw_fours(std::uint64_t seed, Stream stream, Draws& draws,
                                        std::size_t at) {
  const __m256i first = _mm256_set1_epi64x(0xD2511F53), second = _mm256_set1_epi64x(0xCD9E8D57);
  const __m256i rise0 = _mm256_set1_epi64x(0x9E3779B9), rise1 = _mm256_set1_epi64x(0xBB67AE85);
  __m256i c0[kFours], c1[kFours], c2[kFours], c3[kFours], key0[kFours], key1[kFours];
  std::array<std::uint64_t, 4> words{};
  for (std::size_t k = 0; k < kFours; ++k) {
    c0[k] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(&draws.n[at + 4 * k]));
    c1[k] = _mm256_srli_epi64(c0[k], 32);
    c2[k] = _mm256_set1_epi64x(static_cast<std::uint32_t>(stream));
    c3[k] = _mm256_setzero_si256();
    for (std::size_t i = 0; i < 4; ++i) words[i] = mixed_seed(seed, draws.owner[at + 4 * k + i]);
    key0[k] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words.data()));
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
    const __m256i low = _mm256_srli_epi64(_mm256_slli_epi64(c0[k], 32), 32);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(words.data()),
                        _mm256_or_si256(_mm256_slli_epi64(c1[k], 32), low));
    for (std::size_t i = 0; i < 4; ++i) draws.u[at + 4 * k + i] = open_interval(words[i]);
  }
}

// Together as far as they go. Returns how many.
std::size_t draw_together(std::uint64_t seed, Stream stream, Draws& draws) {
  std::size_t at = 0;
  if (__builtin_cpu_supports("avx2")) {
    for (; at + 8 <= draws.size(); at += 8) draw_fours<2>(seed, stream, draws, at);
    for (; at + 4 <= draws.size(); at += 4) draw_fours<1>(seed, stream, draws, at);
  }
  for (; at + 2 <= draws.size(); at += 2) draw_two(seed, stream, draws, at);
  return at;
}

#else

std::size_t draw_together(std::uint64_t, Stream, Draws&) { return 0; }

#endif

}  // namespace

void draw(std::uint64_t seed, Stream stream, Draws& draws) {
  for (std::size_t i = draw_together(seed, stream, draws); i < draws.size(); ++i) {
    draw_one(seed, stream, draws, i);
  }
}

}  // namespace engine
