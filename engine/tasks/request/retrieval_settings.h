// What is looked up for a request before its prompt is there: passages of text, by the vectors nearest to its question.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/units.h"
#include "engine/hardware/dtype.h"

namespace engine {

enum class VectorIndex : std::uint8_t {
  exact,  // the question meets every vector
  ivf,  // vectors lie in lists by the nearest of as many centres; a question meets those of a few lists
};
constexpr std::array<std::string_view, 2> enum_names(VectorIndex) { return {"exact", "ivf"}; }

enum class StorePlace : std::uint8_t {
  host,    // memory of a server, whose processors search
  device,  // memory of the main deployment's devices, beside the model
};
constexpr std::array<std::string_view, 2> enum_names(StorePlace) { return {"host", "device"}; }

inline constexpr const Condition& with_store =
    said<"there is a store (retrieval.vectors)", is_above<"retrieval.vectors", 0>>;
inline constexpr const Condition& with_reranker =
    said<"there is a rerank deployment", is_set<"rerank.present">>;

struct RetrievalSettings {
  std::int64_t vectors = 0;
  std::int64_t dimensions = 1024;
  Dtype format = Dtype::fp16;
  VectorIndex index = VectorIndex::exact;
  std::int64_t lists = 1024;
  std::int64_t probes = 16;
  StorePlace place = StorePlace::host;
  BytesPerSecond host_bandwidth{0};
  FlopsPerSecond host_peak{0};
  Seconds latency{0};
  std::int64_t passages = 5;
  std::int64_t passage_tokens = 300;
  std::int64_t candidates = 50;
  std::int64_t question = 32;

  bool on() const { return vectors > 0; }
  // Tokens that passages add to a prompt.
  std::int64_t prompt() const { return on() ? passages * passage_tokens : 0; }

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("vectors", self.vectors, "vectors in the store, one for each passage; 0: no retrieval",
          non_negative);
    visit("dimensions", self.dimensions, "numbers of one vector", at_least(1));
    visit("format", self.format, "number format of the vectors", any_value);
    visit("index", self.index,
          "which vectors a question meets. exact: all; ivf: those of the retrieval.probes lists "
          "whose centres are nearest",
          any_value);
    visit("lists", self.lists, "lists of an ivf index, all of the same length",
          at_least(1).where(is_one_of<"retrieval.index", VectorIndex::ivf>));
    visit("probes", self.probes, "lists of an ivf index that a question meets",
          at_least(1).where(is_one_of<"retrieval.index", VectorIndex::ivf>));
    visit("place", self.place,
          "where the vectors lie. host: in the memory of a server, which searches; device: in that "
          "of the main deployment's devices, which each search their share",
          any_value);
    visit("host_bandwidth", self.host_bandwidth,
          "memory bandwidth of the server that searches (retrieval.place host)",
          non_negative.where(is_one_of<"retrieval.place", StorePlace::host>));
    visit("host_peak", self.host_peak,
          "arithmetic of the server that searches (retrieval.place host); unlimited: memory alone "
          "counts",
          non_negative_or("unlimited").where(is_one_of<"retrieval.place", StorePlace::host>));
    visit("latency", self.latency,
          "what a search takes besides: the way to the store and back, the vector of the question, "
          "the text of the passages",
          non_negative);
    visit("passages", self.passages, "passages that are put into the prompt", at_least(1));
    visit("passage_tokens", self.passage_tokens, "tokens of one passage", at_least(1));
    visit("candidates", self.candidates,
          "passages that the search finds and the rerank deployment looks at",
          at_least(1).where(with_reranker));
    visit("question", self.question,
          "tokens of the question, which the rerank deployment reads with each passage",
          at_least(1).where(with_reranker));
  }
};

}  // namespace engine
