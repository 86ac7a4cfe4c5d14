#include "engine/step/clock_levels.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/step/step_table.h"

namespace engine {
namespace {

// Clocks between the lowest and the device's own, which is not among them.
constexpr int kLevels = 8;

// The longest step of these decodes up to a context at which the line may have ended: contexts only grow.
double longest_step(StepTable& table, const Decodes& decodes, const DecodeLine& line,
                    double context) {
  const double window = std::isfinite(line.window_end) ? line.window_end : decodes.window;
  if (context <= line.context_end) return line.step(context, window);
  Decodes last = decodes;
  last.context = context;
  last.window = window;
  last.longest += (context - decodes.context) / double(decodes.sequences);
  DecodeLine beyond;
  table.decode_line(last, beyond);
  return beyond.step(context, window);
}

StepContext on_device(const Device& device, const StepContext& context) {
  return {device,       context.fabric,      context.shard,       context.host, context.calibration,
          context.work, context.power_limit, context.links_longer};
}

}  // namespace

struct ClockLevels::Level {
  double share = 1;
  Device device, draft_device;
  std::optional<StepContext> context;
  std::optional<DraftStep> draft;
  StepTable table;
};

ClockLevels::ClockLevels() = default;
ClockLevels::~ClockLevels() = default;
ClockLevels::ClockLevels(ClockLevels&&) noexcept = default;
ClockLevels& ClockLevels::operator=(ClockLevels&&) noexcept = default;

Device at_clock(const Device& device, double share, double power_exponent) {
  Device slower = device;
  slower.clock = device.clock * share;
  // Less what follows the clock anyway (kernels/power.cc).
  const double followed = slower.on_chip_scale() / device.on_chip_scale();
  const double drawn = std::pow(share, power_exponent) / (followed * followed);
  // What a board draws at rest is in it and stays.
  const Watts at_rest = std::min(device.idle_power, device.busy_power);
  slower.busy_power = at_rest + (device.busy_power - at_rest) * drawn;
  slower.tensor_power = device.tensor_power * drawn;
  slower.memory_power = device.memory_power * drawn;
  return slower;
}

void ClockLevels::reset(const StepContext& context, const ByPhase& scale,
                        const Verification& verification, const ClockChoice& choice) {
  limit_ = choice.limit;
  levels_.resize(choice.varies() ? kLevels : 0);
  for (int i = 0; i < int(levels_.size()); ++i) {
    auto& level = levels_[std::size_t(i)];
    if (level == nullptr) level = std::make_unique<Level>();
    level->share = choice.lowest + (1 - choice.lowest) * double(i) / kLevels;
    level->device = at_clock(context.device, level->share, choice.power_exponent);
    level->context.emplace(on_device(level->device, context));
    Verification slower = verification;
    if (verification.draft != nullptr && verification.draft->place != DraftPlace::elsewhere) {
      DraftStep& draft = level->draft.emplace(*verification.draft);
      if (const auto& model = verification.draft->model) {
        level->draft_device = at_clock(model->device, level->share, choice.power_exponent);
        draft.model.emplace(on_device(level->draft_device, *model));
      }
      if (draft.beside) draft.beside.emplace(on_device(level->device, *verification.draft->beside));
      slower.draft = &draft;
    }
    level->table.reset(*level->context, scale, slower);
  }
}

double ClockLevels::chosen_until(double context) {
  using Knots = AttentionTable::ContextGrid;
  return Knots::point(Knots::place(context) + 1);
}

bool ClockLevels::choose(const Decodes& decodes, DecodeLine& line) {
  const double end = chosen_until(decodes.context);
  for (int i = 0; i < int(levels_.size()); ++i) {
    StepTable& table = levels_[std::size_t(i)]->table;
    table.decode_line(decodes, line);
    if (longest_step(table, decodes, line, end) > limit_) continue;
    line.clock_level = i;
    return true;
  }
  return false;
}

StepTable& ClockLevels::at(int level) { return levels_[std::size_t(level)]->table; }

void ClockLevels::report(Breakdown& rows, StepTable& all) {
  std::vector<KernelRow> own;
  for (const auto& level : levels_) {
    level->table.report(own);
    for (const KernelRow& row : own) rows.add(row);
    all.add_sums(level->table);
  }
}

ClockLevels::Sums ClockLevels::sums() const {
  Sums sums;
  for (const auto& level : levels_) {
    const double seconds = level->table.clocked_seconds();
    sums.seconds += seconds;
    sums.clock_seconds += seconds * level->share;
  }
  return sums;
}

}  // namespace engine
