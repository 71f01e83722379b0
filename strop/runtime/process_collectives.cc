// Exchanges between processes. Every message goes straight from the process that has the data to the one that wants it,
// all at the same time: one round, two for a large all-reduce.
//
// Sums: those of a process's own devices first, in the order of their ranks, then those of the processes in theirs. So
// each value crosses the network once per process, and all processes get the same bits; those of a run in one process
// differ by rounding.
#include "strop/runtime/process_collectives.h"

#include <algorithm>
#include <cstring>

#include "strop/base/hash.h"

namespace strop {
namespace {

// What a process may send in one round: below, another round costs more than the bytes and sums that it saves. (Two
// processes on one machine, 1 MiB: 1.4 ms in one round, 3.4 in two.)
constexpr int64_t kOneRoundBytes = 1 << 20;

int64_t NumPieces(int64_t bytes) { return (bytes + kPieceBytes - 1) / kPieceBytes; }

}  // namespace

ProcessCollectives::ProcessCollectives(std::shared_ptr<ProcessGroup> group, uint64_t launch,
                                       std::vector<int32_t> process_of)
    : group_(std::move(group)),
      launch_(launch),
      process_of_(std::move(process_of)),
      place_(group_->timeout()),
      here_(MakeInProcessCollectives(group_->timeout())) {
  group_->Enter(launch_, this);
}

ProcessCollectives::~ProcessCollectives() { group_->Leave(launch_); }

// ---- failure --------------------------------------------------------------------------------------------------------

void ProcessCollectives::Abort(Status status) {
  if (!place_.aborted().ok()) return;
  AbortFromElsewhere(status);
  group_->Report(launch_, status);
}

void ProcessCollectives::AbortFromElsewhere(Status status) {
  here_->Abort(status);
  place_.Abort(std::move(status));
  std::lock_guard<std::mutex> lock(mutex_);
  for (Transfer* transfer : transfers_) transfer->Cancel();
}

bool ProcessCollectives::StillWaiting() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(waited_before_, !transfers_.empty()) && !transfers_.empty();
}

Status ProcessCollectives::Explain(const Gathering& gathering, const Message& message, const Status& status) const {
  if (status.code() == StatusCode::kCancelled && !place_.aborted().ok()) return place_.aborted();
  std::string devices;
  for (size_t id = 0; id < process_of_.size(); ++id)
    if (process_of_[id] == message.peer) devices += StrCat(devices.empty() ? "" : ", ", id);
  const std::string who = StrCat("process ", message.peer, " (devices ", devices, " of the program)");
  if (status.code() == StatusCode::kDeadlineExceeded)
    return Status(status.code(),
                  StrCat(gathering.op, ": ", who, " did not come within ", group_->timeout().count() / 1000,
                         " s (option collectives-timeout); process ", group_->rank(), " waited for it"));
  return Status(status.code(),
                StrCat(gathering.op, ": process ", group_->rank(), " lost ", who, ": ", status.message()));
}

// ---- messages -------------------------------------------------------------------------------------------------------

Status ProcessCollectives::Start(const Gathering& gathering, const Message& message, int64_t piece,
                                 std::unique_ptr<Transfer>& transfer) {
  const int64_t offset = piece * kPieceBytes, bytes = std::min(kPieceBytes, message.bytes - offset);
  Fnv1a tag;
  for (int64_t part : {int64_t{message.from}, int64_t{message.to}, piece}) tag.AddStep(static_cast<uint64_t>(part) + 1);
  const uint64_t mixed = SpreadBits(gathering.tag ^ SpreadBits(tag.value()));
  Result<std::unique_ptr<Transfer>> started =
      message.send
          ? group_->transport().Send(message.peer, mixed, static_cast<const char*>(message.send) + offset, bytes)
          : group_->transport().Receive(message.peer, mixed, static_cast<char*>(message.receive) + offset, bytes);
  if (!started.ok()) return Explain(gathering, message, started.status());
  transfer = *std::move(started);
  return OkStatus();
}

Status ProcessCollectives::Swap(const Gathering& gathering, std::span<const Message> messages) {
  struct Started {
    const Message* message;
    std::unique_ptr<Transfer> transfer;
  };
  std::vector<Started> started;
  Status status;
  for (const bool sends : {false, true}) {
    for (const Message& message : messages) {
      if ((message.send != nullptr) != sends) continue;
      for (int64_t piece = 0; piece < NumPieces(message.bytes) && status.ok(); ++piece) {
        started.push_back({&message, nullptr});
        status = Start(gathering, message, piece, started.back().transfer);
        if (!status.ok()) started.pop_back();
      }
    }
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const Started& one : started) transfers_.insert(one.transfer.get());
  }
  // Whoever aborts from here on cancels them.
  if (status.ok()) status = place_.aborted();
  for (const Started& one : started) {
    if (!status.ok()) break;
    Status waited = one.transfer->Wait(group_->timeout());
    if (!waited.ok()) status = Explain(gathering, *one.message, waited);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Started& one : started) transfers_.erase(one.transfer.get());
  return status;
}

