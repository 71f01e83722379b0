// Factorisations of many small real matrices read and write them row by row, as they lie, and compute them side by
// side (runtime/lapack/rows.cc):
//
//   f32[64,6,6]{1,2,0} custom-call(a), target lapack_sgetrf_ffi, operand_layout_constraints={f32[64,6,6]{1,2,0}}
//     -> f32[64,6,6] custom-call(a), target lapack_sgetrf_rows_ffi
//
// getrf, potrf, geqrf, orgqr, syevd and gesdd. LAPACK's layout is by columns, for which every matrix would be
// transposed before and after. Matrices that are not small have their LU by rows as well, complex ones, too, with the
// library's help (lapack_sgetrf_by_rows_ffi, runtime/lapack/blocked_lu.h). Whether LU's info is negative, which tells
// of arguments that a bound call does not have, is known.
#include <algorithm>

#include "strop/ir/builder.h"
#include "strop/ir/physical_shape.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kMostOrder = 32;          // SideBySide::kMaxOrder
constexpr int64_t kMostElements = 32 * 32;  // SideBySide::kMaxElements
constexpr int64_t kMostElementsOfOne = 16 * 16;

// Rotations side by side do more than LAPACK does for one matrix: they need most of the lanes, or an order so small
// that the call costs more.
constexpr int64_t kLeastRotatedBatch = 6, kMostOrderOfFewRotated = 3;
// Of higher orders several vectors of floats, since LAPACK's operations grow less.
constexpr int64_t kHighOrder = 24, kLeastBatchOfHighOrder = 16;

// Smaller ones are as fast by columns.
constexpr int64_t kLeastByRows = 48, kLeastComplexByRows = 256;

struct Routine {
  std::string_view name;
  int64_t results;        // 1: no tuple
  bool square;            // bounded by its order
  int64_t rotated = 0;    // by rotations, up to this order: kMaxOrder of EigenSideBySide, SvdSideBySide
  unsigned matrices = 1;  // results that are matrices, a bit each
};
constexpr Routine kRoutines[] = {{"getrf", 3, true},  {"potrf", 2, true},     {"geqrf", 2, false},
                                 {"orgqr", 1, false}, {"syevd", 3, true, 32}, {"gesdd", 5, true, 32, 0b1101}};

bool IsReal(ElementType type) { return type == ElementType::F32 || type == ElementType::F64; }

const Routine* RoutineOf(std::string_view target, ElementType type) {
  const std::string_view prefix = type == ElementType::F32    ? "lapack_s"
                                  : type == ElementType::F64  ? "lapack_d"
                                  : type == ElementType::C64  ? "lapack_c"
                                  : type == ElementType::C128 ? "lapack_z"
                                                              : "";
  if (prefix.empty() || !target.starts_with(prefix) || !target.ends_with("_ffi")) return nullptr;
  target = target.substr(prefix.size(), target.size() - prefix.size() - 4);
  for (const Routine& routine : kRoutines)
    if (target == routine.name) return &routine;
  return nullptr;
}

bool IsRowMajor(const Shape& shape) { return shape.IsArray() && IsIdentityPermutation(MajorToMinor(shape)); }
// The last two dimensions the other way round.
bool IsByColumns(const Shape& shape) {
  if (!shape.IsArray() || !shape.has_layout() || shape.rank() < 2) return false;
  const auto& order = shape.layout().minor_to_major;
  if (order[0] != shape.rank() - 2 || order[1] != shape.rank() - 1) return false;
  for (int64_t d = 2; d < shape.rank(); ++d)
    if (order[static_cast<size_t>(d)] != shape.rank() - 1 - d) return false;
  return true;
}

// Several small matrices, or one that is so small that a call of the library costs as much as eight.
bool IsSmall(const Shape& a, const Routine& routine) {
  if (!a.IsStatic() || a.rank() < 2 || a.num_elements() == 0) return false;
  const int64_t m = a.dim(a.rank() - 2), n = a.dim(a.rank() - 1);
  if (routine.rotated > 0) {
    const int64_t batch = a.num_elements() / (m * n);
    if (m != n || n > routine.rotated) return false;
    if (n > kHighOrder) return a.type() == ElementType::F32 && batch >= kLeastBatchOfHighOrder;
    return n <= kMostOrderOfFewRotated || batch >= kLeastRotatedBatch;
  }
  if (a.num_elements() < 2 * m * n && m * n > kMostElementsOfOne) return false;
  return routine.square ? std::max(m, n) <= kMostOrder : m * n <= kMostElements;
}

// What is written behind the routine's name; empty where the call stays.
std::string_view SuffixOf(const Shape& a, const Routine& routine) {
  if (IsReal(a.type()) && IsSmall(a, routine)) return "_rows";
  if (routine.name != "getrf" || !a.IsStatic() || a.rank() < 2) return "";
  const int64_t order = std::min(a.dim(a.rank() - 2), a.dim(a.rank() - 1));
  return order >= (IsReal(a.type()) ? kLeastByRows : kLeastComplexByRows) ? "_by_rows" : "";
}

