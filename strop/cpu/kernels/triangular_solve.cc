#include "strop/cpu/kernels/triangular_solve.h"

#include <algorithm>
#include <atomic>

#include "strop/base/isa.h"
#include "strop/cpu/kernels/eigen_kernels.h"
#include "strop/cpu/kernels/parallel.h"
#include "strop/cpu/kernels/scratch.h"
#include "strop/cpu/kernels/small_systems.h"
#include "strop/runtime/lapack/substitution.h"

namespace strop::cpu {
namespace {

constexpr int64_t kColumns = 64;              // right-hand sides a task; enough to pay for packing the triangle
constexpr int64_t kFewColumns = 16;           // of a panel
constexpr int64_t kTaskProducts = 1 << 15;    // small systems are grouped to about this many multiplications a task
constexpr int64_t kCopiedElements = 1 << 20;  // of triangles that are read another way
constexpr int64_t kFewestColumns = 4;         // of panels; packing and copying cost more than fewer gain
constexpr int64_t kWantedPieces = 4;          // of the right-hand sides, as long as a panel has a vector

// op(a) x = b for the first matrix, without addresses. From the right: x op(a) = b says op(a)^T x^T = b^T.
template <class T>
TriangularSystem<T> SystemOf(const TriangularOptions& options, bool transposed, int64_t m, int64_t n) {
  TriangularSystem<T> system;
  system.size = options.left_side ? m : n;
  system.columns = options.left_side ? n : m;
  system.triangle_stride = system.size;
  system.b_stride = n;
  system.b_by_rows = options.left_side;
  system.lower = options.lower != transposed;
  system.conjugate = options.transpose == TriangularTranspose::kAdjoint;
  return system;
}

// Rows [begin, end) of a triangle as Eigen is to read it: transposed, and with ones on the diagonal, if so asked.
template <class T>
void CopyRows(const TriangularSystem<T>& system, bool transposed, bool unit_diagonal, int64_t begin, int64_t end,
              const T* from, T* to) {
  constexpr int64_t kSquare = 16;
  const int64_t size = system.size;
  for (int64_t r0 = begin; r0 < end; r0 += kSquare)
    for (int64_t c0 = 0; c0 < size; c0 += kSquare)
      for (int64_t r = r0; r < std::min(end, r0 + kSquare); ++r) {
        const int64_t first = system.lower ? c0 : std::max(c0, r);
        const int64_t last = std::min({c0 + kSquare, size, system.lower ? r + 1 : size});
        for (int64_t c = first; c < last; ++c)
          to[r * size + c] = unit_diagonal && r == c ? T(1) : from[transposed ? c * size + r : r * size + c];
      }
}

template <class T>
void SolveSmall(const TriangularSystem<T>& system, bool transposed, bool unit_diagonal, int64_t batch,
                const T* triangles, T* b, ThreadPool* pool) {
  SmallSystems<T> small;
  small.size = system.size;
  small.columns = system.columns;
  small.lower = system.lower;
  small.unit_diagonal = unit_diagonal;
  small.row_stride = transposed ? 1 : system.size;
  small.column_stride = transposed ? system.size : 1;
  small.b_row_stride = system.b_by_rows ? system.b_stride : 1;
  small.b_column_stride = system.b_by_rows ? 1 : system.b_stride;
  if (batch == 1) return WithVectors([&] { small.SolveOne(triangles, b); });
  constexpr int64_t kLanes = SmallSystems<T>::kLanes;
  const int64_t work = system.size * (system.size + 2 * system.columns) * kLanes;
  ForEachPiece(pool, (batch + kLanes - 1) / kLanes, std::max<int64_t>(1, kTaskProducts / work),
               [&](int64_t begin, int64_t end) {
                 WithVectors([&] {
                   for (int64_t g = begin; g < end; ++g)
                     small.Solve(triangles, b, g * kLanes, std::min(kLanes, batch - g * kLanes));
                 });
               });
}

Status NoMemory(int64_t size) { return ResourceExhausted("triangular-solve: no memory for systems of order ", size); }

// By panels of right-hand sides.
template <class T>
class PanelSolver {
 public:
  PanelSolver(const TriangularSystem<T>& system, bool transposed, bool unit_diagonal)
      : kernels_(lapack::BestSubstitution<T>()), size_(system.size), columns_(system.columns) {
    const int64_t step = system.lower ? 1 : -1;  // upper: from the end
    triangle_ = {.size = size_,
                 .row_stride = (transposed ? 1 : size_) * step,
                 .column_stride = (transposed ? size_ : 1) * step,
                 .unit_diagonal = unit_diagonal};
    b_row_ = (system.b_by_rows ? system.b_stride : 1) * step;
    b_column_ = system.b_by_rows ? 1 : system.b_stride;
    if (!system.lower) {
      first_ = size_ * size_ - 1;
      b_first_ = (1 - size_) * b_row_;
    }
    packs_ = transposed;
    blocks_ = kernels_.blocks(size_);
    packed_elements_ = packs_ ? kernels_.packed_elements(size_) : 0;
    width_ = std::clamp<int64_t>((columns_ + kWantedPieces - 1) / kWantedPieces, kFewColumns, kColumns);
    width_ = (width_ + kFewColumns - 1) / kFewColumns * kFewColumns;
  }