uint64_t ProcessCollectives::NextTag(const CollectiveCall& call, const Exchange& exchange) {
  Fnv1a tag;
  tag.AddStep(launch_);
  tag.AddStep(static_cast<uint64_t>(call.op));
  tag.AddStep(static_cast<uint64_t>(call.group));
  tag.Add(exchange.op);
  for (int64_t part : {int64_t{exchange.type}, int64_t{exchange.reduction}, exchange.outer, exchange.block})
    tag.AddStep(static_cast<uint64_t>(part));
  std::lock_guard<std::mutex> lock(mutex_);
  tag.AddStep(++trips_[{call.op, call.group}]);
  return SpreadBits(tag.value());
}

// ---- who takes part -------------------------------------------------------------------------------------------------

bool ProcessCollectives::AllHere(const CollectiveCall& call) const {
  for (int32_t rank = 0; rank < call.size; ++rank) {
    const auto id = static_cast<size_t>(LogicalId(call, rank));
    if (id >= process_of_.size() || process_of_[id] != group_->rank()) return false;
  }
  return true;
}

Result<ProcessCollectives::Gathering> ProcessCollectives::GatheringOf(const CollectiveCall& call) const {
  Gathering out;
  out.call = &call;
  for (int32_t rank = 0; rank < call.size; ++rank) {
    const auto id = static_cast<size_t>(LogicalId(call, rank));
    if (id >= process_of_.size())
      return InvalidArgument("collective ", call.op, " names device ", id, " of ", process_of_.size());
    out.process_of.push_back(process_of_[id]);
    if (process_of_[id] == group_->rank()) out.here.push_back(rank);
  }
  out.processes = out.process_of;
  std::sort(out.processes.begin(), out.processes.end());
  out.processes.erase(std::unique(out.processes.begin(), out.processes.end()), out.processes.end());
  return out;
}

Status ProcessCollectives::Together(const CollectiveCall& call, const Exchange& exchange, const void* in, void* out,
                                    const Work& work) {
  STROP_ASSIGN(Gathering gathering, GatheringOf(call));
  const auto me = std::find(gathering.here.begin(), gathering.here.end(), call.rank);
  if (me == gathering.here.end()) return InvalidArgument("rank ", call.rank, " is another process's");
  std::vector<int32_t> members;
  for (int32_t rank : gathering.here) members.push_back(LogicalId(call, rank));
  const CollectiveCall local{.op = call.op,
                             .group = call.group,
                             .rank = static_cast<int32_t>(me - gathering.here.begin()),
                             .size = static_cast<int32_t>(gathering.here.size()),
                             .members = members};
  return place_.Meet(local, exchange, in, out, [&](const MeetingPlace::Meeting& meeting) {
    if (local.rank != 0) return OkStatus();
    gathering.places = &meeting.places;
    gathering.tag = NextTag(call, exchange);
    gathering.op = exchange.op;
    return work(gathering);
  });
}

// ---- collectives ----------------------------------------------------------------------------------------------------

Status ProcessCollectives::AllReduce(const CollectiveCall& call, ElementType type, ReductionKind kind, int64_t count,
                                     const void* in, void* out) {
  if (AllHere(call)) return here_->AllReduce(call, type, kind, count, in, out);
  const Exchange exchange{"all-reduce", static_cast<int32_t>(type), static_cast<int32_t>(kind), 1, count};
  return Together(call, exchange, in, out, [&](Gathering& g) -> Status {
    const int64_t bytes = count * Bytes(type);
    const Scratch sum = group_->TakeScratch(g.here.size() > 1 ? bytes : 0);
    const char* own = g.in(0);
    if (g.here.size() > 1) {
      STROP_TRY(SumHere(g, type, kind, count, sum.data()));
      own = sum.data();
    }
    const auto others = static_cast<int64_t>(g.processes.size()) - 1;
    STROP_TRY(others * bytes <= kOneRoundBytes ? ReduceWhole(g, type, kind, count, own)
                                               : ReduceByShares(g, type, kind, count, own));
    for (size_t k = 1; k < g.here.size(); ++k) std::memcpy(g.out(k), g.out(0), static_cast<size_t>(bytes));
    return OkStatus();
  });
}

