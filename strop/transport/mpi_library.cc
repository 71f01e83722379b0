// libstrop_mpi.so: messages by MPI, between processes that mpirun (or the cluster's own launcher) started.
//
// MPI's tags have too few bits for ours, so a message carries its tag in front, and whoever waits takes in whatever has
// come, for itself and for others. All calls are made under one mutex, by those who wait: a library that allows calls
// of several threads one after the other is enough. Memory is not handed to MPI for receiving before the message is
// there, so that a receiver can always give up. The C interface alone: that of C++ would need another library.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "strop/transport/library.h"

namespace strop {
namespace {

// Numbers of StatusCode that this file gives; it does without the rest of Strop.
constexpr int32_t kCancelled = 1, kInvalidArgument = 3, kDeadlineExceeded = 4, kFailedPrecondition = 9,
                  kUnavailable = 14;

constexpr int kTag = 7;
constexpr size_t kHeader = sizeof(uint64_t);

// A failed neighbour would keep MPI_Finalize waiting.
std::atomic<bool> g_failed{false};

void FinalizeAtExit() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized && !g_failed) MPI_Finalize();
}

bool Ok(int result, const char* call, TransportError* error) {
  if (result == MPI_SUCCESS) return true;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  Fail(error, kUnavailable, (std::string(call) + ": " + text).c_str());
  g_failed = true;
  return false;
}

struct Incoming {
  int32_t source = 0;  // process
  std::vector<char> bytes;
  MPI_Request request = MPI_REQUEST_NULL;
};

struct Connection {
  MPI_Comm communicator = MPI_COMM_NULL;
  std::vector<int> rank_of;     // by process
  std::vector<int> process_of;  // by MPI rank
  std::mutex mutex;             // of all below, and of every call of MPI
  std::deque<std::unique_ptr<Incoming>> incoming;
  std::map<std::pair<int32_t, uint64_t>, std::deque<std::vector<char>>> arrived;  // by process and tag
};

struct MpiTransfer {
  Connection* connection = nullptr;
  int32_t peer = 0;
  uint64_t tag = 0;
  void* data = nullptr;  // null: this end sends `message`
  int64_t bytes = 0;
  std::shared_ptr<Incoming> message;
  std::atomic<bool> cancelled{false};
};

