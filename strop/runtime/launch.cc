#include "strop/runtime/launch.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace strop {
namespace {

// n default-made T: the first N inside the object, so that a small launch allocates nothing for its tables.
template <class T, size_t N>
class Table {
 public:
  explicit Table(size_t n) : size_(n), heap_(n > N ? new T[n] : nullptr), data_(heap_ ? heap_.get() : inline_) {}
  Table(Table&& other) noexcept
      : size_(other.size_), heap_(std::move(other.heap_)), data_(heap_ ? heap_.get() : inline_) {
    if (!heap_) std::move(other.inline_, other.inline_ + size_, inline_);
  }
  T& operator[](size_t i) { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  size_t size() const { return size_; }
  std::span<T> span() { return {data_, size_}; }

 private:
  size_t size_;
  T inline_[N] = {};
  std::unique_ptr<T[]> heap_;
  T* data_;
};

constexpr size_t kInlineLeaves = 16;

using Clock = std::chrono::steady_clock;

// Moves what is meant of a bounded array to its front, where it then lies densely: row by row, from the lowest on, so
// that no row is overwritten before it was moved.
void PackToSize(const Shape& bounds, const Int64Vector& dims, void* data) {
  if (dims == bounds.dims() || std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
  const Int64Vector order = bounds.layout_or_default().minor_to_major;
  const int64_t row = dims[order[0]] * Bytes(bounds.type()), row_at_bound = bounds.dim(order[0]) * Bytes(bounds.type());
  Int64Vector index(dims.size(), 0);
  for (char* to = static_cast<char*>(data);; to += row) {
    int64_t from = 0, stride = 1;
    for (size_t k = 1; k < order.size(); stride *= bounds.dim(order[k++])) from += index[order[k]] * stride;
    std::memmove(to, static_cast<char*>(data) + from * row_at_bound, static_cast<size_t>(row));
    size_t k = 1;
    while (k < order.size() && ++index[order[k]] == dims[order[k]]) index[order[k++]] = 0;
    if (k == order.size()) return;
  }
}

// The events of results that are there before an execution has ended.
class EarlyEvents final : public EarlyResultsObserver {
 public:
  EarlyEvents(size_t groups, Device& device) : device_(device), groups_(groups) {
    for (Group& group : groups_) group.event = Make<Event>();
  }

  const EventRef& event(size_t group) const { return groups_[group].event; }

  void OnReady(size_t n) override {
    Group& group = groups_[n];
    group.ready = Clock::now();
    if (group.event->SetWithoutCallbacks()) return;
    device_.callback_queue().Enqueue([event = group.event] { event->Set(OkStatus()); });
  }

  // How long, until now, somebody has waited for one of them that was not there yet.
  Clock::duration Awaited(Clock::time_point launch) const {
    Clock::duration sum{};
    Clock::time_point from = launch;
    for (const Group& group : groups_) {
      const Clock::time_point since = std::max(group.event->awaited_since(), from);
      if (group.event->awaited_since() < launch || since >= group.ready) continue;
      sum += group.ready - since;
      from = group.ready;
    }
    return sum;
  }

  // The execution has ended: those that it did not come to have its error.
  void End(const Status& status) {
    if (status.ok()) return;  // it came to all of them
    for (Group& group : groups_)
      if (group.ready == Clock::time_point()) group.event->Set(status);
  }

 private:
  struct Group {
    EventRef event;
    Clock::time_point ready;
  };
  Device& device_;
  std::vector<Group> groups_;  // in the order in which they become ready
};

// One execution: holds everything that it needs until it has ended.
class Execution {
 public:
  Execution(std::shared_ptr<const Executable> executable, LaunchArgs args)
      : executable_(std::move(executable)),
        args_(std::move(args)),
        inputs_(executable_->spec().parameters.size()),
        outputs_(executable_->spec().outputs.size()) {}

  // Takes hold of inputs, allocates outputs, donates. Errors leave the inputs as they are, unless an input that was to
  // be donated turned out to be shared and there is no memory for its copy.
  Status Prepare() {
    STROP_TRY(Check());
    STROP_TRY(AcquireInputs());
    if (!poison_.ok()) return OkStatus();
    STROP_TRY(AllocateOutputs());
    STROP_TRY(Donate());
    return ForwardOutputs();
  }

  // The error of an input that will never be there; the execution must not run then.
  const Status& poison() const { return poison_; }
  // What must be ready before the run.
  const std::vector<EventRef>& dependencies() const { return dependencies_; }
  // Of the memory that was asked for the results.
  int64_t output_bytes() const { return output_bytes_; }
  LaunchHabit& habit() const { return executable_->launch_habit(); }
  const LaunchArgs& args() const { return args_; }

  // From here on early results have events of their own.
  void TellOfEarlyResults() {
    const size_t groups = executable_->early_results().groups.size();
    // What devices exchange ends for all of them, sizes are read when the run has ended.
    if (groups == 0 || args_.collectives || executable_->has_dynamic_outputs()) return;
    early_ = std::make_unique<EarlyEvents>(groups, *args_.device);
  }
  EarlyEvents* early() const { return early_.get(); }

  // The output buffers, defined by `done` or, if they are told of, when they are there.
  std::vector<Buffer> MakeOutputs(const EventRef& done) {
    std::vector<Buffer> buffers;
    const ExecutableSpec& spec = executable_->spec();
    buffers.reserve(spec.outputs.size());
    for (size_t i = 0; i < spec.outputs.size(); ++i) {
      const int32_t group = early_ ? executable_->early_results().group_of[i] : -1;
      buffers.emplace_back(outputs_[i], spec.outputs[i].shape, args_.device->ordinal(), spec.outputs[i].memory,
                           group < 0 ? done : early_->event(group));
      if (!spec.outputs[i].dynamic_dims.empty()) dynamic_ = true;
    }
    if (dynamic_) {
      for (Buffer& buffer : buffers) dims_cells_.push_back(buffer.dynamic_dims_cell());
    }
    return buffers;
  }
  std::vector<Buffer> MakeErrors(const Status& status) const {
    std::vector<Buffer> buffers;
    for (const OutputSpec& output : executable_->spec().outputs) {
      buffers.push_back(Buffer::Error(output.shape, args_.device->ordinal(), output.memory, status));
    }
    return buffers;
  }

  // Inputs are read until `done`: whoever wants to overwrite them waits for it.
  void RegisterUses(const EventRef& done) {
    for (Ref<Storage>& input : inputs_) input->AddUse(done);
  }

  Status Run() {
    Table<void*, kInlineLeaves> in(inputs_.size()), out(outputs_.size());
    const ExecutableSpec& spec = executable_->spec();
    for (size_t i = 0; i < in.size(); ++i) in[i] = inputs_[i]->data();
    for (size_t i = 0; i < out.size(); ++i) {
      bool own =
          spec.outputs[i].source == OutputSource::kFresh || spec.outputs[i].source == OutputSource::kAliasParameter;
      out[i] = own ? outputs_[i]->data() : nullptr;
    }
    std::vector<Int64Vector> dims, input_dims(input_dims_cells_.size());
    for (size_t i = 0; i < input_dims.size(); ++i)
      input_dims[i] = input_dims_cells_[i] ? *input_dims_cells_[i] : spec.parameters[i].shape.dims();
    RunArgs run{.inputs = in.span(),
                .outputs = out.span(),
                .device = args_.device,
                .pool = args_.devices->pool().num_threads() > 1 ? &args_.devices->pool() : nullptr,
                .collectives = args_.collectives.get(),
                .assignment = args_.assignment.get(),
                .replica = args_.replica,
                .partition = args_.partition,
                .run_id = args_.run_id,
                .ffi_context = args_.ffi_context.get(),
                .cancelled = args_.cancelled.get(),
                .stats = args_.stats,
                .observer = args_.observer.get(),
                .early = early_.get(),
                .input_dims = input_dims,
                .output_dims = dynamic_ ? &dims : nullptr};
    Status status = executable_->Run(run);
    for (size_t i = 0; i < dims.size(); ++i) {
      if (!dims_cells_[i]) continue;
      if (status.ok() && args_.actual_sizes && out[i]) PackToSize(spec.outputs[i].shape, dims[i], out[i]);
      *dims_cells_[i] = std::move(dims[i]);
    }
    if (!status.ok() && args_.collectives) args_.collectives->Abort(status);
    return status;
  }

 private:
  bool IsDonatable(int64_t parameter) const {
    return std::find(args_.non_donatable.begin(), args_.non_donatable.end(), parameter) == args_.non_donatable.end();
  }

  Status Check() const {
    const ExecutableSpec& spec = executable_->spec();
    if (args_.inputs.size() != spec.parameters.size()) {
      return InvalidArgument(spec.name, " takes ", spec.parameters.size(), " arguments, got ", args_.inputs.size());
    }
    for (size_t i = 0; i < spec.parameters.size(); ++i) {
      const Buffer* input = args_.inputs[i];
      if (!input) return InvalidArgument(spec.name, ": argument ", i, " is null");
      const Shape& expected = spec.parameters[i].shape;
      int64_t bytes = expected.IsArray() ? expected.byte_size() : 0;
      if (input->byte_size() != bytes && expected.IsArray()) {
        return InvalidArgument(spec.name, ": argument ", i, " is ", input->shape().ToString(), ", expected ",
                               expected.ToString());
      }
    }
    for (const OutputSpec& output : spec.outputs) {
      if (output.source != OutputSource::kAliasParameter) continue;
      if (output.must_alias && !IsDonatable(output.index)) {
        return InvalidArgument(spec.name, ": argument ", output.index, " must be donated, but the caller keeps it");
      }
      STROP_TRY(CheckGivenOnce(output.index));
    }
    for (size_t i = 0; i < spec.parameters.size(); ++i)
      if (spec.parameters[i].given_away) STROP_TRY(CheckGivenOnce(static_cast<int32_t>(i)));
    return OkStatus();
  }

  Status CheckGivenOnce(int32_t parameter) const {
    for (size_t i = 0; IsDonatable(parameter) && i < args_.inputs.size(); ++i) {
      if (static_cast<int32_t>(i) == parameter || args_.inputs[i] != args_.inputs[parameter]) continue;
      return InvalidArgument(executable_->spec().name, ": argument ", parameter, " is donated and is argument ", i,
                             " as well");
    }
    return OkStatus();
  }

  Status AcquireInputs() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      Buffer& input = *args_.inputs[i];
      Result<Ref<Storage>> storage = input.Acquire();
      if (!storage.ok()) {
        // A live buffer without memory carries an error that becomes the error of the outputs.
        if (!input.IsDeleted() && input.definition()->IsReady()) {
          if (poison_.ok()) poison_ = storage.status();
          continue;
        }
        return std::move(storage).status().Note(StrCat("argument ", i, " of ", executable_->name()));
      }
      inputs_[i] = *std::move(storage);
      if (!executable_->spec().parameters[i].dynamic_dims.empty()) {
        input_dims_cells_.resize(inputs_.size());
        input_dims_cells_[i] = input.dynamic_dims_cell();
      }
      const EventRef& definition = input.definition();
      if (!definition->IsReady())
        dependencies_.push_back(definition);
      else if (poison_.ok())
        poison_ = definition->status();
    }
    return OkStatus();
  }