// What this process's devices have, added up: piece by piece, so that a sum stays in the cache until it is whole.
Status ProcessCollectives::SumHere(const Gathering& g, ElementType type, ReductionKind kind, int64_t count, char* sum) {
  constexpr int64_t kPiece = 16 << 10;
  const int64_t width = Bytes(type), piece = kPiece / width;
  for (int64_t at = 0; at < count; at += piece) {
    const int64_t n = std::min(piece, count - at);
    std::memcpy(sum + at * width, g.in(0) + at * width, static_cast<size_t>(n * width));
    for (size_t k = 1; k < g.here.size(); ++k)
      STROP_TRY(Accumulate(type, kind, n, sum + at * width, g.in(k) + at * width));
  }
  return OkStatus();
}

// The parts of all processes, added up in their order; the first one's memory holds the sum.
Status ProcessCollectives::SumParts(ElementType type, ReductionKind kind, int64_t count,
                                    const std::vector<char*>& parts) {
  for (size_t p = 1; p < parts.size(); ++p) STROP_TRY(Accumulate(type, kind, count, parts[0], parts[p]));
  return OkStatus();
}

// Everybody gets everybody's part and adds them up. `own` may be the first output's memory.
Status ProcessCollectives::ReduceWhole(const Gathering& g, ElementType type, ReductionKind kind, int64_t count,
                                       const char* own) {
  const int64_t bytes = count * Bytes(type);
  const Scratch scratch = group_->TakeScratch(static_cast<int64_t>(g.processes.size()) * bytes);
  std::vector<char*> parts;
  std::vector<Message> messages;
  for (size_t p = 0; p < g.processes.size(); ++p) {
    parts.push_back(scratch.data() + static_cast<int64_t>(p) * bytes);
    if (g.processes[p] == group_->rank()) {
      std::memcpy(parts[p], own, static_cast<size_t>(bytes));
      continue;
    }
    messages.push_back({.peer = g.processes[p], .send = own, .bytes = bytes});
    messages.push_back({.peer = g.processes[p], .receive = parts[p], .bytes = bytes});
  }
  STROP_TRY(Swap(g, messages));
  STROP_TRY(SumParts(type, kind, count, parts));
  std::memcpy(g.out(0), parts[0], static_cast<size_t>(bytes));
  return OkStatus();
}

// Process p adds up the p-th share, then hands it to all. `own` may be the first output's memory.
Status ProcessCollectives::ReduceByShares(const Gathering& g, ElementType type, ReductionKind kind, int64_t count,
                                          const char* own) {
  const int64_t width = Bytes(type);
  const auto num_processes = static_cast<int64_t>(g.processes.size());
  auto begin = [&](int64_t p) { return count * p / num_processes; };
  int64_t me = 0;
  while (g.processes[me] != group_->rank()) ++me;
  const int64_t share = (begin(me + 1) - begin(me)) * width;
  const Scratch scratch = group_->TakeScratch(num_processes * share);
  std::vector<char*> parts;
  std::vector<Message> scatter, gather;
  char* out = g.out(0);
  for (int64_t p = 0; p < num_processes; ++p) {
    parts.push_back(scratch.data() + p * share);
    const int64_t theirs = (begin(p + 1) - begin(p)) * width, at = begin(p) * width;
    if (p == me) {
      std::memcpy(parts[p], own + at, static_cast<size_t>(share));
      continue;
    }
    const int32_t peer = g.processes[p];
    scatter.push_back({.peer = peer, .send = own + at, .bytes = theirs});
    scatter.push_back({.peer = peer, .receive = parts[p], .bytes = share});
    gather.push_back({.peer = peer, .from = 1, .send = parts[0], .bytes = share});
    gather.push_back({.peer = peer, .from = 1, .receive = out + at, .bytes = theirs});
  }
  STROP_TRY(Swap(g, scatter));
  STROP_TRY(SumParts(type, kind, share / width, parts));
  std::memcpy(out + begin(me) * width, parts[0], static_cast<size_t>(share));
  return Swap(g, gather);
}

