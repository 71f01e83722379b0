// What ducc0 asks of those who bring their own threads; the name is ducc0's. Locks are the standard ones; the pool is
// the one that the running transform sets for its thread (fft_ducc.inc). Included by ducc0 inside its threading.h.
#pragma once
#include <condition_variable>
#include <mutex>
#include <utility>

namespace DUCC0_NAMESPACE {
namespace detail_threading {

using Mutex = std::mutex;
using UniqueLock = std::unique_lock<std::mutex>;
using LockGuard = std::lock_guard<std::mutex>;
using CondVar = std::condition_variable;

inline thread_local thread_pool* strop_pool = nullptr;
inline thread_local bool in_parallel_region = false;

inline thread_pool* set_active_pool(thread_pool* pool) { return std::exchange(strop_pool, pool); }
inline thread_pool* get_active_pool() { return strop_pool; }

}  // namespace detail_threading
}  // namespace DUCC0_NAMESPACE
