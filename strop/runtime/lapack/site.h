// What a routine of LAPACK is told at bind time, checked: shapes, so that the library is never handed a size that the
// buffers do not have, and attributes, so that it never sees a letter that it does not know (it would end the process).
#pragma once
#include <complex>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "strop/runtime/custom_call.h"
#include "strop/runtime/ffi_attributes.h"
#include "strop/runtime/lapack/library.h"
#include "strop/types/literal.h"

namespace strop::lapack {

using Int = int32_t;  // LAPACK's INTEGER

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;
template <class T>
inline constexpr bool kIsComplex = !std::is_same_v<T, Real<T>>;

class Site {
 public:
  // `routine` is the Fortran name: dgetrf. All arguments outlive the object. `library` is null for a routine that asks
  // for none of its functions.
  Site(const CustomCallSite& site, const XLA_FFI_Attrs& attributes, std::string routine, const Library* library)
      : site_(site), attributes_(attributes), routine_(std::move(routine)), library_(library) {}

  size_t operands() const { return site_.operands.size(); }
  Status Arity(size_t operands, size_t results) const;
  // Operand `k` is the batch of matrices: its leading dimensions are those of all others. First of all.
  Status Matrices(size_t k, ElementType type, Int* rows, Int* columns);
  Status SquareMatrices(size_t k, ElementType type, Int* n);
  // The trailing dimensions of an operand or result, behind those of the batch.
  Status Operand(size_t k, ElementType type, std::initializer_list<int64_t> dims) const;
  Status Output(size_t k, ElementType type, std::initializer_list<int64_t> dims) const;
  // The last dimensions of operand k, one or two of them, which are the caller's to judge.
  Status Vector(size_t k, ElementType type, Int* length) const;
  Status Matrix(size_t k, ElementType type, Int* rows, Int* columns) const;

  // An attribute that is a letter, one of `allowed`.
  Status Letter(std::string_view name, std::string_view allowed, char* letter) const;
  Status Number(std::string_view name, int64_t low, int64_t high, Int* number) const;
  Status Flag(std::string_view name, bool* flag) const;

  template <class Fn>
  Status Function(Fn** function) const {
    STROP_ASSIGN(void* found, library_->Find(routine_));
    *function = reinterpret_cast<Fn*>(found);
    return OkStatus();
  }
  // Another routine for elements of the same type, or null if the library lacks it.
  template <class Fn>
  Fn* Other(std::string_view real, std::string_view complex) const {
    const bool is_complex = routine_[0] == 'c' || routine_[0] == 'z';
    return FindOther<Fn>(routine_[0], is_complex ? complex : real);
  }
  // One for real elements that are as precise as these.
  template <class Fn>
  Fn* OtherOfReals(std::string_view routine) const {
    return FindOther<Fn>(routine_[0] == 's' || routine_[0] == 'c' ? 's' : 'd', routine);
  }
  const Library& library() const { return *library_; }
  // The number of elements that a workspace query has answered with, in an element of the workspace.
  template <class T>
  Status WorkSize(T answer, Int info, Int* size) const {
    return CheckWorkSize(static_cast<double>(std::real(answer)), std::is_same_v<Real<T>, float>, info, size);
  }
  // Refuses sizes for which the routine computes its workspace beyond 32 bits: `elements` is an upper bound of it.
  Status Fits(double elements) const;

  int64_t batch() const { return batch_; }
  Status Error(std::string_view what) const;

 private:
  template <class Fn>
  Fn* FindOther(char letter, std::string_view routine) const {
    const Result<void*> found = library_->Find(StrCat(std::string_view(&letter, 1), routine));
    return found.ok() ? reinterpret_cast<Fn*>(*found) : nullptr;
  }
  Status CheckWorkSize(double answer, bool rounded, Int info, Int* size) const;
  Status Check(const Shape& shape, std::string_view which, size_t k, ElementType type,
               std::initializer_list<int64_t> dims) const;
  Status Tail(size_t k, ElementType type, int64_t count, Int* sizes) const;
  Status Integer(std::string_view name, int64_t* value) const;

  const CustomCallSite& site_;
  const XLA_FFI_Attrs& attributes_;
  const std::string routine_;
  const Library* const library_;
  Int64Vector batch_dims_;
  int64_t batch_ = 1;
};

}  // namespace strop::lapack
