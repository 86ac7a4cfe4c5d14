#include "tools/import/profiler_trace.h"

#include <fmt/format.h>

#include "tools/import/json_file.h"

namespace tools {
namespace {

using engine::Mistake;
using nlohmann::json;

// Dims of an argument that is no tensor, or a list of tensors, stay empty.
std::vector<Argument> arguments_of(const json& details) {
  std::vector<Argument> arguments;
  const auto dims = details.find("Input Dims"), types = details.find("Input type");
  if (dims == details.end() || !dims->is_array()) return arguments;
  for (std::size_t i = 0; i < dims->size(); ++i) {
    Argument& argument = arguments.emplace_back();
    if (types != details.end() && types->is_array() && i < types->size() && (*types)[i].is_string())
      argument.type = (*types)[i].get<std::string>();
    if (!(*dims)[i].is_array()) continue;
    for (const json& dim : (*dims)[i]) {
      if (dim.is_number_integer()) argument.dims.push_back(dim.get<std::int64_t>());
    }
  }
  return arguments;
}

class TraceReader {
 public:
  TraceReader(std::string file, const json& root) : file_(std::move(file)), root_(root) {}

  engine::Result<TracedKernels> run() {
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
    TracedKernels made = calls_.table("pytorch_profiler");
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
    const auto wrong = [&](std::string_view what) {
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
    const auto details = event.find("args");
    if (details == event.end() || !details->is_object()) return;
    const auto id = details->find("External id");
    if (id == details->end() || !id->is_number_integer()) return;
    if (category == "cpu_op") {
      const std::vector<Argument> arguments = arguments_of(*details);
      const std::string why = impossible_shape(text("name"), arguments);
      if (!why.empty()) return wrong(fmt::format("{} cannot have run: {}", text("name"), why));
      calls_.add_operator(id->get<std::int64_t>(), text("name"), arguments);
      return;
    }
    const auto length = event.find("dur");
    if (length == event.end() || !length->is_number() || length->get<double>() < 0)
      return wrong("a kernel without 'dur'");
    calls_.add_kernel(id->get<std::int64_t>(), text("name"), length->get<double>());
  }

  std::string file_;
  const json& root_;
  TracedCalls calls_;
  std::vector<Mistake> mistakes_;
};

}  // namespace

engine::Result<TracedKernels> read_profiler_trace(const std::filesystem::path& file) {
  const auto root = read_json_file(file);
  if (!root) return root.mistakes();
  return TraceReader(file.string(), *root).run();
}

}  // namespace tools
