#include "strop/cpu/kernels/triangular_solve.h"

#include <atomic>

#include "strop/cpu/kernels/isa.h"
#include "strop/cpu/kernels/parallel.h"
#include "strop/cpu/kernels/scratch.h"
#include "strop/cpu/kernels/triangular_strip.h"

namespace strop::cpu {
namespace {

constexpr int64_t kStripsPerTask = 4;  // share the rows of `a` that are in the cache

template <class R>
class Solver {
 public:
  Solver(bool is_complex, const TriangularOptions& options, int64_t m, int64_t n)
      : planes_(is_complex ? 2 : 1),
        options_(options),
        k_(options.left_side ? m : n),
        columns_(options.left_side ? n : m) {
    // b as k x columns
    b_row_ = planes_ * (options.left_side ? n : 1);
    b_col_ = planes_ * (options.left_side ? 1 : n);
    b_size_ = planes_ * m * n;
    // a as the matrix that stands on the left. From the right: x op(a) = b means op(a)^T x^T = b^T.
    bool swapped = (options.transpose == TriangularTranspose::kNone) != options.left_side;
    a_.row = planes_ * (swapped ? 1 : k_);
    a_.col = planes_ * (swapped ? k_ : 1);
    a_.sign = options.transpose == TriangularTranspose::kAdjoint ? R{-1} : R{1};
    // An upper matrix read backwards is a lower one.
    bool lower = options.lower != swapped;
    if (!lower) {
      a_start_ = (k_ - 1) * (a_.row + a_.col);
      b_start_ = (k_ - 1) * b_row_;
      a_.row = -a_.row;
      a_.col = -a_.col;
      b_row_ = -b_row_;
    }
  }

  Status Run(int64_t batch, const R* a, R* b, ThreadPool* pool) const {
    const int64_t strips = (columns_ + kWidth - 1) / kWidth, tasks = (strips + kStripsPerTask - 1) / kStripsPerTask;
    std::atomic<bool> out_of_memory{false};
    ForEachTask(pool, batch * tasks, [&](int64_t task) {
      int64_t first = task % tasks * kStripsPerTask;
      Scratch<R> memory(planes_ * k_ * kWidth);
      if (!memory.get()) return out_of_memory.store(true, std::memory_order_relaxed);
      MatrixView<R> view = a_;
      view.re = a + task / tasks * (planes_ * k_ * k_) + a_start_;
      view.im = planes_ == 2 ? view.re + 1 : nullptr;
      Strip<R> strip{memory.get(), planes_ == 2 ? memory.get() + k_ * kWidth : nullptr};
      for (int64_t s = first; s < std::min(strips, first + kStripsPerTask); ++s) {
        R* corner = b + task / tasks * b_size_ + b_start_ + s * kWidth * b_col_;
        int64_t width = std::min(kWidth, columns_ - s * kWidth);
        Load(corner, width, strip);
        auto solve = [&] { SolveStrip(view, options_.unit_diagonal, k_, strip); };
        WithVectors(solve);
        Store(corner, width, strip);
      }
    });
    if (out_of_memory.load()) return ResourceExhausted("triangular-solve: no memory for a strip of ", k_, " rows");
    return OkStatus();
  }

 private:
  static constexpr int64_t kWidth = Strip<R>::kWidth;

  void Load(const R* corner, int64_t width, const Strip<R>& strip) const {
    for (int64_t r = 0; r < k_; ++r) {
      for (int64_t w = 0; w < kWidth; ++w) {
        const R* element = corner + r * b_row_ + w * b_col_;
        strip.re[r * kWidth + w] = w < width ? element[0] : R{0};
        if (strip.im) strip.im[r * kWidth + w] = w < width ? element[1] : R{0};
      }
    }
  }
  void Store(R* corner, int64_t width, const Strip<R>& strip) const {
    for (int64_t r = 0; r < k_; ++r) {
      for (int64_t w = 0; w < width; ++w) {
        R* element = corner + r * b_row_ + w * b_col_;
        element[0] = strip.re[r * kWidth + w];
        if (strip.im) element[1] = strip.im[r * kWidth + w];
      }
    }
  }

  int64_t planes_;  // reals per element
  TriangularOptions options_;
  int64_t k_, columns_;
  MatrixView<R> a_;  // strides and conjugation; the address is that of the batch
  int64_t a_start_ = 0, b_start_ = 0;
  int64_t b_row_, b_col_, b_size_;
};

template <class R>
Status Solve(bool is_complex, const TriangularOptions& options, int64_t batch, int64_t m, int64_t n, const void* a,
             void* b, ThreadPool* pool) {
  return Solver<R>(is_complex, options, m, n).Run(batch, static_cast<const R*>(a), static_cast<R*>(b), pool);
}

}  // namespace

Status TriangularSolve(ElementType type, const TriangularOptions& options, int64_t batch, int64_t m, int64_t n,
                       const void* a, void* b, ThreadPool* pool) {
  if (batch < 0 || m < 0 || n < 0) return InvalidArgument("triangular-solve: negative sizes");
  const bool is_complex = IsComplex(type);
  switch (type) {
    case ElementType::F32:
    case ElementType::C64:
    case ElementType::F64:
    case ElementType::C128: break;
    default: return Unimplemented("triangular-solve: no solver for ", Name(type));
  }
  if (batch == 0 || m == 0 || n == 0) return OkStatus();
  if (type == ElementType::F32 || type == ElementType::C64)
    return Solve<float>(is_complex, options, batch, m, n, a, b, pool);
  return Solve<double>(is_complex, options, batch, m, n, a, b, pool);
}

}  // namespace strop::cpu
