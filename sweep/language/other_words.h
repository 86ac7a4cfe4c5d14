// What frameworks call things that have another name here.
#pragma once

#include <string_view>

namespace sweep {

// Advice on a key by its path ("train.fsdp"), or on a name by path and value ("serving.router: least_loaded"); a role's
// count like the main deployment's ("prefill.serving.router: least_loaded"). Empty: no such word is known.
std::string_view advice_on_word(std::string_view said);

}  // namespace sweep
