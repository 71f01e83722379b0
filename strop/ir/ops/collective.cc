// Ops that several devices execute together.
//
// How many devices take part is known from the replica groups only if these are written out; where they are empty or
// speak of replicas in a module with several partitions, sizes that depend on the count are taken from the declared
// shape.
#include <algorithm>
#include <set>

#include "strop/ir/ops/infer.h"

namespace strop::infer {
namespace {

Status CheckGroups(const Args& args, const CollectiveAttrs& a, int unique_label) {
  const ReplicaGroups& groups = a.replica_groups;
  if (a.channel_id < 0) return args.Error("channel_id must not be negative, but is ", a.channel_id);
  if (groups.form != ReplicaGroups::Form::Lists) return OkStatus();
  Dims all;
  for (const std::vector<int64_t>& group : groups.lists) {
    if (group.empty()) return args.Error("replica_groups must not contain an empty group");
    all.insert(all.end(), group.begin(), group.end());
  }
  for (int64_t id : all)
    if (id < 0) return args.Error("replica_groups name device ", id);
  if (!IsUnique(all)) return args.Violates(unique_label, "replica_groups must not name a device twice");
  return OkStatus();
}

// Devices in a group if the attributes tell, otherwise 0.
int64_t GroupSize(const CollectiveAttrs& a) {
  const ReplicaGroups& groups = a.replica_groups;
  if (a.channel_id > 0 && !a.use_global_device_ids) return 0;
  if (groups.form == ReplicaGroups::Form::Iota) return groups.group_size;
  if (groups.form == ReplicaGroups::Form::Lists && !groups.lists.empty())
    return static_cast<int64_t>(groups.lists[0].size());
  return 0;
}

std::vector<Shape> OperandShapes(const Args& args) {
  std::vector<Shape> shapes;
  for (const Shape* s : args.operands) shapes.push_back(s->WithoutLayout());
  return shapes;
}

// The shapes of what is sent: with has_dynamic_root, the last operand names the roots.
Result<std::vector<Shape>> SentShapes(const Args& args, const CollectiveAttrs& a) {
  std::vector<Shape> shapes = OperandShapes(args);
  if (!a.has_dynamic_root) return shapes;
  const Shape roots = shapes.back();
  shapes.pop_back();
  if (shapes.empty() || roots.rank() != 1 || roots.dim(0) != static_cast<int64_t>(shapes.size()) ||
      !IsInteger(roots.type()))
    return args.Error("has_dynamic_root: after ", shapes.size(), " operands must come as many integers, but there is ",
                      roots);
  return shapes;
}

const Shape& ResultPart(const Shape& result, int64_t i) { return result.IsTuple() ? result.element(i) : result; }

// Results in which dimension `along` of `small` is multiplied by the number of devices to give `large`.
Status CheckScaled(const Args& args, const Shape& small, const Shape& large, int64_t along, int64_t group_size,
                   int label) {
  bool fits = small.IsArray() && large.IsArray() && small.rank() == large.rank();
  for (int64_t i = 0; fits && i < small.rank(); ++i) fits = i == along || SizesAgree(small, i, large, i);
  if (!fits)
    return args.Violates(label, "operand and result must differ in dimension ", along, " only, but are ", small,
                         " and ", large, " (one part, whole)");
  if (small.is_unbounded(along) || large.is_unbounded(along)) return OkStatus();
  const int64_t part = small.dim(along), whole = large.dim(along);
  const bool scaled = part == 0 ? whole == 0 : whole % part == 0 && (group_size == 0 || whole / part == group_size);
  if (scaled) return OkStatus();
  return args.Violates(label, "dimension ", along, " of the whole ", large, " must be that of a part ", small,
                       " times ", group_size ? StrCat(group_size) : std::string("the number of"), " devices");
}

// The dimension of all-gather and reduce-scatter.
Result<int64_t> OneDimension(const Args& args, const CollectiveAttrs& a, int label) {
  for (int64_t i = 0; i < args.operand_count(); ++i) {
    STROP_TRY(args.ExpectArray(i));
    if (a.dimensions.size() != 1 || !InRange(a.dimensions, args.operand(i).rank()))
      return args.Violates(label, "dimensions=", Braces(a.dimensions), " must name one dimension of ", args.operand(i));
  }
  return a.dimensions[0];
}

Status ExpectOperands(const Args& args) {
  return args.operand_count() > 0 ? OkStatus() : args.Error("needs at least one operand");
}

// Result shapes of all-gather (each operand grows) and reduce-scatter (shrinks).
Result<Shape> Scaled(const Args& args, const Shape* declared, bool grows, int dimension_label, int shape_label) {
  STROP_TRY(ExpectOperands(args));
  const auto& a = args.attrs<CollectiveAttrs>();
  STROP_ASSIGN(int64_t along, OneDimension(args, a, dimension_label));
  const int64_t group_size = GroupSize(a);
  if (!declared) {
    if (group_size <= 0) return args.Error("the result shape depends on the number of devices: it must be given");
    std::vector<Shape> shapes = OperandShapes(args);
    for (Shape& s : shapes) {
      if (s.is_unbounded(along)) continue;
      if (!grows && s.dim(along) % group_size != 0)
        return args.Violates(1, "dimension ", along, " of ", s, " is not a multiple of the ", group_size, " devices");
      s.set_dim(along, grows ? SaturatingMultiply(s.dim(along), group_size) : s.dim(along) / group_size);
    }
    return OneOrTuple(std::move(shapes));
  }
  const int64_t results = declared->IsTuple() ? declared->tuple_size() : 1;
  if (results != args.operand_count() || (declared->IsTuple() && args.operand_count() == 1))
    return args.Error("needs one result for each of ", args.operand_count(), " operands, but the result is ",
                      *declared);
  std::vector<Shape> shapes;
  for (int64_t i = 0; i < args.operand_count(); ++i) {
    const Shape& operand = args.operand(i);
    const Shape& result = ResultPart(*declared, i);
    STROP_TRY(CheckScaled(args, grows ? operand : result, grows ? result : operand, along, group_size, shape_label));
    shapes.push_back(result.WithoutLayout().WithType(operand.type()));
  }
  return OneOrTuple(std::move(shapes));
}

// An older form of the -start ops is the result alone.
bool IsBareStart(const Args& args) { return args.declared && args.declared->IsArray() && args.operand_count() == 1; }

// (operands, results, context...) of the -start forms.
Result<Shape> StartTuple(const Args& args, Shape result) {
  if (IsBareStart(args)) return result;
  std::vector<Shape> elements = {OneOrTuple(OperandShapes(args)), std::move(result)};
  if (args.declared && args.declared->IsTuple())
    for (int64_t i = 2; i < args.declared->tuple_size(); ++i)
      elements.push_back(args.declared->element(i).WithoutLayout());
  return Shape::Tuple(std::move(elements));
}

Result<Shape> SecondOfStart(const Args& args) {
  const Shape& start = args.operand(0);
  if (start.IsArray()) return start.WithoutLayout();
  if (!start.IsTuple() || start.tuple_size() < 2)
    return args.Error("the operand must be the tuple of operands and results of the start, but is ", start);
  return start.element(1).WithoutLayout();
}

}  // namespace

Result<Shape> DeviceId(const Args&) { return Shape::Scalar(ElementType::U32); }

Result<Shape> AllGather(const Args& args) {
  STROP_TRY(CheckGroups(args, args.attrs<CollectiveAttrs>(), 2));
  return Scaled(args, args.declared, true, 1, 6);
}

Result<Shape> AllGatherStart(const Args& args) {
  STROP_TRY(CheckGroups(args, args.attrs<CollectiveAttrs>(), 2));
  const Shape* result = nullptr;
  if (args.declared) {
    const bool bare = IsBareStart(args);
    if (!bare && (!args.declared->IsTuple() || args.declared->tuple_size() < 2))
      return args.Error("the result must be a tuple of operands and results, but is ", *args.declared);
    result = bare ? args.declared : &args.declared->element(1);
  }
  STROP_ASSIGN(Shape gathered, Scaled(args, result, true, 1, 6));
  return StartTuple(args, std::move(gathered));
}

Result<Shape> AllGatherDone(const Args& args) { return SecondOfStart(args); }

Result<Shape> AllReduce(const Args& args) {
  STROP_TRY(ExpectOperands(args));
  STROP_TRY(args.ExpectArrays());
  const auto& a = args.attrs<CollectiveAttrs>();
  STROP_TRY(CheckGroups(args, a, 1));
  // Several operands share one scalar reducer; XLA leaves its type free to differ from theirs in precision.
  STROP_ASSIGN(Signature sig, SignatureOf(args, 0));
  const std::string& name = args.called[0]->name();
  if (sig.parameters.size() != 2 || !sig.parameters[0]->IsScalar() || !sig.parameters[1]->IsScalar() ||
      !sig.result->IsScalar())
    return args.Violates(5, "%", name, " must take two scalars and return one");
  STROP_ASSIGN(std::vector<Shape> shapes, SentShapes(args, a));
  if (shapes.size() == 1 && Kind(sig.result->type()) != Kind(args.operand(0).type()))
    return args.Violates(5, "%", name, " reduces ", Name(sig.result->type()), ", but the operand is ", args.operand(0));
  const bool typed = args.declared && args.op != Op::AllReduceStart;
  if (typed && shapes.size() == 1 && args.declared->IsArray() && args.declared->type() == sig.result->type())
    shapes[0] = shapes[0].WithType(sig.result->type());
  return OneOrTuple(std::move(shapes));
}

Result<Shape> AllReduceDone(const Args& args) { return args.operand(0).WithoutLayout(); }

Result<Shape> ReduceScatter(const Args& args) {
  const auto& a = args.attrs<CollectiveAttrs>();
  STROP_TRY(CheckGroups(args, a, 3));
  STROP_ASSIGN(Signature sig, SignatureOf(args, 0));
  if (sig.parameters.size() != 2 || !sig.parameters[0]->IsScalar() || !sig.parameters[1]->IsScalar() ||
      !sig.result->IsScalar())
    return args.Violates(7, "%", args.called[0]->name(), " must take two scalars and return one");
  return Scaled(args, args.declared, false, 2, 8);
}

Result<Shape> AllToAll(const Args& args) {
  STROP_TRY(ExpectOperands(args));
  STROP_TRY(args.ExpectArrays());
  const auto& a = args.attrs<CollectiveAttrs>();
  STROP_TRY(CheckGroups(args, a, 5));
  if (!a.has_dimensions && a.dimensions.empty()) {
    // One operand a device; device i gets operand i of each.
    for (int64_t i = 1; i < args.operand_count(); ++i)
      if (!ShapesAgree(args.operand(i), args.operand(0)))
        return args.Error("operands must have the same shape, but are ", args.operand(0), " and ", args.operand(i));
    return Shape::Tuple(OperandShapes(args));
  }
  if (args.operand_count() != 1)
    return args.Error("with dimensions, takes one operand, but got ", args.operand_count());
  const Shape& operand = args.operand(0);
  if (a.dimensions.size() != 1 || !InRange(a.dimensions, operand.rank()))
    return args.Violates(1, "dimensions=", Braces(a.dimensions), " must name one dimension of ", operand);
  const int64_t group_size = GroupSize(a);
  const int64_t size = operand.dim(a.dimensions[0]);
  if (group_size > 0 && !operand.is_unbounded(a.dimensions[0]) && size % group_size != 0)
    return args.Violates(2, "dimension ", a.dimensions[0], " of ", operand, " is not a multiple of the ", group_size,
                         " devices");
  return operand.WithoutLayout();
}

Result<Shape> CollectiveBroadcast(const Args& args) {
  STROP_TRY(ExpectOperands(args));
  STROP_TRY(args.ExpectArrays());
  const auto& a = args.attrs<CollectiveAttrs>();
  STROP_TRY(CheckGroups(args, a, 1));
  STROP_ASSIGN(std::vector<Shape> shapes, SentShapes(args, a));
  return OneOrTuple(std::move(shapes));
}

namespace {

constexpr int64_t kMostMarks = int64_t{1} << 22;  // bits; more devices than any machine has

// Which devices were named already: a mark each, since thousands of pairs are checked wherever a permute is made.
class Named {
 public:
  explicit Named(int64_t largest) : marks_(largest < kMostMarks ? largest + 1 : 0) {}
  bool IsNew(int64_t device) {
    if (marks_.empty()) return others_.insert(device).second;
    const bool is_new = !marks_[device];
    marks_[device] = true;
    return is_new;
  }

