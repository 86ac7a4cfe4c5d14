#include "results/schema.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/leaves/leaves.h"
#include "results/detail_table.h"

namespace results {
namespace {

const Column* find(const std::vector<Column>& columns, std::string_view name) {
  const auto found = std::ranges::find(columns, name, &Column::name);
  return found == columns.end() ? nullptr : &*found;
}

std::vector<int> leaves(std::initializer_list<const char*> paths) {
  std::vector<int> found;
  for (const char* path : paths) found.push_back(engine::leaf_table().find_leaf(path));
  return found;
}

TEST(Schema, StartsWithIdentityAndLabels) {
  SchemaInputs inputs;
  inputs.labels = {{"device", {"a", "b"}}, {"step.batch", {"1"}}};
  const auto columns = point_columns(inputs);
  ASSERT_GE(columns.size(), 4u);
  EXPECT_EQ(columns[0].name, "index");
  EXPECT_EQ(columns[1].name, "key");
  EXPECT_EQ(columns[2].name, "axis.device");
  EXPECT_EQ(columns[3].name, "axis.step.batch");
  EXPECT_TRUE(columns[3].nullable);
  EXPECT_EQ(columns.back().name, "model_version");
}

TEST(Schema, LeavesKeepTheirPathsAndUnits) {
  const auto columns = point_columns({});
  const Column* bandwidth = find(columns, "device.memory_bandwidth");
  ASSERT_NE(bandwidth, nullptr);
  EXPECT_EQ(bandwidth->type, ColumnType::float64);
  EXPECT_EQ(bandwidth->unit, "B/s");
  EXPECT_EQ(bandwidth->description, "peak off-chip bandwidth");
  EXPECT_EQ(find(columns, "step.batch")->type, ColumnType::int64);
  EXPECT_EQ(find(columns, "step.phase")->type, ColumnType::text);
  EXPECT_EQ(find(columns, "model.tied_embeddings")->type, ColumnType::boolean);
  // In base units, as everywhere; the edge unit would be USD/h.
  EXPECT_EQ(find(columns, "device.rent")->unit, "USD/s");
}

// Figures for whose unit there is no type have it in their names, and say it all the same.
TEST(Schema, EveryFigureNamedAfterAUnitStatesOne) {
  const auto columns = point_columns({});
  const auto unit = [&](std::string_view name) { return find(columns, name)->unit; };
  EXPECT_EQ(unit("tokens_per_s"), "tok/s");
  EXPECT_EQ(unit("tokens_per_s_per_device"), "tok/s");
  EXPECT_EQ(unit("rollout_tokens_per_s"), "tok/s");
  EXPECT_EQ(unit("device_hours"), "h");
  EXPECT_EQ(unit("energy_j_per_output_token"), "J/tok");
  for (const Metric& metric : metric_table()) {
    const std::string& name = metric.column;
    const bool named = name.ends_with("_per_s") || name.ends_with("_s") ||
                       name.ends_with("_bytes") || name.starts_with("price_usd");
    if (named) {
      EXPECT_NE(unit(name), "") << name;
    }
  }
}

// A description is read without its neighbours, in the metadata of a file: it begins with what the column holds, not with the rest
// of a sentence ("of each device", "that share").
bool stands_alone(std::string_view text) {
  const std::size_t colon = text.find(": ");
  const std::string_view condition = text.substr(0, colon);
  const bool has_condition =
      colon != std::string_view::npos && condition.find_first_of(";(") == std::string_view::npos;
  const std::string_view body = has_condition ? text.substr(colon + 2) : text;
  constexpr std::string_view kFragments[] = {"of ", "from ", "until ", "per ", "and ", "that "};
  return std::ranges::none_of(kFragments,
                              [&](std::string_view begin) { return body.starts_with(begin); }) &&
         text.find("likewise") == std::string_view::npos;
}

TEST(Schema, DescriptionsStandAlone) {
  EXPECT_FALSE(stands_alone("lognormal: of the logarithms of prompt and output"));
  EXPECT_TRUE(stands_alone("time from arrival to the last token"));
  for (const engine::Leaf& leaf : engine::leaf_table().leaves) {
    EXPECT_TRUE(stands_alone(leaf.meaning)) << leaf.path << ": " << leaf.meaning;
  }
  for (const Metric& metric : metric_table()) {
    EXPECT_TRUE(stands_alone(metric.meaning)) << metric.column << ": " << metric.meaning;
  }
  for (std::size_t table = 1; table < kTables; ++table) {
    for (const Column& column : detail_columns(Table(table))) {
      EXPECT_TRUE(stands_alone(column.description)) << column.name << ": " << column.description;
    }
  }
}

TEST(Schema, ANameStandsForItsSection) {
  const auto columns = point_columns({});
  for (const char* section : {"device", "model", "cluster", "device.scale_up"}) {
    ASSERT_NE(find(columns, section), nullptr) << section;
    EXPECT_EQ(find(columns, section)->type, ColumnType::text);
    EXPECT_EQ(find(columns, std::string(section) + ".name"), nullptr);
  }
}

TEST(Schema, MetricsEndInTheirUnit) {
  const auto columns = point_columns({});
  EXPECT_EQ(find(columns, "step_time_s")->unit, "s");
  EXPECT_EQ(find(columns, "weights_bytes")->unit, "B");
  EXPECT_EQ(find(columns, "output_tokens_per_s")->unit, "tok/s");
  EXPECT_NE(find(columns, "price_usd_per_mtok"), nullptr);
  EXPECT_TRUE(find(columns, "step_time_s")->nullable);
}

// METHODS, section 5.
TEST(Schema, AnOperatorFindsEveryFigureOfAServedLoad) {
  const auto columns = point_columns({});
  for (const std::string latency : {"ttft", "tpot", "itl", "e2e", "queue"}) {
    for (const char* which : {"_s", "_p50_s", "_p90_s", "_p95_s", "_p99_s"}) {
      EXPECT_NE(find(columns, latency + which), nullptr) << latency << which;
    }
  }
  for (const char* name :
       {"output_tokens_per_s", "total_tokens_per_s", "output_per_device_tokens_per_s",
        "per_device_tokens_per_s", "output_per_user_tokens_per_s", "total_per_user_tokens_per_s",
        "goodput_req_per_s", "slo_attainment", "preemptions", "prefix_hit_rate", "batch_mean",
        "kv_use", "kv_peak", "kv_waste", "utilization", "saturation"}) {
    ASSERT_NE(find(columns, name), nullptr) << name;
    EXPECT_NE(find(columns, name)->description, "") << name;
  }
}

TEST(Schema, LeavesOutOtherTasks) {
  SchemaInputs inputs;
  EXPECT_NE(find(point_columns(inputs), "step.batch"), nullptr);
  EXPECT_EQ(find(point_columns(inputs), "request.batch"), nullptr);

  inputs.base.task = engine::Task::request;
  EXPECT_EQ(find(point_columns(inputs), "step.batch"), nullptr);
  EXPECT_NE(find(point_columns(inputs), "request.batch"), nullptr);

  inputs.varied_leaves = leaves({"task"});
  EXPECT_NE(find(point_columns(inputs), "step.batch"), nullptr);
  EXPECT_NE(find(point_columns(inputs), "request.batch"), nullptr);
}

TEST(Schema, SaysWhichSettingsASampleDraws) {
  SchemaInputs inputs;
  inputs.varied_leaves = leaves({"step.batch", "step.context"});
  inputs.sampled_leaves = leaves({"step.context"});
  EXPECT_FALSE(find(point_columns(inputs), "step.batch")->sampled);
  EXPECT_TRUE(find(point_columns(inputs), "step.context")->sampled);
}

TEST(Schema, KeepsAVariedLeafOfAnotherTask) {
  SchemaInputs inputs;
  inputs.varied_leaves = leaves({"request.output"});
  EXPECT_NE(find(point_columns(inputs), "request.output"), nullptr);
  EXPECT_EQ(find(point_columns(inputs), "request.batch"), nullptr);
}

TEST(Schema, FiguresAreThoseOfTheTasksThatPointsMayHave) {
  const auto has = [](const SchemaInputs& inputs, std::string_view column) {
    return std::ranges::any_of(figures_of(inputs), [&](std::size_t number) {
      return metric_table()[number].column == column;
    });
  };
  SchemaInputs inputs;
  inputs.base.task = engine::Task::step;
  EXPECT_TRUE(has(inputs, "step_time_s"));
  EXPECT_FALSE(has(inputs, "ttft_p99_s"));
  EXPECT_NE(find(point_columns(inputs), "ttft_p99_s"), nullptr);  // null throughout
  inputs.base.task = engine::Task::serve;
  EXPECT_TRUE(has(inputs, "ttft_p99_s"));
  inputs.base.task = engine::Task::step;
  inputs.varied_leaves = leaves({"task"});
  EXPECT_TRUE(has(inputs, "ttft_p99_s"));
}

std::string listed(const std::vector<Column>& columns) {
  std::string names;
  for (const Column& column : columns) names += column.name + " ";
  return names;
}

TEST(Schema, RequestsAndMomentsFollowTheFieldLists) {
  EXPECT_EQ(listed(detail_columns(table_named("requests"))),
            "index key request replica session priority tenant end measured arrival_s scheduled_s "
            "first_token_s finish_s prompt_tokens output_tokens cached_tokens preemptions "
            "reader read_s received_s carried_tokens class attempts ");
  EXPECT_EQ(listed(detail_columns(table_named("timeline"))),
            "index key time_s replica running waiting decoding batch kv_blocks kv_use "
            "output_tokens_per_s role ");
  const auto columns = detail_columns(table_named("requests"));
  EXPECT_EQ(find(columns, "finish_s")->unit, "s");
  EXPECT_TRUE(find(columns, "finish_s")->nullable);
  EXPECT_EQ(find(columns, "end")->type, ColumnType::text);
  EXPECT_EQ(find(columns, "measured")->type, ColumnType::boolean);
  EXPECT_EQ(find(columns, "preemptions")->type, ColumnType::int64);
}

TEST(Schema, KernelsAreALongTable) {
  EXPECT_EQ(listed(detail_columns(table_named("kernels"))),
            "index key phase op family algorithm calls seconds low_ratio high_ratio flops bytes "
            "energy_j limited_s hidden_s bound tier extrapolated role ");
  const auto columns = detail_columns(table_named("kernels"));
  EXPECT_EQ(find(columns, "seconds")->unit, "s");
  EXPECT_EQ(find(columns, "low_ratio")->unit, "");
  EXPECT_EQ(find(columns, "energy_j")->unit, "J");
  EXPECT_TRUE(find(columns, "energy_j")->nullable);
  EXPECT_FALSE(find(columns, "hidden_s")->nullable);
}

}  // namespace
}  // namespace results
