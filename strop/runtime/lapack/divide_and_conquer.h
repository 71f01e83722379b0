// What the merges of tridiagonal_eigen.h and bidiagonal_svd.h have in common. Places are one-based, as the library's.
#pragma once
#include <algorithm>
#include <cstdint>

#include "strop/runtime/lapack/in_parallel.h"
#include "strop/runtime/lapack/site.h"

namespace strop::lapack {

// order[i]: the place of the i-th smallest of the `size` values of a merge, of which `left` are left, ascending, and
// the others deflated, descending.
template <class R>
void OrderMerged(const R* values, Int left, Int size, Int* order) {
  for (Int i = 0, j = size - 1; i < left || j >= left;)
    *order++ = 1 + (j < left || (i < left && values[i] <= values[j]) ? i++ : j--);
}

// The same of any values, near to it already: what deflates is moved a little, maybe past its neighbours.
template <class R>
void SortPlaces(const R* values, Int size, Int* order) {
  std::sort(order, order + size, [values](Int a, Int b) {
    return values[a - 1] < values[b - 1] || (values[a - 1] == values[b - 1] && a < b);
  });
}

// The roots of a merge, in parts that several threads take.
struct MergeParts {
  static constexpr int64_t kMost = 16;
  explicit MergeParts(Int roots) : roots(roots), each(std::max<Int>(16, (roots + kMost - 1) / kMost)) {}
  int64_t count() const { return (roots + each - 1) / each; }
  // part(begin, end, number) for each.
  template <class Fn>
  void Run(const Library& library, ThreadPool* pool, const Fn& part) const {
    RunInParallel(library, count(), pool, [&](int64_t p) {
      const Int begin = static_cast<Int>(p) * each;
      part(begin, std::min(begin + each, roots), p);
    });
  }
  const Int roots, each;
};

}  // namespace strop::lapack
