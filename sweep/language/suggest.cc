#include "sweep/language/suggest.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <system_error>

namespace sweep {
namespace {

char folded(char c) {
  return c == '-' || c == ' ' ? '_' : char(std::tolower(static_cast<unsigned char>(c)));
}

std::string folded(std::string_view text) {
  std::string result;
  for (const char c : text) result += folded(c);
  return result;
}

// 'h100' is the whole first part of 'h100-sxm', but not of 'h1000'.
bool goes_on(std::string_view candidate, std::string_view start) {
  return candidate.size() > start.size() && candidate.starts_with(start) &&
         std::isalnum(static_cast<unsigned char>(candidate[start.size()])) == 0;
}

// The parts of a name, whatever joins them and in whatever order: 'a100-sxm-80gb' has those of 'a100-80gb-sxm'.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : folded(name)) {
    if (c == '_') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  std::ranges::sort(words);
  return words;
}

// Those that begin with a later word of it that has a digit: the 'h100' of 'nvidia-h100' tells more than its maker.
std::vector<std::string> with_its_number(std::string_view written,
                                         const std::vector<std::string>& candidates) {
  constexpr std::size_t telling = 3;
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  std::vector<std::string> found;
  for (const std::string& word : words_of(written)) {
    if (word.size() < telling || std::ranges::none_of(word, is_digit)) continue;
    if (std::ranges::all_of(word, is_digit) || folded(written).starts_with(word)) continue;
    for (const std::string& candidate : candidates) {
      const std::string name = folded(candidate);
      if (name == word || goes_on(name, word)) found.push_back(candidate);
    }
  }
  return found;
}

// Letters that both begin with.
std::size_t common_start(std::string_view a, std::string_view b) {
  std::size_t same = 0;
  while (same < std::min(a.size(), b.size()) && folded(a[same]) == folded(b[same])) ++same;
  return same;
}

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
  const auto alike = std::ranges::find(candidates, words_of(written), words_of);
  if (alike != candidates.end()) return *alike;
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
  const std::string part = folded(written);
  for (const std::string& candidate : candidates) {
    if (candidate.size() > part.size() && folded(candidate).find(part) != std::string::npos) {
      return candidate;
    }
  }
  return name;
}

std::vector<std::string> likely(std::string_view written,
                                const std::vector<std::string>& candidates) {
  const std::string part = folded(written);
  // Names of two letters are inside too many others by chance.
  constexpr std::size_t telling = 3;
  std::vector<std::string> longer, containing;
  std::string contained;
  for (const std::string& candidate : candidates) {
    const std::string name = folded(candidate);
    if (name == part) return {candidate};
    if (goes_on(name, part)) longer.push_back(candidate);
    if (part.size() >= telling && name.find(part) != std::string::npos) {
      containing.push_back(candidate);
    }
    if (name.size() > std::max(telling, contained.size()) && part.find(name) != std::string::npos) {
      contained = candidate;
    }
  }
  if (!longer.empty()) return longer;
  if (std::string near = nearest(written, candidates);
      !near.empty() && std::ranges::find(containing, near) == containing.end()) {
    return {std::move(near)};
  }
  if (!containing.empty()) return containing;
  if (!contained.empty()) return {contained};
  return with_its_number(written, candidates);
}

std::string did_you_mean(const std::vector<std::string>& names) {
  constexpr std::size_t most = 5;
  std::string text = "did you mean ";
  const std::size_t shown = std::min(most, names.size());
  for (std::size_t i = 0; i < shown; ++i) {
    text += (i == 0 ? "'" : i + 1 == names.size() ? " or '" : ", '") + names[i] + "'";
  }
  if (names.size() > most) text += " or one of " + std::to_string(names.size() - most) + " more";
  return text + "?";
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
  const std::vector<std::string> names = likely(written, candidates);
  if (!names.empty()) return did_you_mean(names);
  if (candidates.empty()) return "";
  std::vector<std::string> known = candidates;
  std::ranges::stable_sort(known, std::ranges::greater{},
                           [&](const std::string& name) { return common_start(written, name); });
  return (what_they_are.empty() ? "" : std::string(what_they_are) + ": ") + listing(known);
}

std::string similar_file_hint(const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    // What has this very name is no file that can be read.
    if (it->path().filename() == file.filename()) continue;
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  const std::string near = nearest(file.filename().string(), names);
  return near.empty() ? "check the path"
                      : "did you mean '" + (file.parent_path() / near).string() + "'?";
}

}  // namespace sweep
