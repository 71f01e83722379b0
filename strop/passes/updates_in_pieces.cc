// An update of most of an array, computed of neighbours in the same array, makes a new array of pieces:
//
//   %s = f32[510] add(slice(%x), [0:510], slice(%x), [2:512])         %s = the same
//   %y = dynamic-update-slice(%x, %s, 1)                       ->     %y = concatenate(%x[0:1], %s, %x[511:512])
//
// Where it lies it could not be updated before all of it is known, so that it was written twice, the second time from a
// temporary array. So a step of a stencil (u.at[1:-1, 1:-1].add(...)) reads the state once and writes the next one
// once, and a loop of them changes places between two arrays.
//
// So does an update of most of an argument that is not given away, which would be copied first.
#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "strop/ir/builder.h"
#include "strop/passes/pass.h"
#include "strop/passes/simplify/constants.h"

namespace strop {
namespace {

constexpr int64_t kLeastBytes = 1 << 10;  // of the array; what is smaller is copied in no time
constexpr int64_t kLeastRow = 64;         // bytes: rows of less than a vector are mostly ends
constexpr int kMostSteps = 256;           // of one search backwards

// Where the update begins, in each dimension; nothing if that is not known.
std::optional<Int64Vector> StartsOf(const Instruction& update) {
  if (update.operand_count() < 2) return std::nullopt;
  Int64Vector starts;
  const Shape &whole = update.shape(), &part = update.operand(1)->shape();
  if (!simplify::HasScalarStarts(&update, 2)) return std::nullopt;
  for (int64_t d = 0; d < whole.rank(); ++d) {
    const Instruction* start = update.operand(2 + d);
    if (!start->IsConstant()) return std::nullopt;
    starts.push_back(std::clamp<int64_t>(start->literal().GetInt(0), 0, whole.dim(d) - part.dim(d)));
  }
  return starts;
}

bool BeginsAt(const Instruction& slice, const Int64Vector& starts) {
  const auto& dims = slice.attrs<SliceAttrs>().slice;
  for (size_t d = 0; d < starts.size(); ++d)
    if (dims[d].start != starts[d] || dims[d].stride != 1) return false;
  return true;
}

// Is `value`, computed element by element, made of elements of `array` that lie elsewhere than where it goes?
bool ReadsNeighbours(const Instruction& value, const Instruction& array, const Int64Vector& starts) {
  std::unordered_set<const Instruction*> seen;
  std::vector<const Instruction*> stack{&value};
  bool found = false;
  while (!stack.empty()) {
    const Instruction* i = stack.back();
    stack.pop_back();
    if (!seen.insert(i).second) continue;
    if (seen.size() > kMostSteps) return false;
    if (i->op() == Op::Slice && i->operand(0) == &array) {
      found |= !BeginsAt(*i, starts);
    } else if (IsElementwise(i->op())) {
      for (int64_t k = 0; k < i->operand_count(); ++k) stack.push_back(i->operand(k));
    }
  }
  return found;
}

// An argument of the program that may not be written over: an update of it begins with a copy.
bool IsKept(const Instruction& array) {
  if (!array.IsParameter() || array.parent() != array.module()->entry()) return false;
  const ModuleConfig& config = array.module()->config();
  const auto is_it = [&](const auto& given) { return given.parameter == array.parameter_number(); };
  return std::ranges::none_of(config.input_output_alias, is_it) && std::ranges::none_of(config.buffer_donors, is_it);
}

bool IsForPieces(const Instruction& i) {
  if (i.op() != Op::DynamicUpdateSlice || i.HasControlEdges() || !i.shape().IsStatic()) return false;
  if (i.shape().rank() == 0) return false;
  const Instruction& value = *i.operand(1);
  const Shape& shape = i.shape();
  if (shape.byte_size() < kLeastBytes || shape.dims().back() * Bytes(shape.type()) < kLeastRow) return false;
  if (2 * value.shape().num_elements() < shape.num_elements()) return false;
  const std::optional<Int64Vector> starts = StartsOf(i);
  if (!starts) return false;
  if (IsKept(*i.operand(0))) return true;
  return IsElementwise(value.op()) && value.use_count() == 1 && ReadsNeighbours(value, *i.operand(0), *starts);
}

// The array within the update's window in dimensions in front of `d`, whole in the others.
Instruction* PiecesFrom(Builder& b, const Instruction& update, const Int64Vector& starts, int64_t d) {
  Instruction *array = update.operand(0), *value = update.operand(1);
  if (d == update.shape().rank()) return value;
  Instruction* inside = PiecesFrom(b, update, starts, d + 1);
  const int64_t begin = starts[static_cast<size_t>(d)], end = begin + value->shape().dim(d),
                all = array->shape().dim(d);
  const auto beside = [&](int64_t from, int64_t to) {
    SliceAttrs attrs;
    for (int64_t e = 0; e < update.shape().rank(); ++e) {
      const int64_t start = starts[static_cast<size_t>(e)];
      if (e < d)
        attrs.slice.push_back({start, start + value->shape().dim(e), 1});
      else
        attrs.slice.push_back(e == d ? SliceDim{from, to, 1} : SliceDim{0, array->shape().dim(e), 1});
    }
    return b.Make(Op::Slice, {array}, attrs);
  };
  std::vector<Instruction*> pieces;
  if (begin > 0) pieces.push_back(beside(0, begin));
  pieces.push_back(inside);
  if (end < all) pieces.push_back(beside(end, all));
  return pieces.size() == 1 ? inside : b.Make(Op::Concatenate, pieces, DimensionsAttrs{{d}}, {}, nullptr);
}

struct UpdatesInPieces final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t rewritten = 0;
    for (Computation* c : module.PostOrder())
      for (Instruction* i : c->instructions()) {
        if (!IsForPieces(*i)) continue;
        Builder b(c);
        b.set_insert_before(i);
        if (i->has_metadata()) b.set_metadata(i->shared_metadata());
        Instruction* pieces = PiecesFrom(b, *i, *StartsOf(*i), 0);
        STROP_TRY(b.status());
        c->Replace(i, pieces);
        ++rewritten;
      }
    context.Count("updates-in-pieces.rewritten", rewritten);
    return rewritten > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeUpdatesInPieces() { return std::make_unique<UpdatesInPieces>(); }

}  // namespace strop
