// Parts of one matrix on several threads, each with the library to itself.
#pragma once
#include <cstdint>

#include "strop/base/thread_pool.h"
#include "strop/runtime/lapack/library.h"

namespace strop::lapack {

// part(p) for all p in [0, parts): in order and on this thread without a pool, which must be null where the library is
// not concurrent.
template <class Fn>
void RunInParallel(const Library& library, int64_t parts, ThreadPool* pool, const Fn& part) {
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) part(p);
  };
  if (!pool || parts < 2) return run(0, parts);
  pool->ParallelForRuns(parts, [&](int64_t begin, int64_t end, int) {
    const Library::OneThread one(library);
    run(begin, end);
  });
}

}  // namespace strop::lapack
