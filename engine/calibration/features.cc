#include "engine/calibration/features.h"

#include <array>

#include "engine/base/rounding.h"

namespace engine {
namespace {

class Features32 {
 public:
  void add(double value) { made.value[made.count++] = value; }
  // How much of whole units is paid for and not used: one where `amount` is whole.
  void add_fill(double amount) { add(whole_up(amount) / amount); }

  FeatureValues made;
};

void product(const Coordinates& shape, double processors, Features32& features) {
  struct Tile {
    double rows, columns;
  };
  constexpr std::array<Tile, 7> tiles{
      {{64, 64}, {64, 128}, {128, 128}, {128, 256}, {256, 128}, {192, 128}, {64, 256}}};
  const auto [m, n, k, groups, ragged, unused, none, rest] = shape.value;
  for (std::size_t i = 0; i < shape.count; ++i) features.add(shape.value[i]);
  for (const Tile& tile : tiles) {
    const double waves = groups * whole_up(m / tile.rows) * whole_up(n / tile.columns) / processors;
    features.add(waves);
    features.add_fill(waves);
  }
  for (const double rows : {16, 64, 128, 192, 256}) features.add_fill(m / rows);
  features.add_fill(n / 128);
  features.add(m * n * k / (n * k + m * k + m * n));  // arithmetic a byte
  features.add(groups * m * n * k);
  features.add(groups * n * k);
}

void prefill(const Coordinates& shape, double processors, Features32& features) {
  const auto [query, prefix, batch, heads, kv_heads, width, window, rest] = shape.value;
  for (std::size_t i = 0; i < shape.count; ++i) features.add(shape.value[i]);
  const double waves = batch * heads * whole_up(query / 128) / processors;
  features.add(waves);
  features.add_fill(waves);
  for (const double rows : {16, 64, 128}) features.add_fill(query / rows);
  if (prefix > 0) {
    features.add_fill(prefix / 128);
  } else {
    features.add(0);
  }
  features.add(batch * kv_heads);
  features.add(batch * heads);
  features.add(heads / kv_heads);
  features.add(batch * heads * query * (query / 2 + prefix) * width);
  features.add(prefix / query);
  features.add(query + prefix);
}

void decode(const Coordinates& shape, double processors, Features32& features) {
  const auto [context, batch, heads, kv_heads, width, window, unused, rest] = shape.value;
  for (std::size_t i = 0; i < shape.count; ++i) features.add(shape.value[i]);
  features.add(batch * kv_heads);
  features.add_fill(batch * kv_heads / processors);
  features.add(heads / kv_heads);
  features.add(batch * context);
  features.add(batch * kv_heads * context * width);
}

void experts(const Coordinates& shape, Features32& features) {
  const auto [tokens, hidden, inner, top_k, all, local, skew, rest] = shape.value;
  for (std::size_t i = 0; i < shape.count; ++i) features.add(shape.value[i]);
  features.add(tokens * top_k / all);  // rows an expert
  features.add(tokens * top_k * local / all);
  features.add(hidden * inner);
  features.add(hidden * inner * local);
  features.add(all / local);
  for (const double rows : {16, 64, 128}) features.add_fill(tokens * top_k / all / rows);
}

}  // namespace

FeatureValues features_of(Features which, const Coordinates& shape, double processors) {
  Features32 features;
  switch (which) {
    case Features::none:
      break;
    case Features::product:
      product(shape, processors, features);
      break;
    case Features::prefill:
      prefill(shape, processors, features);
      break;
    case Features::decode:
      decode(shape, processors, features);
      break;
    case Features::experts:
      experts(shape, features);
      break;
  }
  return features.made;
}

}  // namespace engine
