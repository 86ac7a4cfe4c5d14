// llmsweep top, pareto, sensitivity: questions to finished runs, answered in the terminal or in a file.
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "engine/scenario.h"
#include "results/failure.h"
#include "tools/cli/cli.h"
#include "tools/command/standard_library.h"
#include "tools/launch/launch_flags.h"
#include "tools/query/answer.h"
#include "tools/query/ranking.h"
#include "tools/query/row_notes.h"
#include "tools/query/sensitivity.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

struct QuestionArguments {
  std::vector<std::string> folders;
  std::string by;
  std::vector<std::string> least, most;
  std::string where;
  std::string group_by;
  std::vector<std::string> show;
  std::string launch;  // an engine
  std::string format = "text";
  std::string file;
  std::size_t count = 0;  // 0: ten, or one of each group
  bool lowest = false, highest = false;
};
using Asked = std::shared_ptr<QuestionArguments>;
using Answer =
    std::function<results::TextTable(const RunRows&, const Candidates&, const Question&)>;

Question question_of(const QuestionArguments& arguments) {
  Question question{.where = arguments.where, .group_by = arguments.group_by};
  if (!arguments.by.empty()) {
    const Better better = arguments.lowest    ? Better::lower
                          : arguments.highest ? Better::higher
                                              : better_of(arguments.by);
    question.objectives.push_back({arguments.by, better});
  }
  for (const auto& name : arguments.least) question.objectives.push_back({name, Better::lower});
  for (const auto& name : arguments.most) question.objectives.push_back({name, Better::higher});
  return question;
}

std::vector<engine::Mistake> unknown_shown(const RunRows& rows,
                                           const QuestionArguments& arguments) {
  std::vector<engine::Mistake> mistakes;
  for (const std::string& name : arguments.show) {
    if (rows.find_axis(name) == nullptr) {
      mistakes.push_back(unknown_column(rows, name, {.file = arguments.folders.front()}));
    }
  }
  return mistakes;
}

// Engines serve tokens: training jobs, images made and images recognised are work of other programs.
std::vector<engine::Mistake> not_launched(const RunRows& rows, const Candidates& found,
                                          const QuestionArguments& arguments) {
  if (arguments.launch.empty()) return {};
  const Coded tasks = rows.texts("task");
  for (const engine::Task task :
       {engine::Task::train, engine::Task::denoise, engine::Task::classify}) {
    const std::string_view name = name_of(task);
    if (std::ranges::none_of(found.rows, [&](auto row) { return tasks[row] == name; })) continue;
    return {
        {{.file = arguments.folders.front()},
         fmt::format("--launch: points of task {} are not served, so there is no engine to start",
                     name),
         fmt::format("leave --launch out, or choose others by --where \"task != '{}'\"", name)}};
  }
  return {};
}

int complain(const std::vector<engine::Mistake>& mistakes) {
  print(stderr, "{}", engine::to_text(mistakes));
  return kMistake;
}

void print_counts(const Candidates& found, const QuestionArguments& arguments) {
  std::string text = fmt::format("{}, {} ok", counted(found.all, "point"), grouped(found.ok));
  if (!arguments.where.empty()) {
    text += fmt::format(", {} of them asked for", grouped(found.rows.size()));
  } else if (found.rows.size() != found.ok) {
    text += fmt::format(", {} of them with the figures asked for", grouped(found.rows.size()));
  }
  print(stderr, "{}\n", text);
}

// The table, or the exit code once what is in the way is told.
struct Answered {
  std::optional<results::TextTable> table;
  int exit_code = kOk;
};

Answered answered(const QuestionArguments& arguments, const Answer& answer) {
  if (const auto mistakes = check_answer_file(arguments.file); !mistakes.empty()) {
    return {.exit_code = complain(mistakes)};
  }
  try {
    const auto rows = RunRows::open(arguments.folders);
    if (!rows) return {.exit_code = complain(rows.mistakes())};
    if (const auto mistakes = unknown_shown(*rows, arguments); !mistakes.empty()) {
      return {.exit_code = complain(mistakes)};
    }
    const Question question = question_of(arguments);
    const auto found = candidates(*rows, question);
    if (!found) return {.exit_code = complain(found.mistakes())};
    if (const auto mistakes = not_launched(*rows, *found, arguments); !mistakes.empty()) {
      return {.exit_code = complain(mistakes)};
    }
    print_notes(stderr, rows->notes());
    print_notes(stderr, found->notes);
    NoteCounts about;
    about.add(*rows, found->rows);
    print_notes(stderr, about.texts(NoteEnd::without));
    print_counts(*found, arguments);
    if (found->rows.empty()) return {.exit_code = kNoPoint};
    return {.table = answer(*rows, *found, question)};
  } catch (const results::Failure& failure) {
    return {.exit_code = complain_about_run(failure)};
  }
}

int answer_question(const QuestionArguments& arguments, const Answer& answer) {
  const Answered found = answered(arguments, answer);
  if (!found.table) return found.exit_code;
  if (arguments.file.empty()) {
    print("{}", to_text(*found.table, *engine::from_name<AnswerFormat>(arguments.format)));
    return kOk;
  }
  try {
    write_answer(arguments.file, *found.table);
  } catch (const results::Failure& failure) {
    print(stderr, "error: {}\n", failure.what());
    return kFailure;
  }
  print("{}\n", arguments.file);
  return kOk;
}

