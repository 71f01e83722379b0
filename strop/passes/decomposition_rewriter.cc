// Decompositions as XLA's builder writes them (PyTorch/XLA and TensorFlow use it), by which no library is meant, become
// calls of LAPACK:
//
//   custom-call(a), target Qr                                               -> lapack_{s,d,c,z}geqrf_ffi
//   custom-call(a, taus), target ProductOfElementaryHouseholderReflectors   -> lapack_{s,d}orgqr_ffi,
//   lapack_{c,z}ungqr_ffi custom-call(a), target Eigh, "lower,sorted,most sweeps,tolerance"       ->
//   lapack_{s,d}syevd_ffi, lapack_{c,z}heevd_ffi
//
// LAPACK's eigenvalues are sorted and need no tolerance. Matrices of 16-bit floats are computed in f32. The calls ask
// for columns that lie in a row; calls of other shapes stay what they are, which the binding of their target refuses.
#include <algorithm>
#include <optional>
#include <vector>

#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

// LAPACK's letter, or 0.
char LetterOf(ElementType type) {
  switch (type) {
    case ElementType::F16:
    case ElementType::BF16:
    case ElementType::F32: return 's';
    case ElementType::F64: return 'd';
    case ElementType::C64: return 'c';
    case ElementType::C128: return 'z';
    default: return 0;
  }
}

ElementType ComputedIn(ElementType type) {
  return type == ElementType::F16 || type == ElementType::BF16 ? ElementType::F32 : type;
}
ElementType RealPart(ElementType type) {
  if (type == ElementType::C64) return ElementType::F32;
  return type == ElementType::C128 ? ElementType::F64 : type;
}

// Matrices column by column, everything else row-major.
Shape ColumnMajor(const Shape& shape, bool matrices) {
  Layout layout = Layout::RowMajor(shape.rank());
  if (matrices) std::swap(layout.minor_to_major[0], layout.minor_to_major[1]);
  return Shape::Array(shape.type(), shape.dims(), layout);
}

struct Decomposition {
  std::string routine;  // geqrf
  std::string attributes;
  std::vector<Instruction*> operands;  // matrices first
  std::vector<Shape> results;
  bool has_info = false;  // the library gives one result more
};

bool IsMatrix(const Shape& shape) {
  return shape.IsArray() && shape.IsStatic() && shape.rank() >= 2 && LetterOf(shape.type()) != 0;
}

// `dims` with the last `drop` replaced by `tail`.
bool HasDims(const Shape& shape, ElementType type, const Int64Vector& dims, int64_t drop,
             std::initializer_list<int64_t> tail) {
  Int64Vector expected(dims.begin(), dims.end() - drop);
  for (int64_t dim : tail) expected.push_back(dim);
  return shape.IsArray() && shape.type() == type && shape.dims() == expected;
}

std::optional<Decomposition> ReadQr(const Instruction& i, const Shape& a) {
  const int64_t k = std::min(a.dim(a.rank() - 2), a.dim(a.rank() - 1));
  if (i.operand_count() != 1 || !i.shape().IsTuple() || i.shape().tuple_size() != 2) return std::nullopt;
  if (!HasDims(i.shape().element(0), a.type(), a.dims(), 0, {})) return std::nullopt;
  if (!HasDims(i.shape().element(1), a.type(), a.dims(), 2, {k})) return std::nullopt;
  return Decomposition{"geqrf", "{}", {i.operand(0)}, {i.shape().element(0), i.shape().element(1)}};
}

std::optional<Decomposition> ReadReflectors(const Instruction& i, const Shape& a) {
  if (i.operand_count() != 2 || !HasDims(i.shape(), a.type(), a.dims(), 0, {})) return std::nullopt;
  const Shape& taus = i.operand(1)->shape();
  const int64_t m = a.dim(a.rank() - 2), n = a.dim(a.rank() - 1);
  if (!taus.IsArray() || taus.rank() != a.rank() - 1) return std::nullopt;
  const int64_t k = taus.dim(taus.rank() - 1);
  if (!HasDims(taus, a.type(), a.dims(), 2, {k}) || m < n || n < k) return std::nullopt;
  const bool complex = RealPart(a.type()) != a.type();
  return Decomposition{complex ? "ungqr" : "orgqr", "{}", {i.operand(0), i.operand(1)}, {i.shape()}};
}

