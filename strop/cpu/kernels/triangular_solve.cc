#include "strop/cpu/kernels/triangular_solve.h"

#include <algorithm>
#include <atomic>

#include "strop/cpu/kernels/eigen_kernels.h"
#include "strop/cpu/kernels/parallel.h"

namespace strop::cpu {
namespace {

constexpr int64_t kColumns = 64;            // right-hand sides a task; enough to pay for packing the triangle
constexpr int64_t kTaskProducts = 1 << 15;  // small systems are grouped to about this many multiplications a task

// The system of the first matrix, without addresses. From the right: x op(a) = b says op(a)^T x^T = b^T.
template <class T>
TriangularSystem<T> SystemOf(const TriangularOptions& options, int64_t m, int64_t n) {
  const bool by_columns = (options.transpose == TriangularTranspose::kNone) != options.left_side;
  TriangularSystem<T> system;
  system.size = options.left_side ? m : n;
  system.columns = options.left_side ? n : m;
  system.triangle_stride = system.size;
  system.b_stride = n;
  system.triangle_by_rows = !by_columns;
  system.b_by_rows = options.left_side;
  system.lower = options.lower != by_columns;
  system.unit_diagonal = options.unit_diagonal;
  system.conjugate = options.transpose == TriangularTranspose::kAdjoint;
  return system;
}

template <class T>
Status Solve(const TriangularOptions& options, int64_t batch, int64_t m, int64_t n, const void* a, void* b,
             ThreadPool* pool) {
  const EigenTable<T>& eigen = BestEigenIsa().table<T>();
  const TriangularSystem<T> first = SystemOf<T>(options, m, n);
  const int64_t pieces = (first.columns + kColumns - 1) / kColumns;
  const int64_t products = first.size * first.size * std::min(kColumns, first.columns);
  std::atomic<bool> memory{true};
  ForEachPiece(pool, batch * pieces, std::max<int64_t>(1, kTaskProducts / products), [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t matrix = piece / pieces, column = piece % pieces * kColumns;
      TriangularSystem<T> system = first;
      system.triangle = static_cast<const T*>(a) + matrix * first.size * first.size;
      system.b = static_cast<T*>(b) + matrix * m * n + column * (first.b_by_rows ? 1 : first.b_stride);
      system.columns = std::min(kColumns, first.columns - column);
      if (!eigen.solve(system)) memory.store(false, std::memory_order_relaxed);
    }
  });
  if (!memory.load()) return ResourceExhausted("triangular-solve: no memory for systems of order ", first.size);
  return OkStatus();
}

}  // namespace

Status TriangularSolve(ElementType type, const TriangularOptions& options, int64_t batch, int64_t m, int64_t n,
                       const void* a, void* b, ThreadPool* pool) {
  if (batch < 0 || m < 0 || n < 0) return InvalidArgument("triangular-solve: negative sizes");
  const bool empty = batch == 0 || m == 0 || n == 0;
  switch (type) {
    case ElementType::F32: return empty ? OkStatus() : Solve<float>(options, batch, m, n, a, b, pool);
    case ElementType::F64: return empty ? OkStatus() : Solve<double>(options, batch, m, n, a, b, pool);
    case ElementType::C64: return empty ? OkStatus() : Solve<std::complex<float>>(options, batch, m, n, a, b, pool);
    case ElementType::C128: return empty ? OkStatus() : Solve<std::complex<double>>(options, batch, m, n, a, b, pool);
    default: return Unimplemented("triangular-solve: no solver for ", Name(type));
  }
}

}  // namespace strop::cpu
