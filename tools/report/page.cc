#include "tools/report/page.h"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "results/durable_file.h"
#include "tools/query/row_notes.h"

namespace tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kDataMark = "<!-- data -->";

// How a file is named in the page, and what it is put between.
struct Reference {
  std::string_view before, after;     // around its name
  std::string_view opening, closing;  // around its text
};
constexpr std::array<Reference, 2> kReferences = {{
    {"<script src=\"", "\"></script>", "<script>\n", "</script>"},
    {"<link rel=\"stylesheet\" href=\"", "\">", "<style>\n", "</style>"},
}};

// A command in a build tree has the page among the sources, an installed one beside itself.
std::vector<fs::path> page_folders() {
  std::error_code error;
  const auto self = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const auto installed = (self.parent_path() / LLMSWEEP_INSTALLED_REPORT).lexically_normal();
    if (fs::is_directory(installed, error)) return {installed};
  }
  return {LLMSWEEP_PAGE_DIR, LLMSWEEP_CHARTS_DIR};
}

std::optional<std::string> find_file(const std::vector<fs::path>& folders,
                                     const std::string& name) {
  for (const fs::path& folder : folders) {
    if (auto text = results::read_file(folder / name)) return text;
  }
  return std::nullopt;
}

engine::Mistake missing_file(const std::vector<fs::path>& folders, const std::string& name) {
  return {{.file = (folders.back() / name).string()},
          "this part of the report's page is missing",
          "'tools/dev/charts.sh' fetches the chart library; tools/run and tools/test do so, too"};
}

// Inside a script element only "</script" could end it early, and in its strings it may be written so.
std::string inside_script(std::string text) {
  for (std::size_t at = 0; (at = text.find("</script", at)) != std::string::npos; at += 9) {
    text.insert(at + 1, "\\");
  }
  return text;
}

// JSON in which no '<' can start a tag, and no byte is anything but UTF-8.
std::string json_text(const json& data) {
  const std::string text = data.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string data_elements(json data, const Blobs& blobs) {
  json types = json::array();
  std::string elements;
  for (std::size_t i = 0; i < blobs.blobs().size(); ++i) {
    types.push_back(blobs.blobs()[i].type);
    elements += "<script type=\"application/octet-stream\" id=\"blob-" + std::to_string(i) + "\">" +
                blobs.blobs()[i].text + "</script>\n";
  }
  data["types"] = std::move(types);
  return "<script type=\"application/json\" id=\"data\">" + json_text(data) + "</script>\n" +
         elements;
}

std::vector<std::string> notes_about(const RunRows& points, const PageRows& rows) {
  NoteCounts counts;
  counts.add(points, rows.rows);
  return counts.texts(NoteEnd::remedy);
}

}  // namespace

engine::Result<std::string> with_files(std::string html, const std::vector<fs::path>& folders) {
  for (const Reference& reference : kReferences) {
    std::size_t at = 0;
    while ((at = html.find(reference.before, at)) != std::string::npos) {
      const std::size_t name = at + reference.before.size();
      const std::size_t end = html.find(reference.after, name);
      if (end == std::string::npos) break;
      const std::string file = html.substr(name, end - name);
      auto text = find_file(folders, file);
      if (!text) return missing_file(folders, file);
      const std::string whole = std::string(reference.opening) + inside_script(std::move(*text)) +
                                std::string(reference.closing);
      html.replace(at, end + reference.after.size() - at, whole);
      at += whole.size();
    }
  }
  return html;
}

engine::Result<Report> make_report(const ReportOptions& options) {
  const auto folders = page_folders();
  const auto page = find_file(folders, "report.html");
  if (!page) return missing_file(folders, "report.html");
  auto whole = with_files(*page, folders);
  if (!whole) return whole.mistakes();
  const auto points = RunRows::open(options.folders);
  if (!points) return points.mistakes();
  const auto rows = page_rows(*points, options);
  if (!rows) return rows.mistakes();

  Blobs blobs;
  json data = {{"points", points_data(*points, *rows, blobs)}};
  const std::vector<std::string> about = notes_about(*points, *rows);
  data["notes"] = about;
  data["kernels"] = kernels_data(*points, *rows, options, blobs);
  data["latency"] = latency_data(*points, *rows, blobs);
  data["timeline"] = timeline_data(*points, *rows, blobs);
  if (options.going_on) {
    data["going_on"] = {{"done", options.going_on->done},
                        {"positions", options.going_on->positions}};
  }
  Report report{.html = std::move(*whole),
                .points = rows->rows.size(),
                .asked_for = rows->asked_for,
                .notes = points->notes()};
  report.notes.insert(report.notes.end(), rows->notes.begin(), rows->notes.end());
  report.notes.insert(report.notes.end(), about.begin(), about.end());
  const std::size_t mark = report.html.find(kDataMark);
  if (mark == std::string::npos) return missing_file(folders, "report.html");
  report.html.replace(mark, kDataMark.size(), data_elements(std::move(data), blobs));
  return report;
}

}  // namespace tools