std::optional<Decomposition> ReadEigh(const Instruction& i, const Shape& a) {
  const int64_t n = a.dim(a.rank() - 1);
  if (i.operand_count() != 1 || a.dim(a.rank() - 2) != n || !i.shape().IsTuple() || i.shape().tuple_size() != 2)
    return std::nullopt;
  if (!HasDims(i.shape().element(0), a.type(), a.dims(), 0, {})) return std::nullopt;
  if (!HasDims(i.shape().element(1), RealPart(a.type()), a.dims(), 2, {n})) return std::nullopt;
  const CustomCallAttrs& call = i.attrs<CustomCallAttrs>();
  const std::string& config = call.opaque.empty() ? i.backend_config() : call.opaque;
  if (!config.starts_with("0,") && !config.starts_with("1,")) return std::nullopt;
  Decomposition d{RealPart(a.type()) != a.type() ? "heevd" : "syevd", "", {i.operand(0)}, {}, true};
  d.attributes = StrCat("{mode = 86 : ui8, uplo = ", config[0] == '1' ? 76 : 85, " : ui8}");
  d.results = {i.shape().element(0), i.shape().element(1)};
  return d;
}

std::optional<Decomposition> Read(const Instruction& i) {
  const CustomCallAttrs& call = i.attrs<CustomCallAttrs>();
  if (call.api_version == ApiVersion::TypedFfi || call.has_side_effect || i.operand_count() == 0) return std::nullopt;
  const Shape& a = i.operand(0)->shape();
  if (!IsMatrix(a)) return std::nullopt;
  if (call.target == "Qr") return ReadQr(i, a);
  if (call.target == "ProductOfElementaryHouseholderReflectors") return ReadReflectors(i, a);
  if (call.target == "Eigh") return ReadEigh(i, a);
  return std::nullopt;
}

// The call of LAPACK, and its results in the types of the original.
Instruction* Write(Builder& b, const Decomposition& d, bool tuple) {
  const Shape& a = d.operands[0]->shape();
  const ElementType type = ComputedIn(a.type());
  CustomCallAttrs call;
  call.target = StrCat("lapack_", std::string(1, LetterOf(a.type())), d.routine, "_ffi");
  call.api_version = ApiVersion::TypedFfi;
  call.opaque = d.attributes;
  call.has_layout_constraints = true;
  std::vector<Instruction*> operands;
  for (Instruction* operand : d.operands) {
    if (operand->shape().type() != type) operand = b.Convert(operand, type);
    if (!operand) return nullptr;
    operands.push_back(operand);
    call.operand_layout_constraints.push_back(ColumnMajor(operand->shape(), operands.size() == 1));
  }
  std::vector<Shape> shapes;
  for (const Shape& result : d.results)
    shapes.push_back(ColumnMajor(
        Shape::Array(result.type() == a.type() ? type : ComputedIn(result.type()), result.dims()), shapes.empty()));
  if (d.has_info)
    shapes.push_back(
        Shape::Array(ElementType::S32, Int64Vector(a.dims().begin(), a.dims().end() - 2)).WithDefaultLayout());
  const Shape shape = tuple ? Shape::Tuple(shapes) : shapes[0];
  Instruction* value = b.Make(Op::CustomCall, operands, std::move(call), {}, &shape);
  std::vector<Instruction*> results;
  for (size_t k = 0; k < d.results.size() && value; ++k) {
    Instruction* result = tuple ? b.GetTupleElement(value, static_cast<int64_t>(k)) : value;
    if (result && d.results[k].type() != result->shape().type()) result = b.Convert(result, d.results[k].type());
    results.push_back(result);
  }
  if (!b.status().ok()) return nullptr;
  return tuple ? b.Tuple(results) : results[0];
}

struct DecompositionRewriter final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t rewritten = 0;
    for (Computation* c : module.computations()) {
      for (Instruction* i : c->instructions()) {
        if (i->op() != Op::CustomCall) continue;
        const std::optional<Decomposition> decomposition = Read(*i);
        if (!decomposition) continue;
        Builder b(c);
        b.set_insert_before(i);
        b.set_metadata(i->shared_metadata());
        Instruction* value = Write(b, *decomposition, i->shape().IsTuple());
        STROP_TRY(b.status());
        c->Replace(i, value);
        ++rewritten;
      }
    }
    context.Count("decomposition-rewriter.rewritten", rewritten);
    return rewritten > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeDecompositionRewriter() { return std::make_unique<DecompositionRewriter>(); }

}  // namespace strop
