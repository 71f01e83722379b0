// The rendezvous of a grid. Processes wait in one place (a mutex and a condition variable); whoever changes anything
// sets `stuck_` back and wakes all, and a process that finds nothing for it counts itself stuck: when all that run are
// stuck, nothing can ever change, and the run fails instead of hanging.
#include "strop/interp/grid.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "strop/interp/ops.h"

namespace strop {

namespace interp {

namespace {

constexpr int64_t kMaxProcesses = 256;

bool IsPermute(Op op) { return op == Op::CollectivePermute || op == Op::CollectivePermuteStart; }

}  // namespace

Result<std::vector<int64_t>> GroupOf(const Instruction& instruction, int64_t self, int64_t replicas,
                                     int64_t partitions) {
  const auto& a = instruction.attrs<CollectiveAttrs>();
  const int64_t replica = self / partitions, partition = self % partitions;
  STROP_ASSIGN(auto groups, a.replica_groups.Expand());
  const Op op = instruction.op();
  const bool channel = a.channel_id > 0;
  const bool exchange = op == Op::AllToAll || op == Op::CollectiveBroadcast || op == Op::RaggedAllToAll;
  // What the numbers of the groups mean: flat process ids, replicas (of the same partition, or of all), or partitions.
  enum { kFlat, kReplica, kReplicaAllPartitions, kPartition } mode = kReplica;
  if (channel && a.use_global_device_ids)
    mode = kFlat;
  else if (channel)
    mode = exchange ? kPartition : kReplicaAllPartitions;
  const int64_t count = mode == kFlat ? replicas * partitions : mode == kPartition ? partitions : replicas;
  if (groups.empty()) {
    groups.emplace_back();
    for (int64_t i = 0; i < count; ++i) groups.back().push_back(i);
  }
  const int64_t id = mode == kFlat ? self : mode == kPartition ? partition : replica;
  for (const auto& group : groups) {
    bool mine = false;
    for (int64_t i : group) {
      if (i < 0 || i >= count) return InvalidArgument(Name(op), ": replica_groups names ", i, ", there are ", count);
      mine = mine || i == id;
    }
    if (!mine) continue;
    std::vector<int64_t> members;
    for (int64_t i : group) {
      switch (mode) {
        case kFlat: members.push_back(i); break;
        case kPartition: members.push_back(replica * partitions + i); break;
        case kReplica: members.push_back(i * partitions + partition); break;
        case kReplicaAllPartitions:
          for (int64_t p = 0; p < partitions; ++p) members.push_back(i * partitions + p);
      }
    }
    return members;
  }
  return InvalidArgument(Name(op), ": process ", self, " is in none of the replica_groups");
}

namespace {

class World {
 public:
  World(const InterpretOptions& options, const GridRun& run)
      : options_(options), run_(run), active_(static_cast<int64_t>(run.programs.size())) {}

  Result<std::vector<Literal>> Run(std::vector<CheckOutcome>* checks) {
    const size_t n = run_.programs.size();
    std::vector<Result<Literal>> results(n, Internal("not run"));
    std::vector<State> states(n);
    std::vector<std::thread> threads;
    Status failed;
    for (size_t i = 0; i < n; ++i) {
      try {
        threads.emplace_back([this, i, &results, &states] {
          results[i] = RunProcess(static_cast<int64_t>(i), states[i]);
          Leave(results[i].ok());
        });
      } catch (const std::system_error&) {
        failed = ResourceExhausted("cannot start thread number ", i, " of the grid");
        for (size_t rest = i; rest < n; ++rest) Leave(false);
        break;
      }
    }
    for (std::thread& thread : threads) thread.join();
    STROP_TRY(failed);
    return Collect(results, states, checks);
  }

 private:
  struct Meeting {
    std::map<int64_t, std::vector<Literal>> operands;  // by process
    int64_t left = 0;                                  // members that have not taken their result yet
  };
  // Which collective, among whom, for the how-manieth time.
  using MeetingKey = std::tuple<int64_t, std::vector<int64_t>, int64_t>;

  Result<std::vector<Literal>> Collect(std::vector<Result<Literal>>& results, std::vector<State>& states,
                                       std::vector<CheckOutcome>* checks) {
    std::vector<Literal> values;
    Status first;
    for (auto& result : results) {
      if (result.ok())
        values.push_back(*std::move(result));
      else if (first.ok() || first.code() == StatusCode::kAborted)
        first = std::move(result).status();  // aborted: for another's failure
    }
    STROP_TRY(first);
    if (checks)
      for (State& state : states) checks->insert(checks->end(), state.checks.begin(), state.checks.end());
    return values;
  }

