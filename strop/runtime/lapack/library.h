// A LAPACK library of the host, opened at run time: Strop itself is linked with none.
//
// Which file: the option lapack_library, else libopenblas.so.0, else liblapack.so.3. Its functions may carry a prefix
// (scipy's OpenBLAS: scipy_dgetrf_). Only libraries with 32-bit integers are taken: ilaver, which writes three
// integers, tells how wide they are.
//
// Threads: our pool is what computes in parallel, so the library's own threads are kept out (docs/adr/0012). A library
// that is not safe to be called from two threads (OpenBLAS built without threads has no locks) is called by one at a
// time.
#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "strop/base/status.h"

namespace strop::lapack {

class Library {
 public:
  // Opened once for each path and never closed; thread-safe. An empty path stands for the usual places. NotFound with
  // what was tried, Unimplemented for a library with 64-bit integers.
  static Result<const Library*> Open(const std::string& path);

  // The function of a Fortran routine ("dgetrf"); NotFound if the library lacks it.
  Result<void*> Find(const std::string& routine) const;
  const std::string& path() const { return path_; }
  // May two threads be inside the library?
  bool concurrent() const { return kind_ != Kind::kSerial; }

  // While one lives, calls from this thread compute on this thread alone.
  class OneThread {
   public:
    explicit OneThread(const Library& library);
    ~OneThread();
    OneThread(const OneThread&) = delete;
    OneThread& operator=(const OneThread&) = delete;

   private:
    const Library& library_;
    int before_ = 0;                      // OpenMP: this thread's setting
    std::unique_lock<std::mutex> alone_;  // held if the library is not concurrent
  };

 private:
  // What openblas_get_parallel says, and kPlain for other libraries, which are taken to have no threads.
  enum class Kind : uint8_t { kPlain, kSerial, kPthreads, kOpenMp };

  Library(std::string path, void* handle) : path_(std::move(path)), handle_(handle) {}
  static Result<const Library*> OpenFile(const std::string& path);
  Status Recognize();
  void* Symbol(const std::string& name) const;

  std::string path_;
  void* handle_;
  std::string prefix_;
  Kind kind_ = Kind::kPlain;
  int (*get_threads_)() = nullptr;
  void (*set_threads_)(int) = nullptr;
  mutable std::mutex mutex_;  // guards the two below; held throughout by OneThread if not concurrent
  mutable int users_ = 0;
  mutable int before_ = 0;  // the library's setting before the first user
};

}  // namespace strop::lapack
