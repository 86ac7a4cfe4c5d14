// Which kernel family and shape a call of a PyTorch operator has, by the shapes and types of its arguments.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tools {

// What a trace tells of one argument. Not every argument is a tensor: others have no dims and a type of another kind.
struct Argument {
  std::vector<std::int64_t> dims;
  std::string type;  // "c10::BFloat16"
};

// Columns of a kernel table and their values.
using KernelShape = std::map<std::string_view, std::string>;

// Nothing for operators that do not say enough in the shapes of their arguments.
std::optional<KernelShape> kernel_shape(std::string_view name,
                                        const std::vector<Argument>& arguments);

// Why no operator of this name can have run with such arguments; empty where one can, or none of ours has the name.
std::string impossible_shape(std::string_view name, const std::vector<Argument>& arguments);

}  // namespace tools
