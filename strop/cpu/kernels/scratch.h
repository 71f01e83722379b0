// Scratch<T>: uninitialised, 64-byte aligned memory for the duration of a kernel; get() is null when there is none.
#pragma once
#include <cstdint>
#include <new>
#include <type_traits>

namespace strop::cpu {

template <class T>
class Scratch {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit Scratch(int64_t n)
      : data_(static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64}, std::nothrow))) {}
  ~Scratch() { ::operator delete(data_, std::align_val_t{64}); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* get() const { return data_; }

 private:
  T* data_;
};

}  // namespace strop::cpu
