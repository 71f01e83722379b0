// Custom partitioners: functions that the framework registers by the name of a custom call, and that the partitioner
// asks while it compiles (spmd/call_owners.h). jaxlib hands its own over when it loads the library, before there is a
// client.
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "strop/import/import.h"
#include "strop/ir/verifier.h"
#include "strop/pjrt/extensions.h"
#include "strop/pjrt/objects.h"
#include "strop/pjrt/slots.h"
#include "strop/proto/value_proto.h"

namespace strop::pjrt {
namespace {

using CString = JAX_CustomCallPartitioner_string;
using Callbacks = JAX_CustomCallPartitioner_Callbacks;

CString StringOf(std::string_view text) { return {text.data(), text.size()}; }

// What a callback is given; the strings live here.
class Arguments {
 public:
  explicit Arguments(const spmd::CallToCut& call) : call_(call) {}

  Status Make() {
    for (size_t k = 0; k < call_.operands.size(); ++k) {
      STROP_ASSIGN(JAX_CustomCallPartitioner_aval value, Value(call_.operands[k], call_.operand_shardings[k]));
      operands_.push_back(value);
    }
    STROP_ASSIGN(result_, Value(call_.result, call_.result_sharding));
    return OkStatus();
  }
  std::vector<JAX_CustomCallPartitioner_aval>& operands() { return operands_; }
  const JAX_CustomCallPartitioner_aval& result() const { return result_; }
  CString config() const { return StringOf(call_.config); }

 private:
  Result<JAX_CustomCallPartitioner_aval> Value(const Shape& shape, const Sharding& sharding) {
    strings_.push_back(std::make_unique<std::string>(SerializeShape(shape)));
    const CString shape_text = StringOf(*strings_.back());
    STROP_ASSIGN(std::string bytes, SerializeSharding(sharding));
    strings_.push_back(std::make_unique<std::string>(std::move(bytes)));
    return JAX_CustomCallPartitioner_aval{shape_text, true, StringOf(*strings_.back())};
  }

  const spmd::CallToCut& call_;
  std::vector<JAX_CustomCallPartitioner_aval> operands_;
  JAX_CustomCallPartitioner_aval result_{};
  std::vector<std::unique_ptr<std::string>> strings_;
};

// Args of a callback, whose results are freed in the end.
template <class Args>
struct Question : Args {
  Question() : Args{} {}
  Question(const Question&) = delete;
  ~Question() {
    if (this->header.cleanup_fn) this->header.cleanup_fn(this->header.data);
  }
  Status Answered() const {
    if (!this->header.has_error) return OkStatus();
    Status error = StatusFrom(this->header.code, this->header.error_msg.data, this->header.error_msg.size);
    // The framework's words for a function of the user's that failed; to us it means a mistake of Strop.
    return error.code() == StatusCode::kInternal ? InvalidArgument(error.message()) : error;
  }
};

Result<std::string_view> Text(CString text, std::string_view what) {
  if (!text.data && text.size > 0) return InvalidArgument("a custom partitioner returned null as ", what);
  return std::string_view(text.data ? text.data : "", text.size);
}

Result<Sharding> ShardingFrom(CString text) {
  STROP_ASSIGN(std::string_view bytes, Text(text, "a sharding"));
  return ParseShardingProto(bytes);
}

class Registry final : public spmd::CallOwners {
 public:
  // Callbacks are kept to the end of the process, also those that others replace: a compilation may be using them, and
  // to free them is the business of the framework's own threads.
  void Add(std::string name, Callbacks* callbacks) {
    std::lock_guard lock(mutex_);
    callbacks_[std::move(name)] = callbacks;
  }
  void AddBatches(std::string name) {
    std::lock_guard lock(mutex_);
    batches_.insert(std::move(name));
  }

  bool Cuts(std::string_view target) const override { return Find(target) != nullptr; }
  bool WorksOnBatches(std::string_view target) const override {
    std::lock_guard lock(mutex_);
    return batches_.contains(target);
  }

  Result<spmd::CutCall> Cut(const spmd::CallToCut& call) const override {
    Callbacks* callbacks = Find(call.target);
    if (!callbacks || !callbacks->partition) return None(call.target);
    Arguments arguments(call);
    STROP_TRY(arguments.Make());
    Question<JAX_CustomCallPartitioner_Partition_Args> question;
    question.num_args = arguments.operands().size();
    question.op_args = arguments.operands().data();
    question.op_result = arguments.result();
    question.backend_config = arguments.config();
    callbacks->partition(callbacks, &question);
    STROP_TRY(question.Answered());
    if (question.num_args > 0 && !question.args_sharding)
      return InvalidArgument("the custom partitioner of ", call.target, " returned no shardings of operands");
    spmd::CutCall cut;
    for (size_t k = 0; k < call.operands.size(); ++k) {
      STROP_ASSIGN(Sharding sharding, ShardingFrom(question.args_sharding[k]));
      cut.operands.push_back(std::move(sharding));
    }
    STROP_ASSIGN(cut.result, ShardingFrom(question.result_sharding));
    STROP_ASSIGN(const std::string_view code, Text(question.mlir_module, "a program"));
    STROP_ASSIGN(cut.program, ImportMlir({reinterpret_cast<const uint8_t*>(code.data()), code.size()}));
    STROP_TRY(VerifyModule(*cut.program));
    return cut;
  }

