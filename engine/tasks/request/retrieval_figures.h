// Figures of requests whose prompts are looked up first.
#pragma once

#include "engine/base/units.h"
#include "engine/figures.h"

namespace engine {

struct RetrievalFigures {
  Seconds retrieve{kNoValue};
  Seconds rerank{kNoValue};

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("retrieve", self.retrieve,
          "task request with retrieval: time of the search for passages, part of the time to first "
          "token");
    visit("rerank", self.rerank,
          "task request with rerank: time in which that deployment looks at the passages found, "
          "part of the time to first token");
  }
};

}  // namespace engine
