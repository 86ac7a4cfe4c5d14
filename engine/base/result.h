// A value, or everything that is wrong with the text it came from, each mistake with its place.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace engine {

// A place in a user's file; line and column count from one, zero when there is no such place.
struct Location {
  std::string file;
  int line = 0;
  int column = 0;

  bool operator==(const Location&) const = default;
};

// One thing a user got wrong, where, and what to do about it.
struct Mistake {
  Location where;
  std::string what;
  std::string hint;
  std::size_t stands_for = 1;  // mistakes: one that only counts others stands for all of them

  bool operator==(const Mistake&) const = default;
};

// "file:4:18: error: what\n  hint: do this\n", one after another.
std::string to_text(const std::vector<Mistake>& mistakes);

template <class T>
class Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(std::vector<Mistake> mistakes) : mistakes_(std::move(mistakes)) {}
  Result(Mistake mistake) : mistakes_{std::move(mistake)} {}

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }

  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }

  const std::vector<Mistake>& mistakes() const { return mistakes_; }

 private:
  std::optional<T> value_;
  std::vector<Mistake> mistakes_;
};

}  // namespace engine