 private:
  std::vector<bool> marks_;
  std::set<int64_t> others_;  // instead, where numbers are too large
};

Status CheckPairs(const Args& args) {
  const auto& pairs = args.attrs<PermuteAttrs>().source_target_pairs;
  int64_t largest = 0;
  for (const auto& [source, target] : pairs) {
    if (source < 0 || target < 0) return args.Error("source_target_pairs name device ", std::min(source, target));
    largest = std::max({largest, source, target});
  }
  Named sources(largest), targets(largest);
  for (const auto& [source, target] : pairs) {
    if (!sources.IsNew(source)) return args.Violates(2, "source_target_pairs must not name a source twice");
    if (!targets.IsNew(target)) return args.Violates(3, "source_target_pairs must not name a target twice");
  }
  return OkStatus();
}

// In-place form: (input, output, input offsets, output offsets) with slice_sizes; the output is updated.
bool IsInPlace(const Args& args) {
  return !args.attrs<PermuteAttrs>().slice_sizes.empty() && args.operand_count() == 4;
}

Result<Shape> Permuted(const Args& args) {
  STROP_TRY(ExpectOperands(args));
  STROP_TRY(CheckPairs(args));
  if (IsInPlace(args)) return args.operand(1).WithoutLayout();
  STROP_TRY(args.ExpectArrays());
  return OneOrTuple(OperandShapes(args));
}

}  // namespace

Result<Shape> CollectivePermute(const Args& args) { return Permuted(args); }

Result<Shape> CollectivePermuteStart(const Args& args) {
  STROP_ASSIGN(Shape result, Permuted(args));
  if (!IsInPlace(args)) return StartTuple(args, std::move(result));
  STROP_ASSIGN(Shape declared, args.Declared());
  if (!declared.IsTuple() || declared.tuple_size() < 2 || !ShapesAgree(declared.element(1), result))
    return args.Error("the result must hold the updated output ", result, ", but is ", declared);
  return declared;
}

Result<Shape> CollectivePermuteDone(const Args& args) { return SecondOfStart(args); }

Result<Shape> RaggedAllToAll(const Args& args) {
  STROP_TRY(args.ExpectArrays());
  STROP_TRY(CheckGroups(args, args.attrs<CollectiveAttrs>(), 5));
  const Shape& input = args.operand(0);
  const Shape& output = args.operand(1);
  if (input.type() != output.type() || input.rank() != output.rank() || input.rank() < 1)
    return args.Error("input and output must have the same element type and rank, but are ", input, " and ", output);
  for (int64_t i = 1; i < input.rank(); ++i)
    if (!SizesAgree(input, i, output, i))
      return args.Error("input and output may differ in dimension 0 only, but are ", input, " and ", output);
  for (int64_t i = 2; i < 6; ++i)
    if (!IsInteger(args.operand(i).type()) || !ShapesAgree(args.operand(i), args.operand(2)))
      return args.Error("offsets and sizes must be integer arrays of one shape, but are ", args.operand(2), " and ",
                        args.operand(i));
  return output.WithoutLayout();
}

}  // namespace strop::infer
