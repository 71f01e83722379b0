// Transport: messages between the processes of one program. A message is known by sender, receiver and tag: the
// receiver says where it goes, and it does not matter who comes first. KeyValueStore: how processes find each other,
// and where they leave word for those who wait; whoever started them all (JAX's coordinator, for one) gives it.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "strop/base/status.h"

namespace strop {

using Milliseconds = std::chrono::milliseconds;

class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;
  virtual Status Put(std::string_view key, std::string_view value) = 0;
  // Waits for the key. DeadlineExceeded.
  virtual Result<std::string> Get(std::string_view key, Milliseconds timeout) = 0;
  // NotFound at once.
  virtual Result<std::string> TryGet(std::string_view key) = 0;
};

// A message on its way. The memory must stay until Wait has returned or the transfer is gone.
class Transfer {
 public:
  virtual ~Transfer() = default;  // gives up what has not ended
  // Unavailable: the other process is gone. DeadlineExceeded: it is silent. Cancelled: by Cancel().
  virtual Status Wait(Milliseconds timeout) = 0;
  // From another thread: Wait returns soon.
  virtual void Cancel() = 0;
};

// Any thread may send and receive at any time.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Result<std::unique_ptr<Transfer>> Send(int32_t peer, uint64_t tag, const void* data, int64_t bytes) = 0;
  virtual Result<std::unique_ptr<Transfer>> Receive(int32_t peer, uint64_t tag, void* data, int64_t bytes) = 0;
};

// This process among all.
struct ProcessPlace {
  int32_t rank = 0;
  int32_t size = 1;
  std::string address;  // at which the others reach this one; empty: the library's choice
  Milliseconds timeout{1800000};
};

// Opens the library `name` ("gloo", "mpi") and connects all processes, which must all call this. `prefix` begins the
// keys that are written to the store. NotFound if the library is not there, with what to install.
Result<std::unique_ptr<Transport>> ConnectProcesses(std::string_view name, const ProcessPlace& place,
                                                    const std::string& prefix, KeyValueStore& store);

}  // namespace strop
