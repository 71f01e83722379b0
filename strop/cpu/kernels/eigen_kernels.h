// Dense linear algebra by Eigen, one table per instruction set.
//
// eigen_kernels.inc is compiled once for each set with its own flags. Eigen is all templates, whose instances of the
// same name the linker would merge, whatever flags they were compiled with; each of the files therefore gives Eigen's
// namespace a name of its own (tests/symbols checks what is left). Kernels work on one matrix in one thread; cutting
// large problems into pieces is the caller's (cholesky.cc, triangular_solve.cc).
#pragma once
#include <complex>
#include <cstdint>
#include <type_traits>

namespace strop::cpu {

enum class FactorResult : uint8_t { kOk, kIndefinite, kNoMemory };

// A triangular system for `size` unknowns: triangle * x = b for each of the columns of b, which x replaces.
template <class T>
struct TriangularSystem {
  int64_t size = 0, columns = 0;
  const T* triangle = nullptr;
  int64_t triangle_stride = 0;
  T* b = nullptr;
  int64_t b_stride = 0;
  bool b_by_rows = true;  // what its stride steps over; else columns
  bool lower = true, conjugate = false;
};

// Matrices by rows, `stride` elements from one to the next. Each further way of reading them would be compiled four
// times an instruction set: callers transpose what lies otherwise.
template <class T>
struct EigenTable {
  // The lower triangle of a = L L^H becomes L; what lies above is neither read nor kept.
  FactorResult (*factor)(int64_t n, T* a, int64_t stride) = nullptr;
  // False: no memory.
  bool (*solve)(const TriangularSystem<T>& system) = nullptr;
  // c -= a b^H with c m x n, a m x k, b n x k, all with one stride. False: no memory.
  bool (*subtract_product)(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c, int64_t stride) = nullptr;
};

struct EigenIsa {
  EigenTable<float> f32;
  EigenTable<double> f64;
  EigenTable<std::complex<float>> c64;
  EigenTable<std::complex<double>> c128;

  template <class T>
  const EigenTable<T>& table() const {
    if constexpr (std::is_same_v<T, float>) return f32;
    if constexpr (std::is_same_v<T, double>) return f64;
    if constexpr (std::is_same_v<T, std::complex<float>>) return c64;
    if constexpr (std::is_same_v<T, std::complex<double>>) return c128;
  }
};

const EigenIsa& EigenBaseline();
const EigenIsa& EigenAvx2();    // x86 only
const EigenIsa& EigenAvx512();  // x86 only
// The best that this processor runs.
const EigenIsa& BestEigenIsa();

}  // namespace strop::cpu
