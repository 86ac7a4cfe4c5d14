// The verbs about kernel tables. They are a program of their own, llmsweep-calibrate, which sweeps neither need nor build. llmsweep lists
// its verbs and hands them over.
#pragma once

#include <CLI/CLI.hpp>

namespace tools {

struct KernelVerb {
  const char* name;
  const char* about;
};
inline constexpr KernelVerb kKernelsVerb{"kernels", "Predict every row of a kernel table"};
inline constexpr KernelVerb kValidateVerb{"validate", "Compare predictions with measurements"};
inline constexpr KernelVerb kCalibrateVerb{"calibrate", "Make a calibration from kernel tables"};
inline constexpr KernelVerb kKernelVerbs[] = {kKernelsVerb, kValidateVerb, kCalibrateVerb};

inline constexpr const char* kKernelProgram = "llmsweep-calibrate";

inline CLI::App* add_verb(CLI::App& app, const KernelVerb& verb) {
  return app.add_subcommand(verb.name, verb.about);
}

}  // namespace tools
