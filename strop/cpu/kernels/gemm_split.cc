// Products with long sums: see SplitGemm in gemm.h.
#include <algorithm>

#include "strop/cpu/kernels/accumulator_type.h"
#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/gemm_blocks.h"
#include "strop/cpu/kernels/parallel.h"
#include "strop/cpu/kernels/rounding.h"
#include "strop/cpu/kernels/scratch.h"

namespace strop::cpu {
namespace {

constexpr int64_t kSplits = 16;
constexpr int64_t kMostSums = 1 << 16;       // elements of C: the parts are to stay in the cache
constexpr int64_t kLeastProducts = 1 << 22;  // below, one thread is done before a second has woken up
constexpr int64_t kLeastPart = 64;           // elements of a part's sums
constexpr int64_t kPiece = 1 << 12;          // sums that one task adds

constexpr int64_t kFewRows = 4;               // of A: memory is waited for
constexpr int64_t kLeastBytes = 1 << 21;      // of A and B, that no cache of a core holds
constexpr int64_t kLeastOfVectors = 1 << 20;  // the same of vectors, a sum of which takes little beside their reading
constexpr int64_t kPartsShare = 8;            // of B's bytes, that the parts of C may come to

// Few rows by a matrix that lies in rows, in memory: parts of the sums are contiguous there, blocks of columns are not.
bool ReadsRowsOfMemory(const GemmProblem& p) {
  const int64_t parts = kSplits * p.m * Bytes(GemmAccumulator(p.a.type, p.b.type, p.c.type));  // of a column
  const int64_t bytes = p.k * (p.m * Bytes(p.a.type) + p.n * Bytes(p.b.type));
  return p.m <= kFewRows && p.b.col_stride == 1 && bytes >= (p.n == 1 ? kLeastOfVectors : kLeastBytes) &&
         parts * kPartsShare <= p.k * Bytes(p.b.type);
}

// Few rows of complex numbers by such long ones that columns are shared out.
bool HasLongRows(const GemmProblem& p) {
  constexpr int64_t kTwoTasksBytes = 1 << 13;  // of a row of B
  return p.m <= kFewRows && p.b.col_stride == 1 && p.n * Bytes(p.b.type) >= kTwoTasksBytes;
}

// So little of C that its tiles leave few tasks, and sums so long that their parts are little beside A and B.
// Those of bf16 and bytes, which processors multiply several times as fast, have to be longer.
bool IsLong(const GemmProblem& p) {
  constexpr int64_t kMostOfSide = 256, kTimesAsLong = 8, kTimesOfNarrow = 32;
  const auto narrow = [](ElementType type) {
    return type == ElementType::BF16 || (IsInteger(type) && Bits(type) <= 8);
  };
  const int64_t side = std::max(p.m, p.n);
  return side <= kMostOfSide && p.k >= (narrow(p.a.type) && narrow(p.b.type) ? kTimesOfNarrow : kTimesAsLong) * side;
}

constexpr int64_t kStreamedRows = 12;        // of A
constexpr int64_t kStreamedBytes = 1 << 11;  // of a row of B

// More rows of A by long rows of B: blocks of columns are tasks enough, and several rows of B at a time, where they are
// streams, have their sums in levels already. (8 rows by 1024x1024: 96 us, in parts 172.)
bool StreamsRows(const GemmProblem& p) {
  const bool typed = p.a.type == p.b.type && (p.a.type == ElementType::F32 || p.a.type == ElementType::F64);
  return typed && p.m > kFewRows && p.m <= kStreamedRows && p.b.col_stride == 1 &&
         p.n * Bytes(p.b.type) >= kStreamedBytes;
}

// The parts of C added in order, into the first; each has `size` numbers.
template <class T>
void AddParts(int64_t size, T* parts, int64_t num_parts, ThreadPool* pool) {
  ForEachPiece(pool, size, kPiece, [&](int64_t begin, int64_t end) {
    for (int64_t part = 1; part < num_parts; ++part) {
      const T* from = parts + part * size;
      for (int64_t i = begin; i < end; ++i) parts[i] += from[i];
    }
  });
}

template <class T>
void AddReal(const GemmProblem& p, T* parts, int64_t num_parts, void* c, ThreadPool* pool) {
  AddParts(p.m * p.n, parts, num_parts, pool);
  const StoreTarget target{p.c.type, static_cast<uint8_t*>(c), p.c.row_stride, p.c.col_stride};
  StoreTile<T>(target, 0, 0, p.m, p.n, parts, p.n, false);
}

// C is of the type that the sums have.
template <class T>
void AddComplex(const GemmProblem& p, T* parts, int64_t num_parts, void* c, ThreadPool* pool) {
  AddParts(2 * p.m * p.n, parts, num_parts, pool);
  T* const to = static_cast<T*>(c);
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j)
      std::copy_n(parts + 2 * (i * p.n + j), 2, to + 2 * (i * p.c.row_stride + j * p.c.col_stride));
}

// `scratch`: what `gemm` asks for, once a thread, `scratch_bytes` apart.
void RunTasks(const Gemm& gemm, const uint8_t* a, const uint8_t* b, uint8_t* c, ThreadPool* pool, uint8_t* scratch,
              int64_t scratch_bytes) {
  if (!pool) return gemm.Run({a, b, c}, 0, gemm.num_tasks(), scratch);
  pool->ParallelForRuns(gemm.num_tasks(), [&](int64_t begin, int64_t end, int participant) {
    gemm.Run({a, b, c}, begin, end, scratch + participant * scratch_bytes);
  });
}

}  // namespace

