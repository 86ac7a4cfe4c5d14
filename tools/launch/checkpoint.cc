#include "tools/launch/checkpoint.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "engine/leaves/leaves.h"
#include "sweep/language/sweep_spec.h"

namespace tools {
namespace {

constexpr const char* kPlaceholder = "YOUR_CHECKPOINT";

// What a sweep may say of a model whose weights remain the same: how far it is used, and how tokens choose experts.
constexpr std::string_view kOfNoWeights[] = {"model.max_context", "model.moe.skew",
                                             "model.moe.drift"};

bool is_of_weights(const engine::Leaf& leaf) {
  return leaf.range.in_key && std::ranges::find(kOfNoWeights, leaf.path) == std::end(kOfNoWeights);
}

const engine::Section& model_section() {
  const engine::LeafTable& table = engine::leaf_table();
  return table.sections[std::size_t(table.find_section("model"))];
}

// The models of the library by their repositories.
std::map<std::string, engine::Scenario> known_models(const sweep::Library& library) {
  std::map<std::string, engine::Scenario> known;
  for (const std::string& name : library.names("models")) {
    const auto spec = sweep::read_named(library, "models", name);
    if (spec && !spec->scenario.model.hub.empty()) {
      known.emplace(spec->scenario.model.hub, spec->scenario);
    }
  }
  return known;
}

// One column of the run, beside what scenarios have there.
class WeightsColumn {
 public:
  WeightsColumn(const RunRows& run, const engine::Leaf& leaf) : leaf_(leaf) {
    if (is_text()) {
      texts_.emplace(run.texts(leaf.path));
    } else {
      numbers_ = run.numbers(leaf.path);
    }
  }
  bool differs(std::uint32_t row, const engine::Scenario& scenario) const {
    if (!is_text()) return numbers_[row] != engine::leaf_as_double(scenario, leaf_);
    return (*texts_)[row] != text_in(scenario);
  }

 private:
  bool is_text() const {
    return leaf_.kind == engine::LeafKind::text || leaf_.kind == engine::LeafKind::enumeration;
  }
  std::string_view text_in(const engine::Scenario& scenario) const {
    if (leaf_.kind == engine::LeafKind::text) return engine::leaf_text(scenario, leaf_);
    return leaf_.names[std::size_t(engine::leaf_integer(scenario, leaf_))];
  }

  const engine::Leaf& leaf_;
  std::optional<Coded> texts_;
  std::vector<double> numbers_;
};

std::vector<WeightsColumn> columns_of_weights(const RunRows& run) {
  std::vector<WeightsColumn> columns;
  const engine::Section& model = model_section();
  for (std::size_t i = model.first_leaf; i < model.last_leaf; ++i) {
    const engine::Leaf& leaf = engine::leaf_at(int(i));
    if (is_of_weights(leaf) && run.find(leaf.path) != nullptr) columns.emplace_back(run, leaf);
  }
  return columns;
}

Checkpoint placeholder(const std::string& why) {
  return {kPlaceholder,
          std::string(kPlaceholder) + " stands for the weights of this model: " + why};
}

}  // namespace

std::vector<Checkpoint> checkpoints_of(const RunRows& run, const std::vector<std::uint32_t>& rows,
                                       const sweep::Library& library) {
  std::vector<Checkpoint> checkpoints(
      rows.size(), placeholder("model.hub names no repository of the Hugging Face hub"));
  if (run.find("model.hub") == nullptr) return checkpoints;
  const Coded hubs = run.texts("model.hub");
  const auto known = known_models(library);
  const std::vector<WeightsColumn> columns = columns_of_weights(run);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::uint32_t row = rows[i];
    const std::string hub(hubs[row]);
    if (hub.empty()) continue;
    const auto model = known.find(hub);
    const bool altered =
        model != known.end() && std::ranges::any_of(columns, [&](const WeightsColumn& column) {
          return column.differs(row, model->second);
        });
    checkpoints[i] =
        altered ? placeholder("its shape is not that of its 'model.hub'") : Checkpoint{.word = hub};
  }
  return checkpoints;
}

}  // namespace tools