  Result<Literal> RunProcess(int64_t self, State& state) {
    InterpretOptions options = options_;
    options.num_replicas = run_.replicas;
    options.num_partitions = run_.partitions;
    options.replica_id = self / run_.partitions;
    options.partition_id = self % run_.partitions;
    std::map<std::pair<int64_t, std::vector<int64_t>>, int64_t> times;
    Evaluator* evaluator = nullptr;
    options.communicate = [&](const Instruction& instruction, std::span<const Literal> operands, Literal* result) {
      return Communicate(self, *evaluator, times, instruction, operands, result);
    };
    if (!run_.infeed.empty()) {
      options.infeed = [&](const Instruction& instruction, std::span<const Literal>, Literal* result) {
        return Infeed(*evaluator, instruction, result);
      };
    }
    Evaluator own(options, state);
    evaluator = &own;
    return own.Run(*run_.programs[static_cast<size_t>(self)], run_.arguments[static_cast<size_t>(self)]);
  }

  Status Communicate(int64_t self, Evaluator& evaluator,
                     std::map<std::pair<int64_t, std::vector<int64_t>>, int64_t>& times, const Instruction& instruction,
                     std::span<const Literal> operands, Literal* result) {
    if (instruction.op() == Op::Send) return Send(instruction.attrs<ChannelAttrs>().channel_id, operands[0]);
    if (instruction.op() == Op::Recv) return Receive(instruction.attrs<ChannelAttrs>().channel_id, result);
    const bool permute = IsPermute(instruction.op());
    std::vector<int64_t> members;
    if (permute) {
      members = PermuteMembers(instruction, self);
    } else {
      STROP_ASSIGN(members, GroupOf(instruction, self, run_.replicas, run_.partitions));
    }
    const int64_t channel =
        permute ? instruction.attrs<PermuteAttrs>().channel_id : instruction.attrs<CollectiveAttrs>().channel_id;
    const int64_t which = channel > 0 ? channel : -1 - instruction.id();  // programs that differ meet by channel
    const int64_t time = times[{which, members}]++;
    std::vector<std::vector<Literal>> all;
    STROP_TRY(Meet({which, members, time}, self, members, operands, &all));
    if (permute) return Permute(instruction, self, members, all, result);
    for (size_t me = 0; me < members.size(); ++me) {
      if (members[me] != self) continue;
      STROP_ASSIGN(*result, CollectiveResult(evaluator, instruction, me, all));
      return OkStatus();
    }
    return Internal("grid: a process outside of its group");
  }

  // Without a channel replicas permute, with one partitions do.
  std::vector<int64_t> PermuteMembers(const Instruction& instruction, int64_t self) const {
    std::vector<int64_t> members;
    const int64_t replica = self / run_.partitions, partition = self % run_.partitions;
    if (instruction.attrs<PermuteAttrs>().channel_id > 0)
      for (int64_t p = 0; p < run_.partitions; ++p) members.push_back(replica * run_.partitions + p);
    else
      for (int64_t r = 0; r < run_.replicas; ++r) members.push_back(r * run_.partitions + partition);
    return members;
  }

  Status Permute(const Instruction& instruction, int64_t self, const std::vector<int64_t>& members,
                 const std::vector<std::vector<Literal>>& all, Literal* result) const {
    const int64_t n = static_cast<int64_t>(members.size());
    const std::vector<Literal>*own = nullptr, *sent = nullptr;
    for (size_t i = 0; i < members.size(); ++i)
      if (members[i] == self) own = &all[i];
    for (const auto& [source, target] : instruction.attrs<PermuteAttrs>().source_target_pairs) {
      if (source < 0 || target < 0 || source >= n || target >= n)
        return InvalidArgument("collective-permute from ", source, " to ", target, " among ", n);
      if (members[static_cast<size_t>(target)] == self) sent = &all[static_cast<size_t>(source)];
    }
    STROP_ASSIGN(*result, PermuteResult(instruction, *own, sent));
    return OkStatus();
  }