  Status AllocateOutputs() {
    const ExecutableSpec& spec = executable_->spec();
    for (size_t i = 0; i < outputs_.size(); ++i) {
      bool own = spec.outputs[i].source == OutputSource::kFresh;
      bool copied = spec.outputs[i].source == OutputSource::kAliasParameter && !IsDonatable(spec.outputs[i].index);
      if (own || copied) STROP_TRY(AllocateOutput(i));
    }
    return OkStatus();
  }

  Status AllocateOutput(size_t i) {
    const Shape& shape = executable_->spec().outputs[i].shape;
    Result<Ref<Storage>> storage =
        Storage::Allocate(args_.device->allocator(), shape.IsArray() ? shape.byte_size() : 0);
    if (!storage.ok()) {
      const std::string& origin = executable_->spec().outputs[i].origin;
      return std::move(storage).status().Note(StrCat("for output ", i, " of ", executable_->name(), ", ",
                                                     shape.ToString(), origin.empty() ? "" : " of ", origin));
    }
    outputs_[i] = *std::move(storage);
    output_bytes_ += outputs_[i]->size();
    return OkStatus();
  }

  Status Donate() {
    const ExecutableSpec& spec = executable_->spec();
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (spec.outputs[i].source != OutputSource::kAliasParameter || outputs_[i]) continue;
      int32_t parameter = spec.outputs[i].index;
      STROP_ASSIGN(Buffer::Donation donation, args_.inputs[parameter]->Donate());
      bool read_elsewhere = false;  // another buffer over the same memory
      for (size_t j = 0; j < inputs_.size(); ++j) {
        read_elsewhere |= static_cast<int32_t>(j) != parameter && inputs_[j].get() == donation.storage.get();
      }
      if (!donation.exclusive || read_elsewhere) {
        STROP_TRY(AllocateOutput(i));
        continue;
      }
      for (EventRef& use : donation.storage->PendingUses()) dependencies_.push_back(std::move(use));
      outputs_[i] = std::move(donation.storage);
    }
    // Whose memory no output has: its own reference keeps it for the run.
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (spec.parameters[i].given_away && IsDonatable(static_cast<int32_t>(i)) && !args_.inputs[i]->IsDeleted())
        STROP_TRY(args_.inputs[i]->Donate().status());
    return OkStatus();
  }

