// A list whose first few elements stand inside it. With thousands of short lists, those are found beside whatever else is looked at, and
// not in a cache line and a page of their own. (Boost's small_vector is such a list; nothing else here needs Boost.)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace engine {

template <class Each, std::uint32_t kInside>
class SmallList {
  static_assert(std::is_trivially_copyable_v<Each>);

 public:
  SmallList() = default;
  SmallList(const SmallList& other) { assign(other); }
  SmallList& operator=(const SmallList& other) {
    if (this != &other) assign(other);
    return *this;
  }
  SmallList(SmallList&& other) noexcept { take(other); }
  SmallList& operator=(SmallList&& other) noexcept {
    if (this == &other) return *this;
    let_go();
    take(other);
    return *this;
  }
  ~SmallList() { let_go(); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Each* data() { return data_; }
  const Each* data() const { return data_; }
  Each* begin() { return data_; }
  Each* end() { return data_ + size_; }
  const Each* begin() const { return data_; }
  const Each* end() const { return data_ + size_; }
  Each& operator[](std::size_t i) { return data_[i]; }
  const Each& operator[](std::size_t i) const { return data_[i]; }
  Each& front() { return data_[0]; }
  const Each& front() const { return data_[0]; }
  Each& back() { return data_[size_ - 1]; }
  const Each& back() const { return data_[size_ - 1]; }

  // Its memory stays.
  void clear() { size_ = 0; }
  void push_back(const Each& one) {
    if (size_ == room_) [[unlikely]] {
      return push_copy(one);
    }
    data_[size_++] = one;
  }
  void pop_back() { --size_; }
  void insert(Each* place, Each one) {
    const std::ptrdiff_t at = place - data_;
    if (size_ == room_) [[unlikely]] {
      grow(2 * room_);
    }
    std::copy_backward(data_ + at, data_ + size_, data_ + size_ + 1);
    data_[at] = one;
    ++size_;
  }
  void erase(Each* first, Each* last) {
    std::copy(last, end(), first);
    size_ -= std::uint32_t(last - first);
  }
  void erase(Each* one) { erase(one, one + 1); }
  template <class Which>
  void erase_if(Which which) {
    size_ = std::uint32_t(std::remove_if(begin(), end(), which) - data_);
  }
  void assign(std::size_t count, const Each& one) {
    if (count > room_) grow(std::uint32_t(count));
    std::fill_n(data_, count, one);
    size_ = std::uint32_t(count);
  }
  // Copies elements from elsewhere, none of which may be in this list.
  void assign(std::span<const Each> others) {
    if (others.size() > room_) grow(std::uint32_t(others.size()));
    std::copy(others.begin(), others.end(), data_);
    size_ = std::uint32_t(others.size());
  }
  // Where the so-many-eth stands if it stands inside: known before anything of the list is.
  const Each* place_inside(std::size_t i) const { return inside_ + i; }

 private:
  bool inside() const { return data_ == inside_; }
  void let_go() {
    if (!inside()) delete[] data_;
  }
  void take(SmallList& other) {
    size_ = std::exchange(other.size_, 0);
    room_ = std::exchange(other.room_, kInside);
    data_ = other.inside() ? inside_ : std::exchange(other.data_, other.inside_);
    if (inside()) std::copy_n(other.inside_, size_, inside_);
  }
  [[gnu::noinline]] void grow(std::uint32_t room) {
    Each* const larger = new Each[room];
    std::copy_n(data_, size_, larger);
    let_go();
    data_ = larger;
    room_ = room;
  }
  // A copy: it may be one of the list.
  [[gnu::noinline]] void push_copy(Each one) {
    grow(2 * room_);
    data_[size_++] = one;
  }

  Each* data_ = inside_;
  std::uint32_t size_ = 0, room_ = kInside;
  Each inside_[kInside];
};

}  // namespace engine
