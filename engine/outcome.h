// What evaluating one point gives: whether it works, its figures, and where the time went.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/refusal.h"
#include "engine/base/tier.h"
#include "engine/base/units.h"
#include "engine/figures.h"
#include "engine/kernels/chip_figures.h"
#include "engine/serving/figures/saturation.h"
#include "engine/serving/figures/serving_rows.h"
#include "engine/step/kernel_row.h"
#include "engine/tasks/image_figures.h"
#include "engine/tasks/request/retrieval_figures.h"
#include "engine/tasks/serve/fleet_figures.h"
#include "engine/tasks/serve/serving_figures.h"
#include "engine/tasks/sharing_figures.h"
#include "engine/tasks/speculation_figures.h"
#include "engine/tasks/train/train_figures.h"

namespace engine {

enum class Status : std::uint8_t {
  ok,
  infeasible,   // cannot work on this hardware or with this parallelism
  unsupported,  // the engine does not model it yet
  failed,       // the evaluation broke off, or gave figures that cannot be true
};
constexpr std::array<std::string_view, 4> enum_names(Status) {
  return {"ok", "infeasible", "unsupported", "failed"};
}

// A group of figures: tasks say which they have (engine/tasks/task_table.h), and columns of groups that no
// task of a sweep has cost nothing.
enum class FigureGroup : std::uint8_t {
  time,
  rates,
  memory,
  price,
  serving,
  training,
  speculation,
  sharing,
  images,
  retrieval,
  array
};

// All figures of a point: doubles one after another, in the order of the groups.
struct Metrics : TimeFigures,
                 RateFigures,
                 MemoryFigures,
                 PriceFigures,
                 ServingFigures,
                 TrainFigures,
                 SpeculationFigures,
                 FleetFigures,
                 SharingFigures,
                 ImageFigures,
                 RetrievalFigures,
                 ChipFigures {
  template <class Self, class Visit>
  static void groups(Self& self, Visit&& visit) {
    visit(FigureGroup::time, [&](auto&& each) { TimeFigures::fields(self, each); });
    visit(FigureGroup::rates, [&](auto&& each) { RateFigures::fields(self, each); });
    visit(FigureGroup::memory, [&](auto&& each) { MemoryFigures::fields(self, each); });
    visit(FigureGroup::price, [&](auto&& each) { PriceFigures::fields(self, each); });
    visit(FigureGroup::serving, [&](auto&& each) { ServingFigures::fields(self, each); });
    visit(FigureGroup::training, [&](auto&& each) { TrainFigures::fields(self, each); });
    visit(FigureGroup::speculation, [&](auto&& each) { SpeculationFigures::fields(self, each); });
    visit(FigureGroup::serving, [&](auto&& each) { FleetFigures::fields(self, each); });
    visit(FigureGroup::sharing, [&](auto&& each) { SharingFigures::fields(self, each); });
    visit(FigureGroup::images, [&](auto&& each) { ImageFigures::fields(self, each); });
    visit(FigureGroup::retrieval, [&](auto&& each) { RetrievalFigures::fields(self, each); });
    visit(FigureGroup::array, [&](auto&& each) { ChipFigures::fields(self, each); });
  }

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    groups(self, [&visit](FigureGroup, auto&& group) { group(visit); });
  }
};
static_assert(sizeof(Metrics) ==
                  sizeof(TimeFigures) + sizeof(RateFigures) + sizeof(MemoryFigures) +
                      sizeof(PriceFigures) + sizeof(ServingFigures) + sizeof(TrainFigures) +
                      sizeof(SpeculationFigures) + sizeof(FleetFigures) + sizeof(SharingFigures) +
                      sizeof(ImageFigures) + sizeof(RetrievalFigures) + sizeof(ChipFigures),
              "figures are doubles and nothing else");

constexpr std::size_t kFigures = sizeof(Metrics) / sizeof(double);
// The figures as numbers in base units, in the order of their field lists.
inline std::span<const double, kFigures> figure_values(const Metrics& metrics) {
  return std::span<const double, kFigures>(reinterpret_cast<const double*>(&metrics), kFigures);
}
inline std::span<double, kFigures> figure_values(Metrics& metrics) {
  return std::span<double, kFigures>(reinterpret_cast<double*>(&metrics), kFigures);
}

struct Outcome {
  Status status = Status::ok;
  ReasonClass reason_class = ReasonClass::none;
  std::string reason;
  Bound bound = Bound::compute;  // what saves most time if it is free
  Tier tier = Tier::roofline;    // the least founded tier among the kernels
  bool extrapolated = false;
  Saturation saturation = Saturation::none;
  double load_rate = 0;  // of a served load that states or works out a rate: requests per second
  Metrics metrics;
  std::vector<KernelRow> kernels;
  std::vector<RequestRow> requests;   // only where output.requests asks for them
  std::vector<TimelineRow> timeline;  // only where output.timeline does

  void refuse(Refusal refusal) {
    const bool unknown = refusal.reason_class == ReasonClass::unsupported ||
                         refusal.reason_class == ReasonClass::calibration;
    refuse(unknown ? Status::unsupported : Status::infeasible, std::move(refusal));
  }
  void refuse(Status why, Refusal refusal) {
    status = why;
    reason_class = refusal.reason_class;
    reason = std::move(refusal.text);
  }
};

// Rows of an outcome that are written to a table of their own, beside points. A new table is a row struct
// with a field list, a member of Outcome and a line of the list below.
template <class Row>
struct DetailTable {
  std::string_view name;
  std::vector<Row> Outcome::*rows;
};
// Said aloud for clang before 17, which does not find it by itself.
template <class Row>
DetailTable(const char*, std::vector<Row> Outcome::*) -> DetailTable<Row>;
constexpr std::tuple kDetailTables{
    DetailTable{"kernels", &Outcome::kernels},
    DetailTable{"requests", &Outcome::requests},
    DetailTable{"timeline", &Outcome::timeline},
};
template <class Visit>
void each_detail_table(Visit&& visit) {
  std::apply([&](const auto&... table) { (visit(table), ...); }, kDetailTables);
}

// No table keeps a row. Their memory is used again.
inline void clear_rows(Outcome& outcome) {
  each_detail_table([&](const auto& table) { (outcome.*table.rows).clear(); });
}
// As if nothing had been evaluated into it: whatever it is made of, rows, figures and all else.
inline void begin_anew(Outcome& outcome) {
  clear_rows(outcome);
  Outcome fresh;
  each_detail_table([&](const auto& table) { (fresh.*table.rows).swap(outcome.*table.rows); });
  outcome = std::move(fresh);
}

}  // namespace engine
