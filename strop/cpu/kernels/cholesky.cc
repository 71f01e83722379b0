#include "strop/cpu/kernels/cholesky.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "strop/cpu/kernels/eigen_kernels.h"
#include "strop/cpu/kernels/parallel.h"

namespace strop::cpu {
namespace {

constexpr int64_t kWhole = 256;             // orders up to this are one call
constexpr int64_t kBlock = 128;             // columns a step
constexpr int64_t kTile = 128;              // rows and columns of a task
constexpr int64_t kTaskElements = 1 << 12;  // small matrices are grouped to about this many a task

// a = U^H U is a = L L^H with L = U^H: an upper factor is computed in the other triangle and mirrored.
template <class T>
class Factorization {
 public:
  Factorization(bool lower, int64_t n) : eigen_(BestEigenIsa().table<T>()), lower_(lower), n_(n) {}

  // False: no memory.
  bool Run(T* a, ThreadPool* pool) const {
    if (!lower_) Mirror(a, [this](T* upper, T* lower) { *lower = Conjugate(*upper); });
    FactorResult result = n_ <= kWhole ? eigen_.factor(n_, a, n_) : RunBlocks(a, pool);
    if (result == FactorResult::kNoMemory) return false;
    if (result == FactorResult::kIndefinite) {
      using Real = decltype(std::real(T()));
      std::fill_n(reinterpret_cast<Real*>(a), n_ * n_ * (sizeof(T) / sizeof(Real)),
                  std::numeric_limits<Real>::quiet_NaN());
      return true;
    }
    Mirror(a, [this](T* upper, T* lower) {
      *upper = lower_ ? T(0) : Conjugate(*lower);
      if (!lower_) *lower = T(0);
    });
    return true;
  }

 private:
  T* At(T* a, int64_t row, int64_t column) const { return a + row * n_ + column; }

  static T Conjugate(T v) {
    if constexpr (std::is_floating_point_v<T>)
      return v;
    else
      return std::conj(v);
  }

  // f(above the diagonal, its mirror image below), in squares that the cache holds.
  template <class F>
  void Mirror(T* a, F f) const {
    constexpr int64_t kSquare = 32;
    for (int64_t r0 = 0; r0 < n_; r0 += kSquare)
      for (int64_t c0 = r0; c0 < n_; c0 += kSquare)
        for (int64_t r = r0; r < std::min(n_, r0 + kSquare); ++r)
          for (int64_t c = std::max(c0, r + 1); c < std::min(n_, c0 + kSquare); ++c) f(At(a, r, c), At(a, c, r));
  }

  FactorResult RunBlocks(T* a, ThreadPool* pool) const {
    std::atomic<bool> memory{true};
    for (int64_t first = 0; first < n_; first += kBlock) {
      const int64_t width = std::min(kBlock, n_ - first), below = first + width;
      const FactorResult diagonal = eigen_.factor(width, At(a, first, first), n_);
      if (diagonal != FactorResult::kOk) return diagonal;
      const int64_t tiles = (n_ - below + kTile - 1) / kTile;
      const auto size = [&](int64_t start) { return std::min(kTile, n_ - start); };
      ForEachTask(pool, tiles, [&](int64_t i) {  // x L^H = rows, that is conj(L) x^T = rows^T
        const int64_t row = below + i * kTile;
        const TriangularSystem<T> system = {.size = width,
                                            .columns = size(row),
                                            .triangle = At(a, first, first),
                                            .triangle_stride = n_,
                                            .b = At(a, row, first),
                                            .b_stride = n_,
                                            .b_by_rows = false,
                                            .conjugate = true};
        if (!eigen_.solve(system)) memory.store(false, std::memory_order_relaxed);
      });
      ForEachTask(pool, tiles * tiles, [&](int64_t task) {
        if (task % tiles > task / tiles) return;
        const int64_t row = below + task / tiles * kTile, column = below + task % tiles * kTile;
        if (!eigen_.subtract_product(size(row), size(column), width, At(a, row, first), At(a, column, first),
                                     At(a, row, column), n_))
          memory.store(false, std::memory_order_relaxed);
      });
      if (!memory.load()) return FactorResult::kNoMemory;
    }
    return FactorResult::kOk;
  }

  const EigenTable<T>& eigen_;
  bool lower_;
  int64_t n_;
};

template <class T>
Status Factor(bool lower, int64_t batch, int64_t n, void* data, ThreadPool* pool) {
  const Factorization<T> factorization(lower, n);
  T* a = static_cast<T*>(data);
  std::atomic<bool> memory{true};
  const auto factor = [&](int64_t begin, int64_t end, ThreadPool* threads) {
    for (int64_t b = begin; b < end; ++b)
      if (!factorization.Run(a + b * n * n, threads)) memory.store(false, std::memory_order_relaxed);
  };
  if (n > kWhole && pool && batch < pool->num_threads()) {
    factor(0, batch, pool);
  } else {
    ForEachPiece(pool, batch, std::max<int64_t>(1, kTaskElements / (n * n)),
                 [&](int64_t begin, int64_t end) { factor(begin, end, nullptr); });
  }
  if (!memory.load()) return ResourceExhausted("cholesky: no memory to factor matrices of order ", n);
  return OkStatus();
}

}  // namespace

Status Cholesky(ElementType type, bool lower, int64_t batch, int64_t n, void* a, ThreadPool* pool) {
  if (batch < 0 || n < 0) return InvalidArgument("cholesky: negative sizes");
  const bool empty = batch == 0 || n == 0;
  switch (type) {
    case ElementType::F32: return empty ? OkStatus() : Factor<float>(lower, batch, n, a, pool);
    case ElementType::F64: return empty ? OkStatus() : Factor<double>(lower, batch, n, a, pool);
    case ElementType::C64: return empty ? OkStatus() : Factor<std::complex<float>>(lower, batch, n, a, pool);
    case ElementType::C128: return empty ? OkStatus() : Factor<std::complex<double>>(lower, batch, n, a, pool);
    default: return Unimplemented("cholesky: no factorisation for ", Name(type));
  }
}

}  // namespace strop::cpu