  Status ForwardOutputs() {
    const ExecutableSpec& spec = executable_->spec();
    for (size_t i = 0; i < outputs_.size(); ++i) {
      int32_t index = spec.outputs[i].index;
      switch (spec.outputs[i].source) {
        case OutputSource::kFresh:
        case OutputSource::kAliasParameter: break;
        case OutputSource::kForwardParameter: outputs_[i] = inputs_[index]; break;
        case OutputSource::kForwardOutput: outputs_[i] = outputs_[index]; break;
        case OutputSource::kForwardConstant: {
          const ConstantData& constant = spec.constants[index];
          // The buffer keeps the executable, and so the constant, alive.
          outputs_[i] = Storage::View(const_cast<void*>(constant.data), constant.size, [keep = executable_] {}, false);
          break;
        }
      }
    }
    return OkStatus();
  }

  std::shared_ptr<const Executable> executable_;
  LaunchArgs args_;  // inputs and non_donatable are valid only in Prepare
  Table<Ref<Storage>, kInlineLeaves> inputs_, outputs_;
  std::vector<EventRef> dependencies_;
  std::vector<std::shared_ptr<Int64Vector>> dims_cells_;
  std::vector<std::shared_ptr<Int64Vector>> input_dims_cells_;  // empty if no parameter is of bounded size
  std::unique_ptr<EarlyEvents> early_;
  Status poison_;
  int64_t output_bytes_ = 0;
  bool dynamic_ = false;
};