  // Waits until ready() holds; the mutex is held.
  template <class Ready>
  Status Wait(std::unique_lock<std::mutex>& lock, Ready&& ready) {
    while (!ready()) {
      if (failed_) return Status(StatusCode::kAborted, "another process of the grid failed");
      if (++stuck_ >= active_) {
        failed_ = true;
        condition_.notify_all();
        return FailedPrecondition("all processes of the grid wait for each other");
      }
      const int64_t epoch = epoch_;
      while (epoch == epoch_ && !failed_) condition_.wait(lock);
    }
    return OkStatus();
  }
  void Changed() {
    ++epoch_;
    stuck_ = 0;
    condition_.notify_all();
  }
  void Leave(bool ok) {
    std::lock_guard<std::mutex> lock(mutex_);
    --active_;
    failed_ = failed_ || !ok;
    Changed();
  }

  Status Meet(const MeetingKey& key, int64_t self, const std::vector<int64_t>& members,
              std::span<const Literal> operands, std::vector<std::vector<Literal>>* all) {
    std::unique_lock<std::mutex> lock(mutex_);
    Meeting& meeting = meetings_[key];
    meeting.operands[self] = {operands.begin(), operands.end()};
    if (meeting.operands.size() == members.size()) {
      meeting.left = static_cast<int64_t>(members.size());
      Changed();
    }
    STROP_TRY(Wait(lock, [&] { return meeting.operands.size() == members.size(); }));
    for (int64_t member : members) all->push_back(meeting.operands[member]);
    if (--meeting.left == 0) meetings_.erase(key);
    return OkStatus();
  }

  Status Send(int64_t channel, const Literal& data) {
    std::lock_guard<std::mutex> lock(mutex_);
    channels_[channel].push_back(data);
    Changed();
    return OkStatus();
  }
  Status Receive(int64_t channel, Literal* result) {
    std::unique_lock<std::mutex> lock(mutex_);
    std::deque<Literal>& queue = channels_[channel];
    STROP_TRY(Wait(lock, [&] { return !queue.empty(); }));
    *result = std::move(queue.front());
    queue.pop_front();
    return OkStatus();
  }

  Status Infeed(Evaluator& evaluator, const Instruction& instruction, Literal* result) {
    const Computation* next;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (next_infeed_ >= run_.infeed.size())
        return FailedPrecondition("the infeed has only ", run_.infeed.size(), " values");
      next = run_.infeed[next_infeed_++];
    }
    STROP_ASSIGN(Literal data, evaluator.Run(*next, {}));
    const Shape& want = instruction.shape().element(0);
    if (want.IsTuple() && !data.shape().IsTuple()) data = Literal::Tuple({std::move(data)});
    if (!data.shape().Compatible(want))
      return InvalidArgument("infeed gives ", data.shape().ToString(), ", the program takes ", want.ToString());
    *result = Literal::Tuple({std::move(data), Literal::Token()});
    return OkStatus();
  }

  const InterpretOptions& options_;
  const GridRun& run_;
  std::mutex mutex_;
  std::condition_variable condition_;
  int64_t active_, stuck_ = 0, epoch_ = 0;
  bool failed_ = false;
  std::map<MeetingKey, Meeting> meetings_;
  std::map<int64_t, std::deque<Literal>> channels_;
  size_t next_infeed_ = 0;
};

}  // namespace
}  // namespace interp

Result<std::vector<Literal>> RunGrid(const InterpretOptions& options, const GridRun& run,
                                     std::vector<CheckOutcome>* checks) {
  const int64_t processes = run.replicas * run.partitions;
  if (run.replicas < 1 || run.partitions < 1 || run.replicas > interp::kMaxProcesses ||
      run.partitions > interp::kMaxProcesses || processes > interp::kMaxProcesses)
    return InvalidArgument("a grid has 1 to ", interp::kMaxProcesses, " processes, not ", run.replicas, " x ",
                           run.partitions);
  if (static_cast<int64_t>(run.programs.size()) != processes || run.arguments.size() != run.programs.size())
    return InvalidArgument("a grid of ", processes, " processes needs a program and arguments for each");
  for (size_t i = 0; i < run.programs.size(); ++i) {
    const auto& parameters = run.programs[i]->parameters();
    if (parameters.size() != run.arguments[i].size())
      return InvalidArgument("process ", i, " takes ", parameters.size(), " arguments, got ", run.arguments[i].size());
    for (size_t k = 0; k < parameters.size(); ++k)
      if (!parameters[k]->shape().Compatible(run.arguments[i][k].shape()))
        return InvalidArgument("argument ", k, " of process ", i, " has shape ", run.arguments[i][k].shape().ToString(),
                               ", the parameter is ", parameters[k]->shape().ToString());
  }
  return interp::World(options, run).Run(checks);
}

}  // namespace strop
