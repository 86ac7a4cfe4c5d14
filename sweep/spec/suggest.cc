#include "sweep/spec/suggest.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <system_error>

namespace sweep {
namespace {

char folded(char c) { return c == '-' ? '_' : char(std::tolower(static_cast<unsigned char>(c))); }

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: a swap of neighbours looks two rows back.
  std::vector<int> before(b.size() + 1);
  std::vector<int> last(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = int(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = int(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = folded(a[i - 1]) == folded(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
          folded(a[i - 2]) == folded(b[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string nearest(std::string_view written, const std::vector<std::string>& candidates) {
  // Up to a third of the letters may be wrong: beyond that a suggestion is noise.
  int best = std::max(1, int(written.size()) / 3) + 1;
  std::string name;
  for (const std::string& candidate : candidates) {
    // Lengths alone are a distance: most candidates need no closer look.
    if (std::abs(int(written.size()) - int(candidate.size())) >= best) continue;
    const int distance = edit_distance(written, candidate);
    if (distance < best) {
      best = distance;
      name = candidate;
    }
  }
  if (!name.empty() || written.size() < 3) return name;
  // Next, one that only leaves the end or the start off: 'h100' for 'h100-sxm'.
  for (const std::string& candidate : candidates) {
    if (candidate.size() > written.size() && (candidate.find(written) != std::string::npos)) {
      return candidate;
    }
  }
  return name;
}

std::string listing(const std::vector<std::string>& names, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > most) text += ", and " + std::to_string(names.size() - most) + " more";
  return text;
}

std::string suggestion(std::string_view written, const std::vector<std::string>& candidates,
                       std::string_view what_they_are) {
  const std::string near = nearest(written, candidates);
  if (!near.empty()) return "did you mean '" + near + "'?";
  if (candidates.empty()) return "";
  return (what_they_are.empty() ? "" : std::string(what_they_are) + ": ") + listing(candidates);
}

std::string similar_file_hint(const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  const std::string near = nearest(file.filename().string(), names);
  return near.empty() ? "check the path"
                      : "did you mean '" + (file.parent_path() / near).string() + "'?";
}

}  // namespace sweep