  Result<std::optional<Sharding>> FromOperands(const spmd::CallToCut& call) const override {
    Callbacks* callbacks = Find(call.target);
    if (!callbacks || !callbacks->infer_sharding) return None(call.target);
    Arguments arguments(call);
    STROP_TRY(arguments.Make());
    Question<JAX_CustomCallPartitioner_InferShardingFromOperands_Args> question;
    question.num_args = arguments.operands().size();
    question.op_args = arguments.operands().data();
    question.result_shape = arguments.result().shape;
    question.backend_config = arguments.config();
    callbacks->infer_sharding(callbacks, &question);
    STROP_TRY(question.Answered());
    if (!question.has_result_sharding) return std::optional<Sharding>();
    STROP_ASSIGN(Sharding sharding, ShardingFrom(question.result_sharding));
    return std::optional<Sharding>(std::move(sharding));
  }

  Result<std::optional<Sharding>> FromUsers(const spmd::CallToCut& call) const override {
    Callbacks* callbacks = Find(call.target);
    if (!callbacks || !callbacks->propagate_user_sharding) return None(call.target);
    Arguments arguments(call);
    STROP_TRY(arguments.Make());
    Question<JAX_CustomCallPartitioner_PropagateUserSharding_Args> question;
    question.backend_config = arguments.config();
    question.result_shape = arguments.result().shape;
    question.result_sharding = arguments.result().sharding;
    callbacks->propagate_user_sharding(callbacks, &question);
    STROP_TRY(question.Answered());
    STROP_ASSIGN(Sharding sharding, ShardingFrom(question.result_sharding));
    return std::optional<Sharding>(std::move(sharding));
  }

  Status Inspect(std::string_view config, const Sharding& sharding) const override {
    JAX_InspectSharding_Callback callback;
    if (config.size() != sizeof callback)
      return InvalidArgument("InspectSharding has ", config.size(), " bytes of backend_config, expected ",
                             sizeof callback);
    std::memcpy(&callback, config.data(), sizeof callback);
    if (!callback.call) return InvalidArgument("InspectSharding without a function to call");
    STROP_ASSIGN(const std::string bytes, SerializeSharding(sharding));
    JAX_InspectSharding_Callback_Args args = {bytes.data(), bytes.size(), nullptr, nullptr, nullptr};
    callback.call(callback.data, &args);
    if (!args.error_txt) return OkStatus();
    Status error = InvalidArgument("the function that inspects a sharding failed: ", args.error_txt);
    if (args.free_error) args.free_error(&args);
    return error;
  }

 private:
  static Status None(std::string_view target) {
    return InvalidArgument("the custom partitioner of ", target, " lacks a function");
  }
  Callbacks* Find(std::string_view target) const {
    std::lock_guard lock(mutex_);
    const auto found = callbacks_.find(target);
    return found == callbacks_.end() ? nullptr : found->second;
  }

  mutable std::mutex mutex_;
  std::map<std::string, Callbacks*, std::less<>> callbacks_;  // guarded by mutex_
  std::set<std::string, std::less<>> batches_;                // guarded by mutex_
};

Registry& ProcessRegistry() {
  static Registry* const kRegistry = new Registry;
  return *kRegistry;
}

Status RegisterPartitioner(PJRT_Register_Custom_Partitioner_Args& args) {
  if (!args.name || !args.callbacks) return InvalidArgument("a custom partitioner without name or callbacks");
  std::string name(args.name, args.name_size);
  if (args.callbacks->version != 0)
    return InvalidArgument("the custom partitioner of ", name, " has version ", args.callbacks->version,
                           ", expected 0");
  ProcessRegistry().Add(std::move(name), args.callbacks);
  return OkStatus();
}

Status RegisterBatchPartitionable(PJRT_Register_Batch_Partitionable_Args& args) {
  if (!args.name) return InvalidArgument("a batch-partitionable call without a name");
  ProcessRegistry().AddBatches(std::string(args.name, args.name_size));
  return OkStatus();
}

}  // namespace

const spmd::CallOwners& ProcessCallOwners() { return ProcessRegistry(); }

PJRT_Extension_Base* CustomPartitionerExtension(PJRT_Extension_Base* next) {
  static PJRT_Custom_Partitioner_Extension extension = {
      {sizeof(PJRT_Custom_Partitioner_Extension), PJRT_Extension_Type_Custom_Partitioner, nullptr},
      &Entry<PJRT_Register_Custom_Partitioner_Args, &RegisterPartitioner, "PJRT_Register_Custom_Partitioner", false>,
      &Entry<PJRT_Register_Batch_Partitionable_Args, &RegisterBatchPartitionable, "PJRT_Register_Batch_Partitionable",
             false>};
  extension.base.next = next;
  return &extension.base;
}

}  // namespace strop::pjrt
