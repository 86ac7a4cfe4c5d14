// Speculative decoding as knobs of the scenario: what proposes tokens, how many, and how many of them are accepted.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/task.h"
#include "engine/base/units.h"

namespace engine {

enum class SpeculationMethod : std::uint8_t {
  none,
  draft_model,  // a smaller model, the role `draft`
  ngram,        // what followed the same words before, looked up by the host
  heads,        // further output heads on the last hidden state (Medusa)
  mtp,          // one more layer that is asked again and again (multi-token prediction, EAGLE)
  self,         // the main model itself, over the latest tokens only (MagicDec)
};
constexpr std::array<std::string_view, 6> enum_names(SpeculationMethod) {
  return {"none", "draft_model", "ngram", "heads", "mtp", "self"};
}

// Whether the device works on proposals, and whether what makes them attends to the tokens before.
constexpr bool has_draft_steps(SpeculationMethod method) {
  return method != SpeculationMethod::none && method != SpeculationMethod::ngram;
}
constexpr bool drafts_attend(SpeculationMethod method) {
  return has_draft_steps(method) && method != SpeculationMethod::heads;
}

// How a served load learns which proposals hold.
enum class AcceptanceDraws : std::uint8_t {
  expected,  // every step makes the mean number of tokens
  drawn,     // every sequence draws its own in every step
};
constexpr std::array<std::string_view, 2> enum_names(AcceptanceDraws) {
  return {"expected", "drawn"};
}

struct Speculation {
  SpeculationMethod method = SpeculationMethod::none;
  std::int64_t tokens = 0;
  std::string acceptance;
  std::string acceptance_file;
  std::string acceptance_checksum;
  std::string workload;
  std::string tree;
  double further_candidates = 1;
  bool dynamic = false;
  AcceptanceDraws draws = AcceptanceDraws::expected;
  std::int64_t draft_window = 0;
  Seconds draft_overhead{100e-6};
  Seconds lookup_time{20e-6};

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("method", self.method, "what proposes the tokens that a decode step then verifies",
          any_value.where(with_proposals));
    visit("tokens", self.tokens, "tokens proposed for each sequence in a decode step; 0: none",
          between(0, 64).where(with_method));
    visit("acceptance", self.acceptance,
          "probability that the first proposed token holds, that the second does if the first "
          "did, and so on; one number or a list, whose last number counts for all that follow",
          list_of(fraction)
              .where(said<"no speculation.acceptance_file takes its place",
                          is_zero<"speculation.acceptance_checksum">>)
              .where(with_proposals)
              .where(with_method));
    visit("acceptance_file", self.acceptance_file,
          "CSV file with columns position and acceptance, and where there are several workloads "
          "also workload; takes the place of acceptance",
          a_file);
    visit("acceptance_checksum", self.acceptance_checksum,
          "checksum of the file speculation.acceptance_file; filled in when it is read",
          any_value.where(with_proposals).where(with_method));
    visit("workload", self.workload,
          "rows of acceptance_file that count, by their column workload; empty: the file has one",
          any_value
              .where(said<"there is a speculation.acceptance_file",
                          is_set<"speculation.acceptance_checksum">>)
              .where(with_proposals));
    visit("tree", self.tree,
          "candidates for each position behind every token of the tree: a list such as [4, 2, 1], "
          "beyond which there is one; empty: a chain. The tree is speculation.tokens deep",
          list_of(between(1, 64)).where(with_proposals).where(with_method));
    visit("further_candidates", self.further_candidates,
          "trees: probability that a further candidate for a position holds where those before it "
          "did not, over the position's acceptance; 1 flatters wide trees",
          fraction.where(said<"speculation.tree has candidates", is_set<"speculation.tree">>)
              .where(with_proposals));
    visit("dynamic", self.dynamic,
          "task serve: every step proposes as many tokens, from 0 to speculation.tokens, as make "
          "most tokens a second by its predicted time",
          any_value.where(while_serving).where(with_proposals).where(with_method));
    visit("draws", self.draws,
          "task serve: expected: every step makes the mean number of tokens; drawn: every sequence "
          "draws how many of its proposals hold",
          any_value.where(while_serving).where(with_proposals).where(with_method));
    visit("draft_window", self.draft_window,
          "methods draft_model, mtp and self: number of latest tokens that the draft attends to; "
          "it keeps no others",
          non_negative_or("none")
              .where(is_such<"speculation.method", drafts_attend>)
              .where(with_proposals));
    visit("draft_overhead", self.draft_overhead,
          "methods draft_model, heads, mtp and self: host time around each step of the draft "
          "(inputs, sampling); it counts where it is longer than the step",
          non_negative.where(is_such<"speculation.method", has_draft_steps>).where(with_proposals));
    visit("lookup_time", self.lookup_time,
          "method ngram: host time to look up the proposal for one sequence",
          non_negative.where(is_one_of<"speculation.method", SpeculationMethod::ngram>)
              .where(with_proposals));
  }

  bool on() const { return method != SpeculationMethod::none && tokens > 0; }
};

}  // namespace engine
