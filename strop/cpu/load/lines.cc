// What works on lines of elements: random bits, scans, sorts in a known order, the largest of a row.
#include <cstring>

#include "strop/cpu/kernels/parallel.h"
#include "strop/cpu/kernels/top_k.h"
#include "strop/cpu/load/problems.h"

namespace strop::cpu {
namespace {

constexpr int64_t kCopiedBytes = int64_t{1} << 17;  // by a task

Result<MadeStep> MakeRandomBits(ByteReader& fields, const LoadContext&) {
  STROP_ASSIGN(const RandomBitsProblem p, ReadProblem<RandomBitsProblem>(fields, kRandomBitsRecipe));
  return MadeStep{HostStep{.fn = [p](const HostCall& call) {
    const size_t words = static_cast<size_t>(p.words);
    const std::span<const uint64_t> state(static_cast<const uint64_t*>(call.args[0]), words);
    const std::span<uint64_t> next(static_cast<uint64_t*>(call.args[1]), words);
    return RngBitGenerator(p.algorithm, p.type, p.dims, state, next, call.args[2], call.run.pool);
  }}};
}

Result<MadeStep> MakeScan(ByteReader& fields, const LoadContext&) {
  STROP_ASSIGN(const ScanProblem p, ReadProblem<ScanProblem>(fields, kScanRecipe));
  STROP_TRY(CheckScan(p));
  return MadeStep{HostStep{.fn = [p](const HostCall& call) {
    RunScan(p, call.args[0], call.args[1], call.args[2], call.run.pool);
    return OkStatus();
  }}};
}

Result<MadeStep> MakeSort(ByteReader& fields, const LoadContext&) {
  STROP_ASSIGN(const SortProblem p, ReadProblem<SortProblem>(fields, kSortRecipe));
  if (p.key.operand < 0 || static_cast<size_t>(p.key.operand) >= p.widths.size())
    return InvalidArgument("a sort by operand ", p.key.operand, " of ", p.widths.size());
  return MadeStep{HostStep{.fn = [p, count = p.shape.outer * p.shape.n * p.shape.inner](const HostCall& call) {
    std::vector<SortOperand> operands;
    const size_t n = p.widths.size();
    for (size_t k = 0; k < n; ++k) {
      const int64_t bytes = count * p.widths[k];
      char* const result = static_cast<char*>(call.args[n + k]);
      const char* const operand = static_cast<const char*>(call.args[k]);
      if (result != operand)
        ForEachPiece(call.run.pool, bytes, kCopiedBytes, [&](int64_t begin, int64_t end) {
          std::memcpy(result + begin, operand + begin, static_cast<size_t>(end - begin));
        });
      operands.push_back({call.args[n + k], p.widths[k]});
    }
    return SortByKey(p.shape, operands, p.key, call.run.pool);
  }}};
}

Result<MadeStep> MakeTopK(ByteReader& fields, const LoadContext&) {
  STROP_ASSIGN(const TopKProblem p, ReadProblem<TopKProblem>(fields, kTopKRecipe));
  return MadeStep{HostStep{.fn = [p](const HostCall& call) {
    return TopK(p.type, p.largest, p.rows, p.n, p.k, call.args[0], call.args[1], static_cast<int32_t*>(call.args[2]),
                call.run.pool);
  }}};
}

}  // namespace

const RecipeKind kRandomBitsRecipe = {"random bits", &MakeRandomBits};
const RecipeKind kScanRecipe = {"scan", &MakeScan};
const RecipeKind kSortRecipe = {"sort", &MakeSort};
const RecipeKind kTopKRecipe = {"top-k", &MakeTopK};

}  // namespace strop::cpu
