#include "tools/import/profiler_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "tools/import/json_file.h"

namespace tools {
namespace {

using engine::Mistake;
using nlohmann::json;

constexpr std::string_view kColumns[] = {
    "family", "impl",      "dtype",       "kv_dtype", "m",        "n",        "k",
    "batch",  "query_len", "context_len", "q_heads",  "kv_heads", "head_dim", "window",
    "tokens", "hidden",    "inter",       "topk",     "experts",  "tp",       "ep",
    "skew",   "bytes",     "ranks",       "seconds"};

// What is known of one call: columns and their values.
using Shape = std::map<std::string_view, std::string>;
using Dims = std::vector<std::int64_t>;

std::optional<std::string> format_of(const json& types, std::size_t argument) {
  if (!types.is_array() || argument >= types.size() || !types[argument].is_string())
    return std::nullopt;
  static const std::map<std::string, std::string> formats{{"c10::BFloat16", "bf16"},
                                                          {"c10::Half", "fp16"},
                                                          {"float", "fp32"},
                                                          {"c10::Float8_e4m3fn", "fp8"}};
  const auto found = formats.find(types[argument].get<std::string>());
  return found == formats.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Dims> dims_of(const json& all, std::size_t argument, std::size_t rank) {
  if (!all.is_array() || argument >= all.size() || !all[argument].is_array()) return std::nullopt;
  Dims dims;
  for (const json& dim : all[argument]) {
    if (!dim.is_number_integer()) return std::nullopt;
    dims.push_back(dim.get<std::int64_t>());
  }
  return dims.size() == rank ? std::optional(dims) : std::nullopt;
}

// C[m,n] = A[m,k] W[k,n]; A is the argument of this number.
std::optional<Shape> product(const json& arguments, std::size_t first) {
  const json& dims = arguments["Input Dims"];
  const auto a = dims_of(dims, first, 2), w = dims_of(dims, first + 1, 2);
  const auto format = format_of(arguments.value("Input type", json()), first);
  if (!a || !w || !format || (*a)[1] != (*w)[0]) return std::nullopt;
  return Shape{{"family", "gemm"},
               {"dtype", *format},
               {"m", std::to_string((*a)[0])},
               {"n", std::to_string((*w)[1])},
               {"k", std::to_string((*a)[1])}};
}

// Queries, keys and values as [batch, heads, tokens, width], or with heads and tokens the other way round.
std::optional<Shape> attention(const json& arguments, std::size_t heads, std::size_t tokens) {
  const json& dims = arguments["Input Dims"];
  const auto query = dims_of(dims, 0, 4), keys = dims_of(dims, 1, 4);
  const auto format = format_of(arguments.value("Input type", json()), 0);
  if (!query || !keys || !format) return std::nullopt;
  const std::int64_t length = (*query)[tokens];
  return Shape{{"family", length > 1 ? "attn_prefill" : "attn_decode"},
               {"dtype", *format},
               {"kv_dtype", *format},
               {"batch", std::to_string((*query)[0])},
               {"query_len", std::to_string(length)},
               {"context_len", std::to_string((*keys)[tokens])},
               {"q_heads", std::to_string((*query)[heads])},
               {"kv_heads", std::to_string((*keys)[heads])},
               {"head_dim", std::to_string((*query)[3])},
               {"window", "0"}};
}

// Operators that say enough in the shapes of their arguments.
std::optional<Shape> shape_of(const std::string& name, const json& arguments) {
  if (!arguments.contains("Input Dims")) return std::nullopt;
  if (name == "aten::mm" || name == "aten::_scaled_mm") return product(arguments, 0);
  if (name == "aten::addmm") return product(arguments, 1);
  for (const char* heads_first :
       {"aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_cudnn_attention",
        "aten::_scaled_dot_product_efficient_attention", "aten::_cudnn_attention_forward"}) {
    if (name == heads_first) return attention(arguments, 1, 2);
  }
  if (name == "aten::_flash_attention_forward" || name == "flash_attn::_flash_attn_forward") {
    return attention(arguments, 2, 1);
  }
  return std::nullopt;
}

// "void cutlass::Kernel2<...>(...)" is "cutlass::Kernel2".
std::string short_name(std::string name) {
  if (name.starts_with("void ")) name.erase(0, 5);
  name = name.substr(0, name.find_first_of("<("));
  std::ranges::replace_if(
      name, [](char c) { return c == ',' || c == '"' || c == '\n'; }, '_');
  return name.substr(0, 80);
}

struct Operator {
  std::string name;
  std::optional<Shape> shape;
};
// The kernels that one call of an operator started.
struct Call {
  double microseconds = 0;
  double longest = 0;
  std::string kernel;  // the longest one's name
  std::size_t kernels = 0;
};

class TraceReader {
 public:
  TraceReader(std::string file, const json& root) : file_(std::move(file)), root_(root) {}

  engine::Result<ProfiledKernels> run() {
    const json* events = root_.is_array() ? &root_
                         : root_.is_object() && root_.contains("traceEvents")
                             ? &root_["traceEvents"]
                             : nullptr;
    if (events == nullptr || !events->is_array()) {
      return Mistake{{file_, 0, 0},
                     "this is no trace of the PyTorch profiler: it has no list 'traceEvents'",
                     "write one with prof.export_chrome_trace(...)"};
    }
    for (std::size_t i = 0; i < events->size(); ++i) read_event(i, (*events)[i]);
    if (!mistakes_.empty()) return mistakes_;
    if (calls_.empty()) {
      return Mistake{
          {file_, 0, 0}, "the trace has no kernels", "profile with activities=[CPU, CUDA]"};
    }
    ProfiledKernels made = tabled();
    if (made.taken == 0) {
      return Mistake{{file_, 0, 0},
                     "no kernel of the trace belongs to an operator whose shape is known",
                     "profile with record_shapes=True; products and attention are known"};
    }
    return made;
  }

 private:
  void read_event(std::size_t number, const json& event) {
    if (mistakes_.size() >= 10) return;
    const auto wrong = [&](const char* what) {
      mistakes_.push_back(
          {{file_, 0, 0}, fmt::format("event {} is damaged: {}", number, what), ""});
    };
    if (!event.is_object()) return wrong("it is not an object");
    const auto text = [&event](const char* name) {
      const auto found = event.find(name);
      return found != event.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    const std::string category = text("cat");
    if (text("ph") != "X" || (category != "kernel" && category != "cpu_op")) return;
    const auto arguments = event.find("args");
    if (arguments == event.end() || !arguments->is_object()) return;
    const auto id = arguments->find("External id");
    if (id == arguments->end() || !id->is_number_integer()) return;
    if (category == "cpu_op") {
      operators_[id->get<std::int64_t>()] = {text("name"), shape_of(text("name"), *arguments)};
      return;
    }
    const auto length = event.find("dur");
    if (length == event.end() || !length->is_number() || length->get<double>() < 0)
      return wrong("a kernel without 'dur'");
    Call& call = calls_[id->get<std::int64_t>()];
    call.microseconds += length->get<double>();
    ++call.kernels;
    if (call.kernel.empty() || length->get<double>() > call.longest) {
      call.longest = length->get<double>();
      call.kernel = short_name(text("name"));
    }
  }

  ProfiledKernels tabled() const {
    ProfiledKernels made;
    std::map<Shape, std::vector<double>> times;
    std::map<std::string, double> left_out;
    for (const auto& [id, call] : calls_) {
      made.kernels += call.kernels;
      made.seconds += call.microseconds * 1e-6;
      const auto found = operators_.find(id);
      if (found == operators_.end() || !found->second.shape) {
        left_out[found == operators_.end() ? call.kernel : found->second.name] +=
            call.microseconds * 1e-6;
        continue;
      }
      made.taken += call.kernels;
      made.taken_seconds += call.microseconds * 1e-6;
      Shape shape = *found->second.shape;
      shape["impl"] = "pytorch_profiler:" + call.kernel;
      times[shape].push_back(call.microseconds * 1e-6);
    }
    made.left_out.assign(left_out.begin(), left_out.end());
    std::ranges::stable_sort(made.left_out, std::greater<>(),
                             [](const auto& entry) { return entry.second; });
    for (const std::string_view column : kColumns)
      made.table.columns.emplace_back(std::string(column));
    for (auto& [shape, seconds] : times) add_row(shape, seconds, made.table);
    return made;
  }

  static void add_row(const Shape& shape, std::vector<double>& seconds, results::TextTable& table) {
    const auto middle = seconds.begin() + std::ptrdiff_t(seconds.size() / 2);
    std::ranges::nth_element(seconds, middle);
    for (results::TextColumn& column : table.columns) {
      const auto cell = shape.find(column.name());
      column.append(column.name() == "seconds" ? fmt::format("{}", *middle)
                    : cell != shape.end()      ? cell->second
                                               : "");
    }
  }

  std::string file_;
  const json& root_;
  std::map<std::int64_t, Operator> operators_;  // by the number that kernels name
  std::map<std::int64_t, Call> calls_;
  std::vector<Mistake> mistakes_;
};

}  // namespace

engine::Result<ProfiledKernels> read_profiler_trace(const std::filesystem::path& file) {
  const auto root = read_json_file(file);
  if (!root) return root.mistakes();
  return TraceReader(file.string(), *root).run();
}

}  // namespace tools
