#include "strop/runtime/lapack/call.h"

#include <atomic>
#include <cstring>

#include "strop/base/thread_pool.h"
#include "strop/runtime/executable.h"

namespace strop::lapack {
namespace {

// A task should cost more than waking the thread that takes it.
constexpr double kFlopsPerTask = 2e5;

}  // namespace

Call::Call(std::unique_ptr<Routine> routine, const CustomCallSite& site, int64_t batch, const Library* library)
    : routine_(std::move(routine)), library_(library), batch_(batch) {
  for (const Shape& result : site.results) result_bytes_.push_back(result.byte_size());
}

void Call::RunEmpty(const CustomCallFrame& frame) const {
  std::vector<bool> filled(frame.results.size(), false);
  for (const Routine::Carried& carried : routine_->carried_) {
    void* to = frame.results[carried.result];
    const void* from = frame.operands[carried.operand];
    const int64_t bytes = result_bytes_[carried.result];
    if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<size_t>(bytes));
    filled[carried.result] = true;
  }
  for (size_t k = 0; k < filled.size(); ++k)
    if (!filled[k] && result_bytes_[k] > 0) std::memset(frame.results[k], 0, static_cast<size_t>(result_bytes_[k]));
  routine_->SolveEmpty(frame);
}

void Call::RunMatrices(const CustomCallFrame& frame, int64_t begin, int64_t end, const Scratch& scratch) const {
  if (const int64_t together = routine_->together_; together > 1) {
    for (int64_t matrix = begin; matrix < end; matrix += together)
      routine_->SolveTogether(matrix, std::min(together, end - matrix), frame, scratch);
    return;
  }
  const Library::OneThread one(*library_);
  for (int64_t matrix = begin; matrix < end; ++matrix) {
    for (const Routine::Carried& carried : routine_->carried_) {
      char* to = static_cast<char*>(frame.results[carried.result]);
      const char* from = static_cast<const char*>(frame.operands[carried.operand]);
      const int64_t offset = matrix * carried.bytes;
      if (to != from) std::memcpy(to + offset, from + offset, static_cast<size_t>(carried.bytes));
    }
    routine_->Solve(matrix, frame, scratch);
  }
}

bool Call::IsWorthThreads() const {
  return batch_ > 1 && static_cast<double>(batch_) * std::max(routine_->flops_, 1.0) >= 2 * kFlopsPerTask;
}

bool Call::IsSingleTask() const { return !library_ && batch_ > 0 && !routine_->empty_ && !IsWorthThreads(); }

void Call::RunSingleTask(const CustomCallFrame& frame, void* scratch) const {
  RunMatrices(frame, 0, batch_, Scratch(scratch));
}

Status Call::Run(const CustomCallFrame& frame) {
  if (batch_ == 0) return OkStatus();
  if (routine_->empty_) {
    RunEmpty(frame);
    return OkStatus();
  }
  const size_t bytes = routine_->scratch_bytes_;
  std::atomic<bool> no_memory{false};
  ThreadPool* pool = frame.run.pool;
  const double flops = std::max(routine_->flops_, 1.0);
  const bool concurrent = !library_ || library_->concurrent();
  if (!pool || !concurrent || !IsWorthThreads()) {
    Scratch scratch;
    if (scratch.Allocate(bytes))
      RunMatrices(frame, 0, batch_, scratch);
    else
      no_memory = true;
  } else {
    int64_t per_task = std::max<int64_t>(1, static_cast<int64_t>(kFlopsPerTask / flops));
    per_task = (per_task + routine_->together_ - 1) / routine_->together_ * routine_->together_;
    std::vector<Scratch> scratches(static_cast<size_t>(pool->num_threads()));
    pool->ParallelForRuns((batch_ + per_task - 1) / per_task, [&](int64_t begin, int64_t end, int participant) {
      Scratch& scratch = scratches[static_cast<size_t>(participant)];
      if (scratch.Allocate(bytes))
        RunMatrices(frame, begin * per_task, std::min(batch_, end * per_task), scratch);
      else
        no_memory = true;
    });
  }
  if (no_memory) return ResourceExhausted("no memory for ", bytes, " bytes of LAPACK's workspace");
  return OkStatus();
}

}  // namespace strop::lapack
