// "did you mean ...?": the candidate nearest to what was written, if any is near.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace sweep {

// Insertions, deletions, replacements and swaps of neighbours that turn a into b; letters' case and
// '-' against '_' count for nothing.
int edit_distance(std::string_view a, std::string_view b);

// The nearest candidate within reach, or empty.
std::string nearest(std::string_view written, const std::vector<std::string>& candidates);

// What may have been meant, most likely first: names that go on where the written one ends ('H100' for
// 'h100-sxm' and 'h100-pcie'), else the nearest one, else names that contain it, else the longest one it
// contains. Empty where nothing is like it.
std::vector<std::string> likely(std::string_view written,
                                const std::vector<std::string>& candidates);

// "did you mean 'a', 'b' or 'c'?"
std::string did_you_mean(const std::vector<std::string>& names);

// "did you mean 'tp'?" or, where nothing is near, "known keys: tp, pp, ...", those first that begin like it, or empty.
std::string suggestion(std::string_view written, const std::vector<std::string>& candidates,
                       std::string_view what_they_are);

// "a, b, c, ..." with at most `most` of them.
std::string listing(const std::vector<std::string>& names, std::size_t most = 12);

// "did you mean 'x.yaml'?" among the files of the same folder, or empty.
std::string similar_file_hint(const std::filesystem::path& file);

}  // namespace sweep
