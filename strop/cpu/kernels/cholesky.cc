#include "strop/cpu/kernels/cholesky.h"

#include <atomic>
#include <cmath>
#include <limits>

#include "strop/cpu/kernels/isa.h"
#include "strop/cpu/kernels/parallel.h"
#include "strop/cpu/kernels/scratch.h"
#include "strop/cpu/kernels/triangular_strip.h"

namespace strop::cpu {
namespace {

constexpr int64_t kBlock = 64;

// One matrix, as L in planes of n x n reals.
template <class R>
class Factorization {
 public:
  Factorization(bool is_complex, bool lower, int64_t n) : planes_(is_complex ? 2 : 1), lower_(lower), n_(n) {}

  // False: no memory.
  bool Run(R* a, ThreadPool* pool) const {
    const int64_t blocks = (n_ + kBlock - 1) / kBlock;
    Scratch<R> matrix(planes_ * n_ * n_), left(planes_ * (n_ + kBlock) * kBlock);
    if (!matrix.get() || !left.get()) return false;
    Strip<R> l{matrix.get(), planes_ == 2 ? matrix.get() + n_ * n_ : nullptr};  // planes; rows are n long here
    Load(a, l);
    bool positive = true;
    for (int64_t j = 0; j < blocks && positive; ++j) {
      const int64_t first = j * kBlock, width = std::min(kBlock, n_ - first);
      PackLeft(l, first, width, left.get());
      ForEachTask(pool, blocks - j, [&](int64_t i) { Update(l, first, width, left.get(), first + i * kBlock); });
      positive = FactorDiagonal(l, first, width);
      if (positive)
        ForEachTask(pool, blocks - j - 1, [&](int64_t i) { SolveRows(l, first, width, first + (i + 1) * kBlock); });
    }
    Store(l, positive, a);
    return true;
  }

 private:
  static constexpr int64_t kWidth = Strip<R>::kWidth;

  MatrixView<R> View(const Strip<R>& l, int64_t row, int64_t column) const {
    return {.re = l.re + row * n_ + column, .im = l.im ? l.im + row * n_ + column : nullptr, .row = n_, .col = 1};
  }

  // The triangle that is read, as a lower one; of the upper triangle u, l = conj(u)^T.
  void Load(const R* a, const Strip<R>& l) const {
    for (int64_t r = 0; r < n_; ++r) {
      for (int64_t c = 0; c <= r; ++c) {
        const R* element = a + planes_ * (lower_ ? r * n_ + c : c * n_ + r);
        l.re[r * n_ + c] = element[0];
        if (l.im) l.im[r * n_ + c] = r == c ? R{0} : lower_ ? element[1] : -element[1];
      }
    }
  }
  void Store(const Strip<R>& l, bool positive, R* a) const {
    const R nan = std::numeric_limits<R>::quiet_NaN();
    for (int64_t r = 0; r < n_; ++r) {
      for (int64_t c = 0; c < n_; ++c) {
        R* element = a + planes_ * (lower_ ? r * n_ + c : c * n_ + r);
        element[0] = !positive ? nan : c <= r ? l.re[r * n_ + c] : R{0};
        if (l.im) element[1] = !positive ? nan : c < r ? (lower_ ? l.im[r * n_ + c] : -l.im[r * n_ + c]) : R{0};
      }
    }
  }

  // Strips of conj(L[first.., 0:first])^T: what the rows of the column block are multiplied with.
  void PackLeft(const Strip<R>& l, int64_t first, int64_t width, R* left) const {
    for (int64_t s = 0; s * kWidth < width; ++s) {
      Strip<R> strip = LeftStrip(left, first, s);
      for (int64_t w = 0; w < kWidth; ++w) {
        int64_t row = first + s * kWidth + w;
        for (int64_t k = 0; k < first; ++k) {
          strip.re[k * kWidth + w] = row < first + width ? l.re[row * n_ + k] : R{0};
          if (strip.im) strip.im[k * kWidth + w] = row < first + width ? -l.im[row * n_ + k] : R{0};
        }
      }
    }
  }
  Strip<R> LeftStrip(R* left, int64_t depth, int64_t s) const {
    R* re = left + s * planes_ * depth * kWidth;
    return {re, planes_ == 2 ? re + depth * kWidth : nullptr};
  }

  // L[row0.., first..] -= L[row0.., 0:first] conj(L[first.., 0:first])^T for up to kBlock rows.
  void Update(const Strip<R>& l, int64_t first, int64_t width, R* left, int64_t row0) const {
    if (first == 0) return;
    const int64_t rows = std::min(kBlock, n_ - row0);
    const MatrixView<R> view = View(l, 0, 0);
    auto body = [&] {
      alignas(64) R memory[2 * kBlock * kWidth];
      Strip<R> tile{memory, planes_ == 2 ? memory + kBlock * kWidth : nullptr};
      for (int64_t s = 0; s * kWidth < width; ++s) {
        const int64_t column = first + s * kWidth, used = std::min(kWidth, first + width - column);
        for (int64_t i = 0; i < kBlock * kWidth * planes_; ++i) memory[i] = 0;
        CopyTile(l, row0, column, rows, used, tile, /*to_tile=*/true);
        SubtractProduct(view, row0, rows, first, LeftStrip(left, first, s), tile);
        CopyTile(l, row0, column, rows, used, tile, /*to_tile=*/false);
      }
    };
    WithVectors(body);
  }
  // Elements above the diagonal travel along; nobody looks at them.
  void CopyTile(const Strip<R>& l, int64_t row0, int64_t column, int64_t rows, int64_t used, const Strip<R>& tile,
                bool to_tile) const {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t w = 0; w < used; ++w) {
        const int64_t at = (row0 + r) * n_ + column + w;
        if (to_tile) {
          tile.re[r * kWidth + w] = l.re[at];
          if (l.im) tile.im[r * kWidth + w] = l.im[at];
        } else {
          l.re[at] = tile.re[r * kWidth + w];
          if (l.im) l.im[at] = tile.im[r * kWidth + w];
        }
      }
    }
  }

