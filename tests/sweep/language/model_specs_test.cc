// Every shipped model has the size that its makers publish, which the first lines of its file say.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <string>

#include "engine/model/model_spec.h"
#include "tests/support/paths.h"
#include "tests/support/shipped.h"

namespace sweep {
namespace {

// A printed number, and how far the number that was rounded to it may lie away.
struct Printed {
  double value = 0;
  double rounding = 0;
};

Printed printed(const std::string& digits, const std::string& unit) {
  const double scale = unit == "M" ? 1e6 : unit == "B" ? 1e9 : 1e12;
  const std::size_t point = digits.find('.');
  double last = scale;
  for (std::size_t i = point; i != std::string::npos && i + 1 < digits.size(); ++i) last /= 10;
  return {std::stod(digits) * scale, last / 2};
}

struct Published {
  Printed total;
  std::optional<Printed> active;
};

std::optional<Published> published_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string text(std::istreambuf_iterator<char>(in), {});
  // Comments go on over lines.
  text = std::regex_replace(text, std::regex("\n# "), " ");
  const std::regex said(
      R"(Published size: ([0-9.]+) ([MBT]) parameters[^.,;]*(, ([0-9.]+) ([MBT]) active)?)");
  std::smatch found;
  if (!std::regex_search(text, found, said)) return std::nullopt;
  Published published{.total = printed(found[1], found[2]), .active = std::nullopt};
  if (found[3].matched) published.active = printed(found[4], found[5]);
  return published;
}

// Biases of other projections, norms of heads, encoders of images and layers that propose tokens are no fields of a model.
double beside(const std::string& name) {
  // GPT-3's own table and Kimi Linear's name round; Kimi K2, Llama 4 Scout and Qwen3.5 count what is not in the decoder.
  const char* const rounded[] = {"gpt3-2.7b", "gpt3-13b",      "kimi-linear-48b-a3b",
                                 "kimi-k2",   "llama-4-scout", "qwen3.5-27b"};
  for (const char* one : rounded) {
    if (name == one) return 0.02;
  }
  return 0.01;
}

TEST(ModelSpecs, HaveThePublishedSize) {
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(paths::specs("models"))) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string name = entry.path().stem().string();
    const auto published = published_in(entry.path());
    ASSERT_TRUE(published) << name << ": its first lines say no published size";
    const engine::ModelSpec model = toys::shipped("models", name).model;
    const double total = engine::parameter_counts(model).total();
    EXPECT_NEAR(total, published->total.value,
                published->total.rounding + beside(name) * published->total.value)
        << name;
    if (published->active) {
      // Makers leave out the input's table, or both, or neither.
      const engine::ParameterCounts counts = engine::parameter_counts(model);
      const double active = engine::active_parameters(model);
      const double least = active - counts.embedding - counts.output;
      const double slack = published->active->rounding + 0.03 * published->active->value;
      EXPECT_LE(least - slack, published->active->value) << name;
      EXPECT_GE(active + slack, published->active->value) << name;
    }
    ++seen;
  }
  EXPECT_GT(seen, 100);
}

// Engines start from a repository of the Hugging Face hub. These shapes have none, for one reason each.
const std::map<std::string, std::string> kWithoutRepository = [] {
  std::map<std::string, std::string> reasons;
  for (const char* name : {"gpt3-2.7b", "gpt3-6.7b", "gpt3-13b", "gpt3-175b"}) {
    reasons[name] = "OpenAI published no weights";
  }
  for (const char* name :
       {"megatron-gpt-22b", "megatron-gpt-175b", "megatron-gpt-530b", "megatron-gpt-1t"}) {
    reasons[name] = "a row of a paper about training, whose weights were not published";
  }
  for (const char* name : {"mpt-125m", "mpt-350m", "mpt-760m", "mpt-1b", "mpt-3b", "mpt-7b",
                           "mpt-13b", "mpt-30b", "mpt-70b"}) {
    reasons[name] = "the shape of a training benchmark; published MPT has ALiBi for positions";
  }
  for (const char* name : {"dit-xl-2", "resnet-50", "mobilenet-v2"}) {
    reasons[name] = "no serving engine for text starts it";
  }
  return reasons;
}();

TEST(ModelSpecs, HaveARepositoryOrAReason) {
  const std::regex repository("[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*");
  std::map<std::string, std::string> named;
  for (const std::string& name : Library({paths::specs()}).names("models")) {
    const std::string hub = toys::shipped("models", name).model.hub;
    EXPECT_EQ(hub.empty(), kWithoutRepository.contains(name)) << name << ": '" << hub << "'";
    if (hub.empty()) continue;
    EXPECT_TRUE(std::regex_match(hub, repository)) << hub;
    const auto [first, is_new] = named.emplace(hub, name);
    EXPECT_TRUE(is_new) << name << " and " << first->second << " are one model";
  }
}

}  // namespace
}  // namespace sweep
