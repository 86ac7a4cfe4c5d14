// The words that rules of engine/leaves/leaf_use_rules.h are written in.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "engine/leaves/leaf_use.h"

namespace engine::leaf_use_words {

using Names = std::vector<std::string_view>;

inline UseCondition is(std::string_view path, Names names) {
  return {.path = path, .kind = UseCondition::Kind::named, .names = std::move(names)};
}
inline UseCondition on(std::string_view path) {
  return {.path = path, .kind = UseCondition::Kind::switched_on};
}
inline UseCondition above(std::string_view path, double bound) {
  return {.path = path, .kind = UseCondition::Kind::above, .bound = bound};
}
inline UseCondition zero(std::string_view path) {
  return {.path = path, .kind = UseCondition::Kind::zero};
}
inline UseCondition set(std::string_view path) {
  return {.path = path, .kind = UseCondition::Kind::set};
}

inline UseCondition follows(Names from, UseCondition::Fact fact) {
  return {.path = "", .kind = UseCondition::Kind::follows, .names = std::move(from), .fact = fact};
}

inline LeafUse of_task(std::string_view path, std::string_view where, Names tasks) {
  return {path, where, {is("task", std::move(tasks))}};
}
inline LeafUse of_serving(std::string_view path) {
  return of_task(path, "task is serve", {"serve"});
}

}  // namespace engine::leaf_use_words
