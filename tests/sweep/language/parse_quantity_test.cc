#include "sweep/language/parse_quantity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/base/random.h"

namespace sweep {
namespace {

using engine::UnitOf;

double value_of(const char* text) {
  const auto parsed = parse_quantity(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return parsed ? parsed->value : NAN;
}

TEST(Quantity, PrefixesScaleToBaseUnits) {
  EXPECT_EQ(value_of("3.35 TB/s"), 3.35e12);
  EXPECT_EQ(value_of("80GB"), 80e9);
  EXPECT_EQ(value_of("80 GiB"), 80 * 1073741824.0);
  EXPECT_EQ(value_of("228 KiB"), 228 * 1024.0);
  EXPECT_EQ(value_of("64 kB"), 64e3);
  EXPECT_EQ(value_of("64 KB"), 64e3);
  EXPECT_EQ(value_of("2.4 us"), 2.4e-6);
  EXPECT_EQ(value_of("5 \u00b5s"), 5e-6);
  EXPECT_EQ(value_of("90 min"), 5400);
  EXPECT_EQ(value_of("2 d"), 172800);
  EXPECT_EQ(value_of("1.83 GHz"), 1.83e9);
  EXPECT_EQ(value_of("700 W"), 700);
  EXPECT_EQ(value_of("1_000 W"), 1000);
  EXPECT_EQ(value_of("1e3 W"), 1000);
}

TEST(Quantity, BitsAreEighthsOfBytes) {
  EXPECT_EQ(value_of("400 Gb/s"), 50e9);
  EXPECT_EQ(value_of("400 Gbit/s"), 50e9);
  EXPECT_EQ(value_of("400 Gbps"), 50e9);
  EXPECT_EQ(value_of("50 GB/s"), 50e9);
}

TEST(Quantity, ArithmeticRatesHaveManySpellings) {
  for (const char* text : {"989 TFLOP/s", "989 TFLOPS", "989 TOPS", "989 TOP/s"}) {
    EXPECT_EQ(value_of(text), 989e12) << text;
  }
}

TEST(Quantity, MoneyAndRates) {
  EXPECT_EQ(value_of("2.5 USD/h"), 2.5 / 3600);
  EXPECT_EQ(value_of("2.5 USD/hour"), 2.5 / 3600);
  EXPECT_EQ(value_of("$2.5/h"), 2.5 / 3600);
  EXPECT_EQ(value_of("$30000"), 30000);
  EXPECT_EQ(value_of("600 req/min"), 10);
}

TEST(Quantity, WhatIsNotAQuantityIsRefused) {
  for (const char* text : {"80", "GB", "80 XB", "eighty GB", "80 G", "", "1.2.3 GB", "80 gb",
                           "_8 B", "8_ B", "nan B", "inf s", "0x10 B", "80 GB GB", "1e999 B"}) {
    EXPECT_FALSE(parse_quantity(text).has_value()) << text;
  }
}

TEST(Quantity, WholeNumbersStayWhole) {
  EXPECT_EQ(parse_integer("64"), 64);
  EXPECT_EQ(parse_integer("1_000_000"), 1000000);
  EXPECT_EQ(parse_integer("1e6"), 1000000);
  EXPECT_EQ(parse_integer("-3"), -3);
  EXPECT_EQ(parse_integer("9223372036854775807"), INT64_MAX);
  for (const char* text : {"1.5", "2.0", "1e-1", "9223372036854775808", "4k", "", "--1", "1__0"}) {
    EXPECT_FALSE(parse_integer(text).has_value()) << text;
  }
}

TEST(Quantity, TextIsWhatAPersonWouldWrite) {
  EXPECT_EQ(format_quantity(3.35e12, UnitOf<engine::BytesPerSecond>::unit), "3.35 TB/s");
  EXPECT_EQ(format_quantity(80e9, UnitOf<engine::Bytes>::unit), "80 GB");
  EXPECT_EQ(format_quantity(80 * 0x1p30, UnitOf<engine::Bytes>::unit), "80 GiB");
  EXPECT_EQ(format_quantity(228 * 1024.0, UnitOf<engine::Bytes>::unit), "228 KiB");
  EXPECT_EQ(format_quantity(300e-6, UnitOf<engine::Seconds>::unit), "300 us");
  EXPECT_EQ(format_quantity(0, UnitOf<engine::Seconds>::unit), "0 s");
  EXPECT_EQ(format_quantity(1.5e9, UnitOf<engine::Hertz>::unit), "1.5 GHz");
  EXPECT_EQ(format_quantity(2.5 / 3600, UnitOf<engine::DollarsPerSecond>::unit), "2.5 USD/h");
  EXPECT_EQ(format_quantity(1978.9e12, UnitOf<engine::FlopsPerSecond>::unit), "1.9789 PFLOP/s");
  EXPECT_EQ(format_number(0.9), "0.9");
  EXPECT_EQ(format_number(1e20), "1e20");
}

// run.yaml writes every value as text: the text must bring back the very same bits.
TEST(Quantity, AnyValueReadsBackExactly) {
  const engine::Unit units[] = {UnitOf<engine::Seconds>::unit,
                                UnitOf<engine::Bytes>::unit,
                                UnitOf<engine::BytesPerSecond>::unit,
                                UnitOf<engine::FlopsPerSecond>::unit,
                                UnitOf<engine::Hertz>::unit,
                                UnitOf<engine::Watts>::unit,
                                UnitOf<engine::Dollars>::unit,
                                UnitOf<engine::DollarsPerSecond>::unit,
                                UnitOf<engine::RequestsPerSecond>::unit,
                                UnitOf<engine::TokensPerSecond>::unit,
                                UnitOf<engine::Joules>::unit,
                                UnitOf<engine::Flops>::unit};
  for (std::uint64_t i = 0; i < 20000; ++i) {
    // Any finite double, all exponents alike.
    std::uint64_t bits = engine::random_bits(7, engine::Stream::sampling, i) >> 1;
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    if (i % 2 == 0) value = std::pow(10, 24 * engine::uniform(8, engine::Stream::sampling, i) - 9);
    const engine::Unit& unit = units[i % std::size(units)];
    const std::string text = format_quantity(value, unit);
    const auto parsed = parse_quantity(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(parsed->value, value) << text;
    EXPECT_EQ(parsed->unit.symbol, unit.symbol) << text;
    EXPECT_EQ(parse_number(format_number(value)), value);
  }
}

}  // namespace
}  // namespace sweep