Status ProcessCollectives::AllGather(const CollectiveCall& call, int64_t outer, int64_t block_bytes, const void* in,
                                     void* out) {
  if (AllHere(call)) return here_->AllGather(call, outer, block_bytes, in, out);
  return Together(call, {"all-gather", 0, 0, outer, block_bytes}, in, out, [&](Gathering& g) -> Status {
    const int64_t bytes = outer * block_bytes;
    std::vector<Message> messages;
    std::vector<std::vector<char>> arrived(g.process_of.size());
    std::vector<const char*> blocks(g.process_of.size());
    for (size_t k = 0; k < g.here.size(); ++k) {
      blocks[g.here[k]] = g.in(k);
      for (int32_t peer : g.processes)
        if (peer != group_->rank())
          messages.push_back({.peer = peer, .from = g.here[k], .send = g.in(k), .bytes = bytes});
    }
    for (int32_t rank = 0; rank < call.size; ++rank) {
      if (g.process_of[rank] == group_->rank()) continue;
      char* to = g.out(0) + rank * block_bytes;
      if (outer != 1) {
        arrived[rank].resize(static_cast<size_t>(bytes));
        to = arrived[rank].data();
      }
      blocks[rank] = to;
      messages.push_back({.peer = g.process_of[rank], .from = rank, .receive = to, .bytes = bytes});
    }
    STROP_TRY(Swap(g, messages));
    char* to = g.out(0);
    for (int64_t o = 0; o < outer; ++o)
      for (int32_t rank = 0; rank < call.size; ++rank, to += block_bytes)
        if (blocks[rank] + o * block_bytes != to)
          std::memcpy(to, blocks[rank] + o * block_bytes, static_cast<size_t>(block_bytes));
    for (size_t k = 1; k < g.here.size(); ++k) std::memcpy(g.out(k), g.out(0), static_cast<size_t>(bytes * call.size));
    return OkStatus();
  });
}

namespace {

// The blocks for `rank` of a value [outer][size][block], one after the other.
std::vector<char> TakeBlocks(const char* from, int64_t outer, int32_t size, int32_t rank, int64_t block_bytes) {
  std::vector<char> out(static_cast<size_t>(outer * block_bytes));
  for (int64_t o = 0; o < outer; ++o)
    std::memcpy(out.data() + o * block_bytes, from + (o * size + rank) * block_bytes, static_cast<size_t>(block_bytes));
  return out;
}

}  // namespace

Status ProcessCollectives::ReduceScatter(const CollectiveCall& call, ElementType type, ReductionKind kind,
                                         int64_t outer, int64_t block, const void* in, void* out) {
  if (AllHere(call)) return here_->ReduceScatter(call, type, kind, outer, block, in, out);
  const Exchange exchange{"reduce-scatter", static_cast<int32_t>(type), static_cast<int32_t>(kind), outer, block};
  return Together(call, exchange, in, out, [&](Gathering& g) -> Status {
    const int64_t block_bytes = block * Bytes(type), bytes = outer * block_bytes;
    // What this process's devices have for each rank, added up.
    std::vector<std::vector<char>> sums;
    for (int32_t rank = 0; rank < call.size; ++rank) {
      sums.push_back(TakeBlocks(g.in(0), outer, call.size, rank, block_bytes));
      for (size_t k = 1; k < g.here.size(); ++k) {
        const std::vector<char> more = TakeBlocks(g.in(k), outer, call.size, rank, block_bytes);
        STROP_TRY(Accumulate(type, kind, outer * block, sums[rank].data(), more.data()));
      }
    }
    std::vector<Message> messages;
    std::map<std::pair<int32_t, int32_t>, std::vector<char>> arrived;  // by rank and process
    for (int32_t rank = 0; rank < call.size; ++rank)
      if (g.process_of[rank] != group_->rank())
        messages.push_back({.peer = g.process_of[rank], .to = rank, .send = sums[rank].data(), .bytes = bytes});
    for (int32_t rank : g.here) {
      for (int32_t peer : g.processes) {
        if (peer == group_->rank()) continue;
        std::vector<char>& theirs = arrived[{rank, peer}];
        theirs.resize(static_cast<size_t>(bytes));
        messages.push_back({.peer = peer, .to = rank, .receive = theirs.data(), .bytes = bytes});
      }
    }
    STROP_TRY(Swap(g, messages));
    for (size_t k = 0; k < g.here.size(); ++k) {
      const int32_t rank = g.here[k];
      for (size_t p = 0; p < g.processes.size(); ++p) {
        const bool mine = g.processes[p] == group_->rank();
        const char* part = mine ? sums[rank].data() : arrived[{rank, g.processes[p]}].data();
        if (p == 0)
          std::memcpy(g.out(k), part, static_cast<size_t>(bytes));
        else
          STROP_TRY(Accumulate(type, kind, outer * block, g.out(k), part));
      }
    }
    return OkStatus();
  });
}