const Routine* Read(const Instruction& i) {
  if (i.op() != Op::CustomCall || i.operand_count() == 0 || !i.operand(0)->shape().IsArray()) return nullptr;
  const CustomCallAttrs& call = i.attrs<CustomCallAttrs>();
  const Shape& a = i.operand(0)->shape();
  const Routine* routine = RoutineOf(call.target, a.type());
  if (!routine || call.has_side_effect || SuffixOf(a, *routine).empty()) return nullptr;
  const bool tuple = routine->results > 1;
  if (i.shape().IsTuple() != tuple || (tuple && i.shape().tuple_size() != routine->results)) return nullptr;
  if (static_cast<int64_t>(call.operand_layout_constraints.size()) != i.operand_count()) return nullptr;
  for (size_t k = 0; k < call.operand_layout_constraints.size(); ++k) {
    const Shape& constraint = call.operand_layout_constraints[k];
    if (k == 0 ? !IsByColumns(constraint) : !IsRowMajor(constraint)) return nullptr;
  }
  if (!tuple) return IsByColumns(i.shape()) ? routine : nullptr;
  for (int64_t k = 0; k < routine->results; ++k)
    if ((routine->matrices >> k) % 2 ? !IsByColumns(i.shape().element(k)) : !IsRowMajor(i.shape().element(k)))
      return nullptr;
  return i.IsRoot() || i.use_count() > 0 ? routine : nullptr;
}

// info >= 0 is true.
void SettleInfo(Instruction* info) {
  for (Instruction* user : info->users()) {
    if (user->op() != Op::Compare || user->attrs<CompareAttrs>().direction != CompareDirection::Ge ||
        user->operand(0) != info || !user->operand(1)->IsSplat(0))
      continue;
    Builder b(user->parent());
    b.set_insert_before(user);
    b.set_metadata(user->shared_metadata());
    if (Instruction* yes = b.Splat(ElementType::Pred, 1, user->shape().dims())) user->ReplaceAllUsesWith(yes);
  }
}

Status Rewrite(Instruction* i, const Routine& routine) {
  Computation* c = i->parent();
  CustomCallAttrs call = i->attrs<CustomCallAttrs>();
  call.target.insert(call.target.size() - 4, SuffixOf(i->operand(0)->shape(), routine));
  call.output_to_operand_aliasing = {};
  for (Shape& constraint : call.operand_layout_constraints) constraint = constraint.WithoutLayout().WithDefaultLayout();
  const Shape shape = i->shape().WithoutLayout().WithDefaultLayout();
  Builder b(c);
  b.set_insert_before(i);
  b.set_metadata(i->shared_metadata());
  const std::vector<Instruction*> operands = i->operands();
  Instruction* value = b.Make(Op::CustomCall, operands, std::move(call), {}, &shape);
  STROP_TRY(b.status());
  value->set_backend_config(i->backend_config());
  if (routine.results == 1) {
    c->Replace(i, value);
    return OkStatus();
  }
  const std::vector<Instruction*> users = i->users();
  const auto is_part = [](const Instruction* user) { return user->op() == Op::GetTupleElement; };
  // Where it is read as a whole it stays until that is replaced; else it goes with the last of its parts.
  const bool whole = i->IsRoot() || !std::all_of(users.begin(), users.end(), is_part);
  for (Instruction* user : users) {
    if (!is_part(user)) continue;
    Instruction* part = b.GetTupleElement(value, user->tuple_index());
    STROP_TRY(b.status());
    c->Replace(user, part);
    if (routine.name == "getrf" && part->tuple_index() == 2) SettleInfo(part);
  }
  if (!whole) return OkStatus();
  std::vector<Instruction*> parts;
  for (int64_t k = 0; k < routine.results; ++k) parts.push_back(b.GetTupleElement(value, k));
  Instruction* tuple = b.Tuple(parts);
  STROP_TRY(b.status());
  c->Replace(i, tuple);
  return OkStatus();
}

struct LapackRows final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t rewritten = 0;
    for (Computation* c : module.computations()) {
      std::vector<std::pair<Instruction*, const Routine*>> calls;
      for (Instruction* i : c->instructions())
        if (const Routine* routine = Read(*i)) calls.emplace_back(i, routine);
      for (const auto& [call, routine] : calls) STROP_TRY(Rewrite(call, *routine));
      rewritten += static_cast<int64_t>(calls.size());
    }
    context.Count("lapack-rows.rewritten", rewritten);
    return rewritten > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeLapackRows() { return std::make_unique<LapackRows>(); }

}  // namespace strop