  // Unblocked, row by row. False if a pivot is not positive (or NaN).
  bool FactorDiagonal(const Strip<R>& l, int64_t first, int64_t width) const {
    for (int64_t r = first; r < first + width; ++r) {
      for (int64_t c = first; c <= r; ++c) {
        R re = l.re[r * n_ + c], im = l.im ? l.im[r * n_ + c] : R{0};
        for (int64_t k = first; k < c; ++k) {  // minus L[r,k] conj(L[c,k])
          R ar = l.re[r * n_ + k], br = l.re[c * n_ + k];
          re -= ar * br;
          if (!l.im) continue;
          R ai = l.im[r * n_ + k], bi = l.im[c * n_ + k];
          re -= ai * bi;
          im -= ai * br - ar * bi;
        }
        if (r == c) {
          if (!(re > 0) || std::isinf(re)) return false;
          l.re[r * n_ + c] = std::sqrt(re);
          if (l.im) l.im[r * n_ + c] = 0;
        } else {
          l.re[r * n_ + c] = re / l.re[c * n_ + c];
          if (l.im) l.im[r * n_ + c] = im / l.re[c * n_ + c];
        }
      }
    }
    return true;
  }

  // X D^H = A for rows of A below the diagonal block D: D conj(X)^T = conj(A)^T, the rows being the lanes of a strip.
  void SolveRows(const Strip<R>& l, int64_t first, int64_t width, int64_t row0) const {
    const int64_t rows = std::min(kBlock, n_ - row0);
    const MatrixView<R> diagonal = View(l, first, first);
    auto body = [&] {
      alignas(64) R memory[2 * kBlock * kWidth];
      Strip<R> strip{memory, planes_ == 2 ? memory + kBlock * kWidth : nullptr};
      for (int64_t r = 0; r < rows; r += kWidth) {
        for (int64_t c = 0; c < width; ++c) {
          for (int64_t w = 0; w < kWidth; ++w) {
            const bool inside = r + w < rows;
            const int64_t at = inside ? (row0 + r + w) * n_ + first + c : 0;
            strip.re[c * kWidth + w] = inside ? l.re[at] : R{0};
            if (strip.im) strip.im[c * kWidth + w] = inside ? -l.im[at] : R{0};
          }
        }
        SolveStrip(diagonal, /*unit_diagonal=*/false, width, strip);
        for (int64_t w = 0; w < kWidth && r + w < rows; ++w) {
          for (int64_t c = 0; c < width; ++c) {
            const int64_t at = (row0 + r + w) * n_ + first + c;
            l.re[at] = strip.re[c * kWidth + w];
            if (l.im) l.im[at] = -strip.im[c * kWidth + w];
          }
        }
      }
    };
    WithVectors(body);
  }

  int64_t planes_;
  bool lower_;
  int64_t n_;
};

template <class R>
Status Factor(bool is_complex, bool lower, int64_t batch, int64_t n, void* a, ThreadPool* pool) {
  const Factorization<R> factorization(is_complex, lower, n);
  const int64_t size = n * n * (is_complex ? 2 : 1);
  std::atomic<bool> out_of_memory{false};
  // Small matrices: one a task. Large ones: the rows of each are shared out (nested calls run inline).
  auto one = [&](int64_t b, ThreadPool* threads) {
    if (!factorization.Run(static_cast<R*>(a) + b * size, threads))
      out_of_memory.store(true, std::memory_order_relaxed);
  };
  if (n > 4 * kBlock) {
    for (int64_t b = 0; b < batch; ++b) one(b, pool);
  } else {
    ForEachTask(pool, batch, [&](int64_t b) { one(b, nullptr); });
  }
  if (out_of_memory.load()) return ResourceExhausted("cholesky: no memory to factor matrices of order ", n);
  return OkStatus();
}

}  // namespace

Status Cholesky(ElementType type, bool lower, int64_t batch, int64_t n, void* a, ThreadPool* pool) {
  if (batch < 0 || n < 0) return InvalidArgument("cholesky: negative sizes");
  const bool is_complex = IsComplex(type);
  switch (type) {
    case ElementType::F32:
    case ElementType::C64:
    case ElementType::F64:
    case ElementType::C128: break;
    default: return Unimplemented("cholesky: no factorisation for ", Name(type));
  }
  if (batch == 0 || n == 0) return OkStatus();
  if (type == ElementType::F32 || type == ElementType::C64) return Factor<float>(is_complex, lower, batch, n, a, pool);
  return Factor<double>(is_complex, lower, batch, n, a, pool);
}

}  // namespace strop::cpu