Status ProcessCollectives::AllToAll(const CollectiveCall& call, int64_t outer, int64_t block_bytes, const void* in,
                                    void* out) {
  if (AllHere(call)) return here_->AllToAll(call, outer, block_bytes, in, out);
  return Together(call, {"all-to-all", 0, 0, outer, block_bytes}, in, out, [&](Gathering& g) -> Status {
    const int64_t bytes = outer * block_bytes;
    std::vector<Message> messages;
    std::map<std::pair<int32_t, int32_t>, std::vector<char>> blocks;  // by sender and receiver
    for (size_t k = 0; k < g.here.size(); ++k) {
      const int32_t me = g.here[k];
      for (int32_t rank = 0; rank < call.size; ++rank) {
        std::vector<char>& sent = blocks[{me, rank}];
        sent = TakeBlocks(g.in(k), outer, call.size, rank, block_bytes);
        if (g.process_of[rank] == group_->rank()) continue;
        messages.push_back({.peer = g.process_of[rank], .from = me, .to = rank, .send = sent.data(), .bytes = bytes});
        std::vector<char>& received = blocks[{rank, me}];
        received.resize(static_cast<size_t>(bytes));
        messages.push_back(
            {.peer = g.process_of[rank], .from = rank, .to = me, .receive = received.data(), .bytes = bytes});
      }
    }
    STROP_TRY(Swap(g, messages));
    for (size_t k = 0; k < g.here.size(); ++k)
      for (int32_t rank = 0; rank < call.size; ++rank)
        for (int64_t o = 0; o < outer; ++o)
          std::memcpy(g.out(k) + (o * call.size + rank) * block_bytes,
                      blocks[{rank, g.here[k]}].data() + o * block_bytes, static_cast<size_t>(block_bytes));
    return OkStatus();
  });
}

Status ProcessCollectives::Permute(const CollectiveCall& call, std::span<const int32_t> sources, int64_t bytes,
                                   const void* in, void* out) {
  STROP_TRY(CheckSources(call, sources));
  if (AllHere(call)) return here_->Permute(call, sources, bytes, in, out);
  return Together(call, {"collective-permute", 0, 0, 1, bytes}, in, out, [&](Gathering& g) -> Status {
    std::vector<Message> messages;
    std::vector<const char*> in_of(g.process_of.size());
    for (size_t k = 0; k < g.here.size(); ++k) in_of[g.here[k]] = g.in(k);
    for (int32_t rank = 0; rank < call.size; ++rank) {
      const int32_t source = sources[rank];
      if (source < 0 || !in_of[source] || g.process_of[rank] == group_->rank()) continue;
      messages.push_back(
          {.peer = g.process_of[rank], .from = source, .to = rank, .send = in_of[source], .bytes = bytes});
    }
    for (size_t k = 0; k < g.here.size(); ++k) {
      const int32_t rank = g.here[k], source = sources[rank];
      if (source < 0)
        std::memset(g.out(k), 0, static_cast<size_t>(bytes));
      else if (in_of[source])
        std::memcpy(g.out(k), in_of[source], static_cast<size_t>(bytes));
      else
        messages.push_back(
            {.peer = g.process_of[source], .from = source, .to = rank, .receive = g.out(k), .bytes = bytes});
    }
    return Swap(g, messages);
  });
}

Status ProcessCollectives::Broadcast(const CollectiveCall& call, int32_t root, int64_t bytes, const void* in,
                                     void* out) {
  if (root < 0 || root >= call.size) return InvalidArgument("collective-broadcast: root ", root, " of ", call.size);
  if (AllHere(call)) return here_->Broadcast(call, root, bytes, in, out);
  return Together(call, {"collective-broadcast", 0, 0, 1, bytes}, in, out, [&](Gathering& g) -> Status {
    std::vector<Message> messages;
    const auto at = std::find(g.here.begin(), g.here.end(), root);
    const char* value = g.out(0);
    if (at == g.here.end()) {
      messages.push_back({.peer = g.process_of[root], .receive = g.out(0), .bytes = bytes});
    } else {
      value = g.in(static_cast<size_t>(at - g.here.begin()));
      for (int32_t peer : g.processes)
        if (peer != group_->rank()) messages.push_back({.peer = peer, .send = value, .bytes = bytes});
    }
    STROP_TRY(Swap(g, messages));
    for (size_t k = 0; k < g.here.size(); ++k)
      if (g.out(k) != value) std::memcpy(g.out(k), value, static_cast<size_t>(bytes));
    return OkStatus();
  });
}

}  // namespace strop