  // False: no memory.
  bool Run(int64_t batch, const T* triangles, T* b, ThreadPool* pool) const {
    const int64_t chunk = packs_ ? std::clamp<int64_t>(kCopiedElements / packed_elements_, 1, batch) : batch;
    const Scratch<T> packed(chunk * packed_elements_);
    std::atomic<bool> memory{packed.get() != nullptr};
    const int64_t pieces = (columns_ + width_ - 1) / width_, products = size_ * size_ * std::min(width_, columns_);
    for (int64_t done = 0; done < batch && memory; done += chunk) {
      const int64_t count = std::min(chunk, batch - done);
      if (packs_) Pack(count, triangles + done * size_ * size_, packed.get(), pool);
      ForEachPiece(
          pool, count * pieces, std::max<int64_t>(1, kTaskProducts / products), [&](int64_t begin, int64_t end) {
            const Scratch<T> panel(blocks_ * kernels_.rows * kernels_.width);
            if (!panel.get()) return memory.store(false, std::memory_order_relaxed);
            for (int64_t piece = begin; piece < end; ++piece) {
              const int64_t matrix = piece / pieces;
              lapack::SubstitutionTriangle<T> a = triangle_;
              a.packed = packs_;
              a.at = packs_ ? packed.get() + matrix * packed_elements_
                            : triangles + (done + matrix) * size_ * size_ + first_;
              Solve(a, piece % pieces * width_, b + (done + matrix) * size_ * columns_ + b_first_, panel.get());
            }
          });
    }
    return memory.load();
  }

 private:
  void Pack(int64_t count, const T* triangles, T* packed, ThreadPool* pool) const {
    ForEachPiece(pool, count * blocks_, std::max<int64_t>(1, kTaskProducts * blocks_ / packed_elements_),
                 [&](int64_t begin, int64_t end) {
                   while (begin < end) {
                     const int64_t matrix = begin / blocks_, block = begin % blocks_;
                     const int64_t last = std::min(blocks_, block + end - begin);
                     lapack::SubstitutionTriangle<T> a = triangle_;
                     a.at = triangles + matrix * size_ * size_ + first_;
                     kernels_.pack(a, block, last, packed + matrix * packed_elements_);
                     begin += last - block;
                   }
                 });
  }

  // Right-hand sides [from, from + width_).
  void Solve(const lapack::SubstitutionTriangle<T>& a, int64_t from, T* b, T* panel) const {
    const int64_t to = std::min(from + width_, columns_);
    for (int64_t c = from; c < to; c += kernels_.width)
      kernels_.solve(a, std::min<int64_t>(kernels_.width, to - c), b + c * b_column_, b_row_, b_column_, panel);
  }

