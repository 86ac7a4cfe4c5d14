#include "tools/calibrate/fit/implementation_fits.h"

#include <set>
#include <tuple>
#include <utility>

#include "tools/calibrate/tables/call_names.h"

namespace tools {
namespace {

// Rows that share a section of the calibration, nearly: a kind of call.
using Kind = std::tuple<engine::Family, Format, Format>;
Kind kind_of(const KernelCall& call) { return {call.family, call.dtype, call.kv_dtype}; }

// The parameters of a fit without what was measured: where another fit may begin.
engine::Calibration parameters_of(engine::Calibration calibration) {
  engine::Calibration::sections(calibration, [](const std::string&, auto& sets) {
    sets.each_edit([](engine::ParameterSet, auto& set) { set.points = {}; });
  });
  return calibration;
}

}  // namespace

void add_calls_by_impl(const KernelTable& table, const std::string& impl, CallsByImpl& calls) {
  // By itself, a kernel that measures a hot device or the host does no harm.
  const GatherOptions options{.impl = impl.empty() ? "." : impl, .across = Across::separate};
  const auto gathered = gather_calls(table, options).value();
  for (const MeasuredCall& call : gathered.calls) {
    const std::string& name = table.impls[call.impl];
    if (!engine_in(name).empty()) calls[name].push_back(call);
  }
}

std::vector<MeasuredFit> fit_implementations(const CallsByImpl& calls, const engine::Device& device,
                                             const engine::Calibration& device_fit,
                                             const engine::Calibration& transfer) {
  std::map<Kind, std::set<std::string>> makers;
  for (const auto& [impl, measured] : calls) {
    for (const MeasuredCall& call : measured) makers[kind_of(call.call)].insert(impl);
  }
  const engine::Calibration start = engine::completed_by(parameters_of(device_fit), transfer);
  std::vector<MeasuredFit> fits;
  for (const auto& [impl, measured] : calls) {
    std::vector<MeasuredCall> shared;
    for (const MeasuredCall& call : measured) {
      if (makers[kind_of(call.call)].size() > 1) shared.push_back(call);
    }
    if (shared.empty()) continue;
    MeasuredFit fit = fit_measured(shared, device, start, Checks::quick);
    if (fit.errors.empty()) continue;
    fit.calibration.impl = impl;
    fits.push_back(std::move(fit));
  }
  return fits;
}

}  // namespace tools