Launched LaunchAsync(Execution prepared) {
  EventRef done = Make<Event>();
  // Shared because std::function wants copyable closures.
  std::shared_ptr<Execution> execution = std::make_shared<Execution>(std::move(prepared));
  const LaunchArgs& args = execution->args();
  execution->TellOfEarlyResults();
  Launched launched{execution->MakeOutputs(done), done};
  execution->RegisterUses(done);
  EventRef inputs_ready = Event::WhenAll(execution->dependencies());
  LaunchQueue& queue = args.device->queue();
  const int64_t bytes = execution->output_bytes();
  queue.Began(bytes);
  auto run = [execution = std::move(execution), done, collectives = args.collectives, &queue, bytes,
              launch = Clock::now()](const Status& inputs) mutable {
    const Clock::time_point start = Clock::now();
    Status status = inputs.ok() ? execution->Run() : inputs;
    if (inputs.ok()) {
      const Clock::time_point end = Clock::now(), awaited = done->awaited_since();
      const Clock::duration before = execution->early() ? execution->early()->Awaited(launch) : Clock::duration();
      execution->habit().SawQueued(end - start, (awaited < launch ? end : awaited) - launch - before);
    } else if (collectives) {
      collectives->Abort(inputs);
    }
    if (execution->early()) execution->early()->End(status);
    execution = nullptr;  // lets go of the inputs before anybody hears of the end
    queue.Ended(bytes);
    // Callbacks of the event may wait for the host (a Python lock, for one).
    LaunchQueue::BlockingScope blocking;
    done->Set(std::move(status));
  };
  inputs_ready->OnReady([&queue, run = std::move(run)](const Status& inputs) mutable {
    queue.Enqueue([run = std::move(run), inputs]() mutable { run(inputs); });
  });
  queue.AwaitRoom();
  return launched;
}