bool InitializeMpi(TransportError* error) {
  int initialized = 0, provided = MPI_THREAD_SINGLE;
  MPI_Initialized(&initialized);
  if (initialized) {
    MPI_Query_thread(&provided);
  } else {
    if (!Ok(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread", error)) return false;
    std::atexit(&FinalizeAtExit);
  }
  if (provided >= MPI_THREAD_SERIALIZED) return true;
  Fail(error, kFailedPrecondition, "this MPI allows calls of one thread only; Strop needs MPI_THREAD_SERIALIZED");
  return false;
}

// Which rank is which process: the two numberings need not agree.
bool FindRanks(const TransportPlace& place, Connection& connection, TransportError* error) {
  int size = 0;
  MPI_Comm_size(connection.communicator, &size);
  if (size != place.size) {
    Fail(error, kInvalidArgument,
         ("MPI knows " + std::to_string(size) + " processes, this program has " + std::to_string(place.size) +
          "; start it with mpirun -n " + std::to_string(place.size))
             .c_str());
    return false;
  }
  connection.process_of.assign(size, 0);
  int rank = place.rank;
  if (!Ok(MPI_Allgather(&rank, 1, MPI_INT, connection.process_of.data(), 1, MPI_INT, connection.communicator),
          "MPI_Allgather", error))
    return false;
  connection.rank_of.assign(size, -1);
  for (int r = 0; r < size; ++r) {
    const int process = connection.process_of[r];
    if (process >= 0 && process < size) connection.rank_of[process] = r;
  }
  if (std::find(connection.rank_of.begin(), connection.rank_of.end(), -1) == connection.rank_of.end()) return true;
  Fail(error, kInvalidArgument, "two processes that MPI started have the same number");
  return false;
}

void* Connect(const TransportPlace* place, TransportError* error) {
  if (!InitializeMpi(error)) return nullptr;
  auto connection = std::make_unique<Connection>();
  if (!Ok(MPI_Comm_dup(MPI_COMM_WORLD, &connection->communicator), "MPI_Comm_dup", error)) return nullptr;
  MPI_Comm_set_errhandler(connection->communicator, MPI_ERRORS_RETURN);
  if (!FindRanks(*place, *connection, error)) return nullptr;
  return connection.release();
}

// MPI itself ends with the process: it cannot be started twice.
void Disconnect(void* connection) { delete static_cast<Connection*>(connection); }

void* Send(void* opaque, int32_t peer, uint64_t tag, const void* data, int64_t bytes, TransportError* error) {
  auto* connection = static_cast<Connection*>(opaque);
  auto transfer = std::make_unique<MpiTransfer>();
  transfer->connection = connection;
  transfer->peer = peer;
  transfer->message = std::make_shared<Incoming>();
  std::vector<char>& message = transfer->message->bytes;
  message.resize(kHeader + static_cast<size_t>(bytes));
  std::memcpy(message.data(), &tag, kHeader);
  if (bytes > 0) std::memcpy(message.data() + kHeader, data, static_cast<size_t>(bytes));
  std::lock_guard<std::mutex> lock(connection->mutex);
  const int result = MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_BYTE, connection->rank_of[peer],
                               kTag, connection->communicator, &transfer->message->request);
  return Ok(result, "MPI_Isend", error) ? transfer.release() : nullptr;
}

void* Receive(void* connection, int32_t peer, uint64_t tag, void* data, int64_t bytes, TransportError*) {
  auto transfer = std::make_unique<MpiTransfer>();
  transfer->connection = static_cast<Connection*>(connection);
  transfer->peer = peer;
  transfer->tag = tag;
  transfer->data = data;
  transfer->bytes = bytes;
  return transfer.release();
}

// Takes in what has come. The mutex is held.
bool TakeIn(Connection& connection, TransportError* error) {
  while (true) {
    int there = 0;
    MPI_Message message;
    MPI_Status status;
    if (!Ok(MPI_Improbe(MPI_ANY_SOURCE, kTag, connection.communicator, &there, &message, &status), "MPI_Improbe",
            error))
      return false;
    if (!there) break;
    int size = 0;
    MPI_Get_count(&status, MPI_BYTE, &size);
    auto incoming = std::make_unique<Incoming>();
    incoming->source = connection.process_of[status.MPI_SOURCE];
    incoming->bytes.resize(static_cast<size_t>(size));
    if (!Ok(MPI_Imrecv(incoming->bytes.data(), size, MPI_BYTE, &message, &incoming->request), "MPI_Imrecv", error))
      return false;
    connection.incoming.push_back(std::move(incoming));
  }
  for (auto at = connection.incoming.begin(); at != connection.incoming.end();) {
    Incoming& incoming = **at;
    int done = 0;
    if (!Ok(MPI_Test(&incoming.request, &done, MPI_STATUS_IGNORE), "MPI_Test", error)) return false;
    if (!done) {
      ++at;
      continue;
    }
    uint64_t tag = 0;
    if (incoming.bytes.size() >= kHeader) std::memcpy(&tag, incoming.bytes.data(), kHeader);
    connection.arrived[{incoming.source, tag}].push_back(std::move(incoming.bytes));
    at = connection.incoming.erase(at);
  }
  return true;
}

enum class Progress { kDone, kWaiting, kFailed };

// The mutex is held.
Progress Advance(MpiTransfer& transfer, TransportError* error) {
  Connection& connection = *transfer.connection;
  if (!TakeIn(connection, error)) return Progress::kFailed;
  if (transfer.message) {
    int done = 0;
    if (!Ok(MPI_Test(&transfer.message->request, &done, MPI_STATUS_IGNORE), "MPI_Test", error))
      return Progress::kFailed;
    return done ? Progress::kDone : Progress::kWaiting;
  }
  const auto found = connection.arrived.find({transfer.peer, transfer.tag});
  if (found == connection.arrived.end()) return Progress::kWaiting;
  const std::vector<char> message = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) connection.arrived.erase(found);
  if (message.size() != kHeader + static_cast<size_t>(transfer.bytes)) {
    Fail(error, kInvalidArgument, "a message of another size than expected");
    return Progress::kFailed;
  }
  if (transfer.bytes > 0) std::memcpy(transfer.data, message.data() + kHeader, static_cast<size_t>(transfer.bytes));
  return Progress::kDone;
}

// A few turns for others, then sleeps that grow: the processor may be what the other process is waiting for.
void Pause(int turn) {
  constexpr int kYields = 50, kLongest = 500;
  if (turn < kYields)
    sched_yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(std::min(turn - kYields + 10, kLongest)));
}

bool Wait(void* opaque, int64_t timeout_ms, TransportError* error) {
  auto& transfer = *static_cast<MpiTransfer*>(opaque);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (int turn = 0;; ++turn) {
    Progress progress;
    {
      std::lock_guard<std::mutex> lock(transfer.connection->mutex);
      progress = Advance(transfer, error);
    }
    if (progress != Progress::kWaiting) return progress == Progress::kDone;
    if (transfer.cancelled) {
      Fail(error, kCancelled, "cancelled");
      break;
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      Fail(error, kDeadlineExceeded, "nothing came");
      break;
    }
    Pause(turn);
  }
  g_failed = true;
  return false;
}

void Cancel(void* transfer) { static_cast<MpiTransfer*>(transfer)->cancelled = true; }

// MPI may still read from a message that was not awaited: it is kept for ever, which only failures come to.
void Release(void* opaque) {
  std::unique_ptr<MpiTransfer> transfer(static_cast<MpiTransfer*>(opaque));
  if (!transfer->message) return;
  std::lock_guard<std::mutex> lock(transfer->connection->mutex);
  if (transfer->message->request != MPI_REQUEST_NULL) new std::shared_ptr<Incoming>(transfer->message);
}

constexpr TransportLibrary kMpi = {kTransportVersion, &Connect, &Disconnect, &Send, &Receive, &Wait, &Cancel, &Release};

}  // namespace
}  // namespace strop

extern "C" __attribute__((visibility("default"))) const strop::TransportLibrary* StropTransport() {
  return &strop::kMpi;
}
