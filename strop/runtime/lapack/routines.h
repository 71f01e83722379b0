// Every routine, one maker each for a type of element. The operands, results and attributes are those of jaxlib's
// custom calls of the same names; matrices lie column by column. Those of rows.cc are our own.
#pragma once
#include <algorithm>
#include <complex>
#include <limits>
#include <memory>

#include "strop/runtime/lapack/call.h"

namespace strop::lapack {

template <class T>
void FillNaN(T* data, int64_t n) {
  std::fill_n(data, n, T(std::numeric_limits<Real<T>>::quiet_NaN()));
}

using MakeRoutine = std::unique_ptr<Routine> (*)();

// One for each of s, d, c and z; null where the routine does not exist.
struct Makers {
  MakeRoutine of[4];
};
template <template <class> class R>
constexpr Makers AllTypes() {
  return {{[]() -> std::unique_ptr<Routine> { return std::make_unique<R<float>>(); },
           []() -> std::unique_ptr<Routine> { return std::make_unique<R<double>>(); },
           []() -> std::unique_ptr<Routine> { return std::make_unique<R<std::complex<float>>>(); },
           []() -> std::unique_ptr<Routine> { return std::make_unique<R<std::complex<double>>>(); }}};
}
template <template <class> class R>
constexpr Makers RealTypes() {
  return {{[]() -> std::unique_ptr<Routine> { return std::make_unique<R<float>>(); },
           []() -> std::unique_ptr<Routine> { return std::make_unique<R<double>>(); }, nullptr, nullptr}};
}

// factorizations.cc
Makers Getrf();        // a -> lu, pivots, info
Makers GetrfByRows();  // the same, matrices row by row; a call of our own, for what is not small
Makers Potrf();        // a -> factor, info
Makers Geqrf();        // a -> householder vectors and r, tau
Makers Geqp3();        // a, pivots -> householder vectors and r, pivots, tau
Makers Orgqr();        // a, tau -> q (ungqr for complex elements)
Makers Ormqr();        // a, tau, c -> q c or c q (unmqr for complex elements)

// decompositions.cc
Makers Geev();  // a -> values (real and imaginary parts apart for real elements), left and right vectors, info
Makers Gees();  // a -> t, vectors, values as above, number selected, info

// spectra.cc
Makers Gesdd();  // a -> a destroyed, s, u, vt, info
Makers Gesvd();
Makers Syevd();  // a -> vectors, values, info (heevd for complex elements)

// reductions.cc
Makers Gehrd();  // a -> reflectors and h, tau, info
Makers Sytrd();  // a -> reflectors, diagonal, off-diagonal, tau, info (hetrd for complex elements)
Makers Trsm();   // a, b -> x
Makers Gtsv();   // lower, diagonal, upper, b -> the first three destroyed, x, info

// rows.cc: small matrices row by row, without a library
Makers GetrfRows();     // a -> lu, pivots, info; of orders up to 32, as all but the last two
Makers GesvRows();      // a, b -> x with a x = b, by LU; a -> its inverse. A pivot that is zero divides
Makers PotrfRows();     // a -> factor, info; the other triangle stays
Makers CholeskyRows();  // a -> factor, zeros in the other triangle; NaN of what is not positive definite. `symmetrize`:
                        // of the mean of a and its transpose
Makers PosvRows();      // a, b -> x with a x = b, by that factor
Makers GeqrfRows();     // a -> householder vectors and r, tau; of up to 1024 elements
Makers OrgqrRows();     // a, tau -> q
Makers SyevdRows();     // a -> vectors, values, info; of orders up to 32
Makers GesddRows();     // a -> a, s, u, vt, info; of square ones of orders up to 32

}  // namespace strop::lapack