Launched Failed(const Execution& execution, Status status) {
  EventRef done = Event::ReadyWith(status);
  return {execution.MakeErrors(status), std::move(done)};
}

Result<Launched> Start(std::shared_ptr<const Executable> executable, LaunchArgs&& given) {
  // Users who ask for one thread get one: nothing runs elsewhere unless it has to wait for others.
  const bool always = executable->spec().run_inline || given.devices->pool().num_threads() == 1;
  const bool alone = !given.assignment || given.assignment->devices.size() == 1;  // others would start only afterwards
  LaunchHabit& habit = executable->launch_habit();
  const bool on_this_thread = !executable->may_block() && (always || (alone && habit.TakeInline()));
  Execution execution(std::move(executable), std::move(given));
  const LaunchArgs& args = execution.args();
  STROP_TRY(execution.Prepare());
  if (!execution.poison().ok()) {
    if (args.collectives) args.collectives->Abort(execution.poison());
    return Failed(execution, execution.poison());
  }
  bool ready = execution.dependencies().empty();
  if (args.mode == LaunchMode::kAsync || (args.mode == LaunchMode::kAuto && !(on_this_thread && ready))) {
    // Whoever waits for this one at once waits for what it needs as well.
    if (on_this_thread)
      for (const EventRef& dependency : execution.dependencies()) dependency->NoteAwaited();
    return LaunchAsync(std::move(execution));
  }
  if (!ready) {
    Status status = Event::WhenAll(execution.dependencies())->Await();
    if (!status.ok()) return Failed(execution, std::move(status));
  }
  std::vector<Buffer> outputs = execution.MakeOutputs(Event::Ready());
  const Clock::time_point start = always ? Clock::time_point() : Clock::now();
  Status status = execution.Run();
  if (!always) habit.SawInline(Clock::now() - start);
  if (!status.ok()) return Failed(execution, std::move(status));
  return Launched{std::move(outputs), Event::Ready()};
}

}  // namespace

Result<Launched> Launch(std::shared_ptr<const Executable> executable, LaunchArgs args) {
  if (!executable || !args.devices || !args.device) return InvalidArgument("launch without an executable or a device");
  const std::shared_ptr<Collectives> collectives = args.collectives;
  Result<Launched> launched = Start(std::move(executable), std::move(args));
  // The other devices of this execution would wait for ever.
  if (!launched.ok() && collectives) collectives->Abort(launched.status());
  return launched;
}

}  // namespace strop
