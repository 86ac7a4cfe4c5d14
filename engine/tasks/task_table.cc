#include "engine/tasks/task_table.h"

#include <array>

#include "engine/base/check.h"
#include "engine/tasks/classify/classify_task.h"
#include "engine/tasks/denoise/denoise_task.h"
#include "engine/tasks/request/request_task.h"
#include "engine/tasks/serve/serve_task.h"
#include "engine/tasks/step/step_task.h"
#include "engine/tasks/train/train_task.h"

namespace engine {
namespace {

constexpr std::array kTasks{step_task(),  request_task(), serve_task(),
                            train_task(), denoise_task(), classify_task()};
static_assert(kTasks.size() == enum_names(Task{}).size());

}  // namespace

std::span<const TaskEntry> task_table() { return kTasks; }

const TaskEntry& task_entry(Task task) {
  const TaskEntry& entry = kTasks[static_cast<std::size_t>(task)];
  check(entry.task == task, "tasks stand in the order of their names");
  return entry;
}

}  // namespace engine