  const lapack::SubstitutionKernels<T>& kernels_;
  int64_t size_, columns_;
  lapack::SubstitutionTriangle<T> triangle_;  // of the first matrix, but for its address
  int64_t first_ = 0, b_first_ = 0;           // where a matrix, and its right-hand sides, have their first unknown
  int64_t b_row_ = 0, b_column_ = 0;
  bool packs_ = false;
  int64_t blocks_ = 0, packed_elements_ = 0;
  int64_t width_ = 0;  // right-hand sides of a piece
};

// Right-hand sides one by one, by the triangle as it lies.
template <class T>
bool SolveFew(const TriangularSystem<T>& system, bool transposed, bool unit_diagonal, int64_t batch, const T* triangles,
              T* b, ThreadPool* pool) {
  const auto solve_one = lapack::BestSubstitution<T>().solve_one;
  const int64_t size = system.size, columns = system.columns;
  const int64_t step = system.b_by_rows ? system.b_stride : 1, apart = system.b_by_rows ? 1 : system.b_stride;
  std::atomic<bool> memory{true};
  ForEachPiece(pool, batch * columns, std::max<int64_t>(1, kTaskProducts / (size * size)),
               [&](int64_t begin, int64_t end) {
                 const Scratch<T> dense(step == 1 ? 0 : size);
                 if (step != 1 && !dense.get()) return memory.store(false, std::memory_order_relaxed);
                 for (int64_t n = begin; n < end; ++n) {
                   const lapack::DenseTriangle<T> a = {.size = size,
                                                       .at = triangles + n / columns * size * size,
                                                       .stride = size,
                                                       .by_rows = !transposed,
                                                       .lower = system.lower,
                                                       .unit_diagonal = unit_diagonal};
                   T* const own = b + n / columns * size * columns + n % columns * apart;
                   T* const x = step == 1 ? own : dense.get();
                   for (int64_t i = 0; i < size && x != own; ++i) x[i] = own[i * step];
                   solve_one(a, x);
                   for (int64_t i = 0; i < size && x != own; ++i) own[i * step] = x[i];
                 }
               });
  return memory.load();
}

// Complex systems, which have no kernels of their own.
template <class T>
Status SolveByEigen(const TriangularSystem<T>& first, bool transposed, bool unit_diagonal, int64_t batch,
                    const T* all_triangles, T* b, ThreadPool* pool) {
  const EigenTable<T>& eigen = BestEigenIsa().table<T>();
  const int64_t size = first.size * first.size;
  const int64_t pieces = (first.columns + kColumns - 1) / kColumns;
  const int64_t products = size * std::min(kColumns, first.columns);
  const bool copy = transposed || unit_diagonal;
  const int64_t chunk = copy ? std::clamp<int64_t>(kCopiedElements / size, 1, batch) : batch;  // matrices at a time
  const Scratch<T> copies(copy ? chunk * size : 0);
  std::atomic<bool> memory{!copy || copies.get()};
  for (int64_t start = 0; start < batch && memory; start += chunk) {
    const int64_t count = std::min(chunk, batch - start);
    const T* triangles = all_triangles + start * size;
    if (copy) {
      ForEachPiece(pool, count * first.size, std::max<int64_t>(16, kTaskProducts / first.size / 16 * 16),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t row = begin; row < end;) {
                       const int64_t matrix = row / first.size, r = row % first.size;
                       const int64_t rows = std::min(end - row, first.size - r);
                       CopyRows(first, transposed, unit_diagonal, r, r + rows, triangles + matrix * size,
                                copies.get() + matrix * size);
                       row += rows;
                     }
                   });
      triangles = copies.get();
    }
    ForEachPiece(pool, count * pieces, std::max<int64_t>(1, kTaskProducts / products), [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t matrix = piece / pieces, column = piece % pieces * kColumns;
        TriangularSystem<T> system = first;
        system.triangle = triangles + matrix * size;
        system.b = b + (start + matrix) * first.size * first.columns + column * (first.b_by_rows ? 1 : first.b_stride);
        system.columns = std::min(kColumns, first.columns - column);
        if (!eigen.solve(system)) memory.store(false, std::memory_order_relaxed);
      }
    });
  }
  return memory.load() ? OkStatus() : NoMemory(first.size);
}

template <class T>
Status Solve(const TriangularOptions& options, int64_t batch, int64_t m, int64_t n, const void* triangles, void* rhs,
             ThreadPool* pool) {
  const bool transposed = (options.transpose == TriangularTranspose::kNone) != options.left_side;
  const TriangularSystem<T> first = SystemOf<T>(options, transposed, m, n);
  const T* const a = static_cast<const T*>(triangles);
  T* const b = static_cast<T*>(rhs);
  if constexpr (std::is_floating_point_v<T>) {
    using Small = SmallSystems<T>;
    const int64_t most = batch < Small::kLanes ? Small::kMaxSizeOfOne : Small::kMaxSize;
    if (first.size <= most && first.columns <= Small::kMaxColumns) {
      SolveSmall(first, transposed, options.unit_diagonal, batch, a, b, pool);
      return OkStatus();
    }
    const bool solved = first.columns >= kFewestColumns
                            ? PanelSolver<T>(first, transposed, options.unit_diagonal).Run(batch, a, b, pool)
                            : SolveFew(first, transposed, options.unit_diagonal, batch, a, b, pool);
    return solved ? OkStatus() : NoMemory(first.size);
  } else {
    return SolveByEigen(first, transposed, options.unit_diagonal, batch, a, b, pool);
  }
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
