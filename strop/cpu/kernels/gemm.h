// GEMM: C[b] = A[b] * B[b] for any strides and element types, cut into independent tasks.
//
// The classic scheme (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008): a block of A
// and a block of B are packed into panels that the inner kernel (gemm_micro.h) reads straight through, with the tile of
// C in registers. Each task owns a block of C and packs for itself, so tasks share nothing; the sum over k runs in the
// same order whatever the number of tasks or threads. Packing takes any strides, so no operand is ever transposed in
// memory, and converts elements: f16, bf16 and f8 become f32; integers of up to 16 bits become s16, whose pairs are
// summed in s32. Large products pack each operand once for all tasks (gemm_panels.h); there, those of bytes and of bf16
// use the processor's own instructions.
//
// GemmSource is where packing reads from: a strided matrix here, the patches of an image in conv.h.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "strop/base/status.h"
#include "strop/base/thread_pool.h"
#include "strop/cpu/kernels/gemm_micro.h"
#include "strop/types/element_type.h"

namespace strop::cpu {

// A strided matrix with one or two batch dimensions; strides in elements, may be 0.
struct StridedMatrix {
  ElementType type = ElementType::F32;
  int64_t row_stride = 0;
  int64_t col_stride = 0;
  int64_t batch_stride = 0;
  int64_t outer_stride = 0;  // of what GemmProblem::inner_batch splits off
};

struct GemmProblem {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  StridedMatrix a, b, c;  // a is m x k, b is k x n, c is m x n; c's strides must address each element once
  // Products that lie batch_stride apart; groups of them lie outer_stride apart. 0: all of the batch.
  int64_t inner_batch = 0;

  // Where the matrix of a product begins, in elements.
  int64_t Offset(const StridedMatrix& x, int64_t product) const {
    if (inner_batch == 0) return product * x.batch_stride;
    return product / inner_batch * x.outer_stride + product % inner_batch * x.batch_stride;
  }
};

// The transpose of the product, whose operands come the other way round.
GemmProblem Transposed(const GemmProblem& problem);

// The type in which products of these types are summed: f32, f64, s32, s64, or c64, c128. Invalid if dot is not
// defined.
ElementType GemmAccumulator(ElementType a, ElementType b, ElementType c);

struct GemmCall {
  const void* a;
  const void* b;
  void* c;
  int64_t round = 0;
  void* shared = nullptr;
};

// Whether tasks may share what they pack (gemm_panels.h): not where they run beside others.
enum class GemmSharing : uint8_t { Allowed, None };

// How a problem is cut: fixed by the problem alone.
class Gemm {
 public:
  // Unimplemented for element types without an accumulator.
  static Result<std::shared_ptr<const Gemm>> Create(const GemmProblem& problem, const GemmIsa& isa = BestGemmIsa(),
                                                    GemmSharing sharing = GemmSharing::Allowed);
  virtual ~Gemm() = default;

  int64_t num_tasks() const { return num_tasks_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }  // per thread, 64-byte aligned
  const std::string& tiles() const { return tiles_; }       // how it is cut, for reports
  // What all tasks of a round share, 64-byte aligned, is filled by `prepare_tasks` first.
  int64_t rounds() const { return rounds_; }
  int64_t prepare_tasks() const { return prepare_tasks_; }
  int64_t shared_bytes() const { return shared_bytes_; }

  // Tasks [begin, end) in any grouping, on any threads.
  virtual void Prepare(const GemmCall&, int64_t /*begin*/, int64_t /*end*/) const {}
  virtual void Run(const GemmCall& call, int64_t begin, int64_t end, void* scratch) const = 0;
  // All of it on this thread. `shared` and `scratch` as above, null where no bytes are asked for.
  void RunAll(const void* a, const void* b, void* c, void* shared, void* scratch) const;

