#include "strop/cpu/kernels/fft.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "strop/cpu/kernels/fft_ducc.h"
#include "strop/cpu/kernels/fft_pair.h"
#include "strop/cpu/kernels/fft_real.h"

namespace strop::cpu {
namespace {

constexpr int64_t kTaskElements = 1 << 14;  // what pays for waking a thread
constexpr int64_t kMostTasks = 32;

class Plan final : public FftPlan {
 public:
  Plan(FftKind kind, std::span<const int64_t> lengths, bool double_precision)
      : kind_(kind), lengths_(lengths.begin(), lengths.end()), double_precision_(double_precision) {
    for (int64_t n : lengths_) total_ *= n;
    if (kind == FftKind::kFft || kind == FftKind::kIfft)
      pair_ = FftPair::Create(kind == FftKind::kIfft, lengths_, double_precision);
    else
      real_ = FftReal::Create(kind == FftKind::kIrfft, lengths_, double_precision);
  }

  Status Run(int64_t batch, const void* input, void* output, ThreadPool* pool) const override {
    if (batch < 0) return InvalidArgument("fft: negative batch");
    if (batch == 0 || total_ == 0) return OkStatus();
    if (pair_) return pair_->Run(batch, input, output, pool);
    if (real_) return real_->Run(batch, input, output, pool);
    const int64_t tasks = std::clamp<int64_t>(batch * total_ / kTaskElements, 1, kMostTasks);
    const int64_t rows = RowsOfPart(batch), parts = (batch + rows - 1) / rows;
    if (parts == 1)
      return StatusOf(Call({kind_, batch, lengths_, static_cast<int>(tasks), input, output, pool}), batch);
    std::atomic<FftResult> worst = FftResult::kOk;
    const int64_t row_in = BytesOf(kind_ == FftKind::kRfft, kind_ == FftKind::kIrfft);
    const int64_t row_out = BytesOf(kind_ == FftKind::kIrfft, kind_ == FftKind::kRfft);
    const auto part = [&](int64_t k) {
      const void* from = static_cast<const uint8_t*>(input) + k * rows * row_in;
      void* to = static_cast<uint8_t*>(output) + k * rows * row_out;
      const FftResult r = Call({kind_, std::min(rows, batch - k * rows), lengths_, 1, from, to, nullptr});
      if (r != FftResult::kOk) worst = r;
    };
    if (pool)
      pool->ParallelFor(parts, part);
    else
      for (int64_t k = 0; k < parts; ++k) part(k);
    return StatusOf(worst, batch);
  }

 private:
  // The rows that are transformed together. The library takes eight at a time, which of a few long ones leaves threads
  // without work, and more than the second-level cache holds; complex ones are as fast one by one. It follows from the
  // problem alone, since a row's bits depend on it.
  int64_t RowsOfPart(int64_t batch) const {
    constexpr int64_t kFewRows = 16, kLongRow = 1 << 12, kRealRows = 4;
    if (lengths_.size() != 1 || batch >= kFewRows || total_ < kLongRow) return batch;
    const bool complex = kind_ == FftKind::kFft || kind_ == FftKind::kIfft;
    return complex ? 1 : std::min((batch + 1) / 2, kRealRows);
  }

  // Of a row of real numbers, of half a row and one of complex ones, or of a row of them.
  int64_t BytesOf(bool real, bool half) const {
    const int64_t number = double_precision_ ? 8 : 4;
    return number * (real ? total_ : 2 * (half ? total_ / 2 + 1 : total_));
  }

  FftResult Call(const FftProblem& problem) const {
    const FftTable& table = BestFftTable();
    return double_precision_ ? table.f64(problem) : table.f32(problem);
  }

  Status StatusOf(FftResult result, int64_t batch) const {
    switch (result) {
      case FftResult::kOk: return OkStatus();
      case FftResult::kNoMemory: return ResourceExhausted("fft: no memory for the work on ", Join(lengths_, "x"));
      case FftResult::kRefused: break;
    }
    return Internal("fft: the library refuses ", batch, " transforms of ", Join(lengths_, "x"));
  }

  FftKind kind_;
  std::vector<int64_t> lengths_;
  bool double_precision_;
  int64_t total_ = 1;
  std::unique_ptr<const FftPair> pair_;  // instead of the library
  std::unique_ptr<const FftReal> real_;  // likewise
};

}  // namespace

const FftTable& BestFftTable() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  static const bool kAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (kAvx2) return FftTableAvx2();
#endif
  return FftTableBaseline();
}

Result<std::shared_ptr<const FftPlan>> FftPlan::Create(FftKind kind, std::span<const int64_t> lengths,
                                                       bool double_precision) {
  if (lengths.empty() || lengths.size() > 3) {
    return InvalidArgument("fft: ", lengths.size(), " dimensions; expected 1 to 3");
  }
  unsigned __int128 total = 1;
  for (int64_t n : lengths) {
    if (n < 0) return InvalidArgument("fft: length ", n, " is negative");
    if (n > int64_t{1} << 31) return ResourceExhausted("fft: length ", n, " is beyond 2^31");
    total *= static_cast<uint64_t>(n);
    if (total > uint64_t{1} << 45) return ResourceExhausted("fft: ", Join(lengths, "x"), " elements");
  }
  return std::shared_ptr<const FftPlan>(std::make_shared<Plan>(kind, lengths, double_precision));
}

}  // namespace strop::cpu