bool SplitGemm::Suits(const GemmProblem& p) {
  const ElementType sums = GemmAccumulator(p.a.type, p.b.type, p.c.type);
  if (sums == ElementType::Invalid || p.batch != 1 || (IsComplex(sums) && p.c.type != sums)) return false;
  const int64_t elements = p.m * p.n;
  if (elements == 0 || elements > kMostSums) return false;
  if (IsComplex(sums) && HasLongRows(p)) return false;
  if (ReadsRowsOfMemory(p)) return true;
  if (StreamsRows(p)) return false;
  const int64_t products = (IsComplex(sums) ? 4 : 1) * p.k * elements;  // of real numbers
  if (p.k < kSplits * kLeastPart || products < kLeastProducts) return false;
  // Contiguous along k and few rows: every column is a stream of its own.
  const auto dots_of = [&](int64_t rows, int64_t stride, int64_t columns) {
    return stride == 1 && columns >= 64 && AreDots(p, rows);
  };
  const bool dots = dots_of(p.m, p.b.row_stride, p.n) || dots_of(p.n, p.a.col_stride, p.m);
  // Two large sides make blocks enough.
  return !dots && (elements <= 1 << 13 || std::min(p.m, p.n) <= 12 || IsLong(p));
}

Result<std::shared_ptr<const SplitGemm>> SplitGemm::Create(const GemmProblem& problem, const GemmIsa& isa) {
  const GemmProblem p = WithSigned(problem);
  auto split = std::make_shared<SplitGemm>();
  split->problem_ = p;
  split->part_k_ = std::max<int64_t>(16, (p.k / kSplits + 15) / 16 * 16);
  const int64_t whole = p.k / split->part_k_, rest = p.k - whole * split->part_k_;
  split->num_parts_ = whole + (rest > 0);
  const ElementType sums = GemmAccumulator(p.a.type, p.b.type, p.c.type);
  GemmProblem part = p;
  part.batch = whole;
  part.inner_batch = 0;
  part.k = split->part_k_;
  part.a.batch_stride = part.k * p.a.col_stride;
  part.b.batch_stride = part.k * p.b.row_stride;
  part.c = {sums, p.n, 1, p.m * p.n};
  STROP_ASSIGN(split->parts_, Gemm::Create(part, isa, GemmSharing::None));
  if (rest > 0) {
    part.batch = 1;
    part.k = rest;
    STROP_ASSIGN(split->rest_, Gemm::Create(part, isa, GemmSharing::None));
  }
  return std::shared_ptr<const SplitGemm>(std::move(split));
}

Status SplitGemm::Run(const void* a, const void* b, void* c, ThreadPool* pool) const {
  const GemmProblem& p = problem_;
  const ElementType type = GemmAccumulator(p.a.type, p.b.type, p.c.type);
  const int64_t part_bytes = p.m * p.n * Bytes(type), whole = num_parts_ - (rest_ != nullptr);
  const int64_t scratch_bytes = RoundUp(std::max(parts_->scratch_bytes(), rest_ ? rest_->scratch_bytes() : 0), 64);
  const int64_t all_parts = RoundUp(num_parts_ * part_bytes, 64);
  const Scratch<uint8_t> memory(all_parts + (pool ? pool->num_threads() : 1) * scratch_bytes);
  uint8_t* parts = memory.get();
  if (!parts) return ResourceExhausted("dot: no memory for the parts of long sums");
  const uint8_t *pa = static_cast<const uint8_t*>(a), *pb = static_cast<const uint8_t*>(b);
  RunTasks(*parts_, pa, pb, parts, pool, parts + all_parts, scratch_bytes);
  if (rest_)
    RunTasks(*rest_, pa + whole * part_k_ * p.a.col_stride * Bytes(p.a.type),
             pb + whole * part_k_ * p.b.row_stride * Bytes(p.b.type), parts + whole * part_bytes, pool,
             parts + all_parts, scratch_bytes);
  const auto add = [&]<class T>(T*) { AddReal(p, reinterpret_cast<T*>(parts), num_parts_, c, pool); };
  switch (type) {
    case ElementType::F32: add(static_cast<float*>(nullptr)); break;
    case ElementType::F64: add(static_cast<double*>(nullptr)); break;
    case ElementType::S32: add(static_cast<int32_t*>(nullptr)); break;
    case ElementType::C64: AddComplex(p, reinterpret_cast<float*>(parts), num_parts_, c, pool); break;
    case ElementType::C128: AddComplex(p, reinterpret_cast<double*>(parts), num_parts_, c, pool); break;
    default: add(static_cast<int64_t*>(nullptr)); break;
  }
  return OkStatus();
}

}  // namespace strop::cpu