 protected:
  int64_t num_tasks_ = 0;
  int64_t scratch_bytes_ = 0;
  std::string tiles_;
  int64_t rounds_ = 1, prepare_tasks_ = 0, shared_bytes_ = 0;
};

// A product of few elements with long sums leaves no independent blocks to cut, and cutting its columns reads memory in
// crumbs: here the sums are cut instead, into kSplits parts that are added in order.
class SplitGemm {
 public:
  // Is it the better way? The same answer for the same problem on any machine.
  static bool Suits(const GemmProblem& problem);
  static Result<std::shared_ptr<const SplitGemm>> Create(const GemmProblem& problem,
                                                         const GemmIsa& isa = BestGemmIsa());
  // ResourceExhausted without memory for the parts.
  Status Run(const void* a, const void* b, void* c, ThreadPool* pool) const;
  std::string tiles() const { return StrCat(num_parts_, " parts of k ", part_k_); }

 private:
  GemmProblem problem_;
  int64_t part_k_ = 0;                 // elements of a part's sums
  std::shared_ptr<const Gemm> parts_;  // one a batch
  std::shared_ptr<const Gemm> rest_;   // what the parts leave; may be null
  int64_t num_parts_ = 0;
};

// ---- building blocks, shared with convolution
// ----------------------------------------------------------------------------

// Packs `count` vectors (rows of A or columns of B) starting at `first`, elements [k0, k0 + kc) of each, as
// dst[kc / group][width] units (gemm_micro.h); the vectors from `count` to `width` are filled with zeros. May write up
// to a vector register beyond the end.
template <class T>
using PackFn = std::function<void(int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst)>;

// Elements [0, count) of a row of sums, to their place in C, converted.
struct StoreTarget {
  ElementType type;
  uint8_t* data;
  int64_t row_stride, col_stride;  // in elements
  // Rows at no constant distance: row r is rows[r - first_row] elements from `data`. Null: by row_stride.
  const int64_t* rows = nullptr;
  int64_t first_row = 0;
};
// C[r][c] = (accumulate ? C[r][c] : 0) + tile[r][c]; `accumulate` only if C's type is T.
template <class T>
void StoreTile(const StoreTarget& c, int64_t row, int64_t col, int64_t rows, int64_t cols, const T* tile,
               int64_t tile_stride, bool accumulate);

// Block of C owned by a task.
struct BlockShape {
  int64_t mb = 0, nb = 0, kb = 0;
  int64_t pack_rows = 0;  // B is packed this many rows at a time, a multiple of the group; 0: all
};
BlockShape ChooseBlocks(int64_t m, int64_t n, int64_t k, int mr, int nr, int accumulator_bytes, int64_t batch);

// C[m0.., n0..] of a task: packs panel by panel and calls the micro kernel. `scratch` holds BlockScratchBytes().
template <class T>
void RunBlock(const MicroTable<T>& micro, const BlockShape& block, int64_t m0, int64_t rows, int64_t n0, int64_t cols,
              int64_t k, const PackFn<T>& pack_a, const PackFn<T>& pack_b, const StoreTarget& c, void* scratch);
int64_t BlockScratchBytes(const BlockShape& block, int mr, int nr, int accumulator_bytes);

// What packs elements of this type; None: LoadAs().
PackSource PackSourceOf(ElementType type);
template <class T>
PackPanel<T> PackerOf(const MicroTable<T>& micro, ElementType type, bool of_a = false) {
  const PackSource source = PackSourceOf(type);
  if (source == PackSource::None) return nullptr;
  const PackPanel<T> pack_a = micro.pack_a[static_cast<int>(source)];
  return of_a && pack_a ? pack_a : micro.pack[static_cast<int>(source)];
}
// Element (k, vector) of a panel.
template <class T>
void StoreInPanel(const MicroTable<T>& micro, T* panel, int64_t width, int64_t k, int64_t vector, T value) {
  if (micro.group == 1)
    panel[k * width + vector] = value;
  else
    reinterpret_cast<int16_t*>(panel)[(k / 2 * width + vector) * 2 + k % 2] = static_cast<int16_t>(value);
}

// Reads element i of a buffer of `type` as T (f32, f64, s32 or s64).
template <class T>
T LoadAs(ElementType type, const void* data, int64_t i);
// The code of `value` in `type`, written to element i: floats round to nearest even, integers wrap.
template <class T>
void StoreAs(ElementType type, void* data, int64_t i, T value);

}  // namespace strop::cpu
