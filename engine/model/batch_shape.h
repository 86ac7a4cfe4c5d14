// What one step works on, as the sums its kernels depend on: any mix of prompt chunks and decodes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace engine {

struct BatchShape {
  std::int64_t prefill_sequences = 0;
  std::int64_t prefill_tokens = 0;  // new prompt tokens of all chunks
  double prefill_pairs = 0;         // query-key pairs under the causal mask
  double prefill_kv_tokens = 0;     // keys each chunk sees, summed: cached and new
  double prefill_window_pairs = 0;  // the same two in layers with a sliding window
  double prefill_window_kv_tokens = 0;
  std::int64_t decode_sequences = 0;
  std::int64_t decode_queries = 1;  // new tokens of each: more than one where some are verified
  double decode_kv_tokens = 0;      // keys the first of them attends to, summed over sequences
  double decode_window_kv_tokens = 0;
  // Keys of the longest of them; where less than the mean: all are alike.
  double decode_longest = 0;
  std::int64_t sampled = 0;   // tokens whose successor is chosen in this step
  std::int64_t padding = 0;   // rows added to reach a captured batch size
  std::int64_t adapters = 0;  // different low-rank adapters among the sequences; 0: none has one
  // That meet at shared experts, of all replicas; 0: each of them brings as many as this one.
  std::int64_t expert_tokens = 0;

  std::int64_t decode_tokens() const { return decode_sequences * decode_queries; }
  std::int64_t tokens() const { return prefill_tokens + decode_tokens(); }
  // Keys beyond those of a first query that the last queries of all decodes see.
  double later_keys() const { return double(decode_sequences * (decode_queries - 1)); }
};

// Query-key pairs of `query` new tokens after `cached` ones, each token seeing at most `window`.
constexpr double causal_pairs(double query, double cached, double window) {
  const double all = query * cached + query * (query + 1) / 2;
  if (window <= 0 || cached + query <= window) return all;
  // Tokens up to position `window` see everything before them, the rest see `window`.
  const double growing = std::clamp(window - cached, 0.0, query);
  return growing * cached + growing * (growing + 1) / 2 + (query - growing) * window;
}

// Adds `sequences` equal prompt chunks; `window` is the model's (0: none).
constexpr void add_prefill(BatchShape& batch, std::int64_t sequences, std::int64_t query,
                           std::int64_t cached, std::int64_t window) {
  const double count = double(sequences);
  const double keys = double(query + cached);
  const double kept = window > 0 ? std::min(keys, double(window + query - 1)) : keys;
  batch.prefill_sequences += sequences;
  batch.prefill_tokens += sequences * query;
  const double pairs = causal_pairs(double(query), double(cached), 0);
  batch.prefill_pairs += count * pairs;
  batch.prefill_kv_tokens += count * keys;
  batch.prefill_window_pairs +=
      count * (window > 0 ? causal_pairs(double(query), double(cached), double(window)) : pairs);
  batch.prefill_window_kv_tokens += count * kept;
}

// Adds `sequences` images of so many tokens, each of which attends to all tokens of its image.
constexpr void add_images(BatchShape& batch, std::int64_t sequences, std::int64_t tokens) {
  const double all = double(sequences) * double(tokens);
  batch.prefill_sequences += sequences;
  batch.prefill_tokens += sequences * tokens;
  batch.prefill_pairs += all * double(tokens);
  batch.prefill_window_pairs += all * double(tokens);
  batch.prefill_kv_tokens += all;
  batch.prefill_window_kv_tokens += all;
}

// Adds `sequences` decodes that attend to `context` tokens each.
constexpr void add_decode(BatchShape& batch, std::int64_t sequences, std::int64_t context,
                          std::int64_t window) {
  const double kept = double(window > 0 ? std::min(context, window) : context);
  batch.decode_sequences += sequences;
  batch.decode_kv_tokens += double(sequences) * double(context);
  batch.decode_window_kv_tokens += double(sequences) * kept;
  batch.decode_longest = std::max(batch.decode_longest, double(context));
}

// Keys by which the longest decode outlasts the others of its kernel: where that reads the prompts,
// too, also those, whose last rows see all their keys.
constexpr double decode_overhang(const BatchShape& batch, bool beside_prompts) {
  double others = batch.decode_kv_tokens / double(batch.decode_sequences);
  if (beside_prompts) {
    others = std::max(others, batch.prefill_kv_tokens / double(batch.prefill_sequences));
  }
  return std::max(0.0, batch.decode_longest - others);
}

}  // namespace engine