// What all three verbs take.
CLI::App* add_verb(CLI::App& app, const char* name, const char* what, const Asked& asked) {
  CLI::App* verb = app.add_subcommand(name, what);
  verb->add_option("folders", asked->folders, "run folders")->required()->type_name("DIR...");
  verb->add_option(
          "--where", asked->where,
          "only points for which this holds, as in \"device == 'h100-sxm' and tpot_s < 50 ms\"")
      ->type_name("EXPR");
  verb->add_option("--format", asked->format, "text, csv or markdown")
      ->check(CLI::IsMember({"text", "csv", "markdown"}))
      ->type_name("FORMAT");
  verb->add_option("-o,--output", asked->file,
                   "write a file instead: .txt, .md, .csv, .csv.gz or .parquet")
      ->type_name("FILE");
  return verb;
}

void add_rows_options(CLI::App* verb, const Asked& asked) {
  verb->add_option("--group-by", asked->group_by,
                   "an axis or a column: an answer for each of its values")
      ->type_name("AXIS");
  verb->add_option("--show", asked->show, "further columns to show")
      ->delimiter(',')
      ->type_name("COLUMN,...");
  verb->add_option("--launch", asked->launch,
                   "show the command that starts an engine so: vllm, sglang or tensorrt-llm")
      ->check(CLI::IsMember({"vllm", "sglang", "tensorrt-llm"}))
      ->type_name("ENGINE");
}

// With --launch, the command that starts an engine as each row has it.
results::TextTable with_launch(results::TextTable table, const RunRows& rows,
                               const std::vector<std::uint32_t>& chosen, const Asked& asked) {
  if (asked->launch.empty()) return table;
  results::TextColumn& column = table.columns.emplace_back("launch");
  const auto engine = *engine::from_name<LaunchEngine>(asked->launch);
  for (const std::string& line : launch_commands(rows, chosen, engine, standard_library())) {
    column.append(line);
  }
  return table;
}

void add_top(CLI::App& app, int& exit_code) {
  auto asked = std::make_shared<QuestionArguments>();
  CLI::App* verb = add_verb(app, "top", "The best points of a run by one figure", asked);
  verb->footer(
      "Rates and utilisations are best high, times and prices low; --lowest and --highest say "
      "otherwise.\n"
      "  llmsweep top runs/first_sweep --by price_usd_per_mtok --where 'step.context == 2048' "
      "--group-by step.batch");
  verb->add_option("--by", asked->by, "the figure")->required()->type_name("METRIC");
  auto* lowest = verb->add_flag("--lowest", asked->lowest, "the lowest is the best");
  verb->add_flag("--highest", asked->highest, "the highest is the best")->excludes(lowest);
  verb->add_option("-n,--count", asked->count, "how many (default: 10, or 1 of each group)")
      ->transform(whole_above_zero())
      ->type_name("N");
  add_rows_options(verb, asked);
  verb->callback([asked, &exit_code] {
    exit_code = answer_question(
        *asked, [&](const RunRows& rows, const Candidates& found, const Question& question) {
          const std::size_t usual = asked->group_by.empty() ? 10 : 1;
          const auto best = best_rows(found, question, asked->count > 0 ? asked->count : usual);
          return with_launch(rows_answer(rows, best, found, question, asked->show, Behind::yes),
                             rows, best, asked);
        });
  });
}

void add_pareto(CLI::App& app, int& exit_code) {
  auto asked = std::make_shared<QuestionArguments>();
  CLI::App* verb =
      add_verb(app, "pareto", "The points that no other point beats in every figure", asked);
  verb->footer(
      "  llmsweep pareto runs/first_sweep --min price_usd_per_mtok --min step_time_s --group-by "
      "device");
  auto* least = verb->add_option("--min", asked->least, "figures to have low")
                    ->allow_extra_args(false)
                    ->delimiter(',')
                    ->type_name("METRIC,...");
  auto* most = verb->add_option("--max", asked->most, "figures to have high")
                   ->allow_extra_args(false)
                   ->delimiter(',')
                   ->type_name("METRIC,...");
  add_rows_options(verb, asked);
  verb->callback([asked, least, most, &exit_code] {
    if (least->count() + most->count() == 0) {
      throw CLI::RequiredError("--min METRIC or --max METRIC");
    }
    exit_code = answer_question(
        *asked, [&](const RunRows& rows, const Candidates& found, const Question& question) {
          const auto front = front_rows(found, question);
          return with_launch(rows_answer(rows, front, found, question, asked->show, Behind::no),
                             rows, front, asked);
        });
  });
}

void add_sensitivity(CLI::App& app, int& exit_code) {
  auto asked = std::make_shared<QuestionArguments>();
  CLI::App* verb =
      add_verb(app, "sensitivity", "Which axis moves a figure, and how strongly", asked);
  verb->footer(
      "explained_percent: how much of the spread of the figure (of its logarithm) the axis "
      "explains alone.\n"
      "ratio: largest over smallest figure among points that differ in this axis alone, geometric "
      "mean.\n"
      "elasticity: percent of the figure for one percent of the axis.\n"
      "best: the value that is best in most sets of such points, none where they are alike.\n"
      "sets: how many there are, 0 in a sample and of the members of a zip.\n"
      "  llmsweep sensitivity runs/first_sweep --of step_time_s");
  verb->add_option("--of,--by", asked->by, "the figure")->required()->type_name("METRIC");
  verb->callback([asked, &exit_code] {
    exit_code = answer_question(
        *asked, [](const RunRows& rows, const Candidates& found, const Question& question) {
          return effects_answer(axis_effects(rows, found, question.objectives.front()));
        });
  });
}

}  // namespace

void add_questions(CLI::App& app, int& exit_code) {
  add_top(app, exit_code);
  add_pareto(app, exit_code);
  add_sensitivity(app, exit_code);
}

}  // namespace tools
