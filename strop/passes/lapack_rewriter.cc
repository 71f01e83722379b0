// JAX's calls of LAPACK that are an operation of HLO:
//
//   custom-call(a, b), target lapack_{s,d,c,z}trsm_ffi, {side=76, uplo=76, trans_x=78, diag=78}
//     -> triangular-solve(a, b), left_side=true, lower=true
//
// The numbers are LAPACK's letters. An operation is scheduled on our threads, where the library that the host has bound
// to the call starts its own beside them. Calls whose attributes or shapes are not understood stay what they are.
#include <charconv>

#include "strop/ir/builder.h"
#include "strop/ir/config_value.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

// The letter of an attribute ("76 : ui8" is L), or 0.
char Letter(std::string_view config, std::string_view key) {
  const std::optional<std::string> text = ConfigValue(config, key);
  int code = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), code).ec != std::errc{}) return 0;
  return code > 0 && code < 128 ? static_cast<char>(code) : 0;
}

// The type that a call of trsm is for, or Invalid.
ElementType TypeOfSolve(std::string_view target) {
  if (target == "lapack_strsm_ffi") return ElementType::F32;
  if (target == "lapack_dtrsm_ffi") return ElementType::F64;
  if (target == "lapack_ctrsm_ffi") return ElementType::C64;
  if (target == "lapack_ztrsm_ffi") return ElementType::C128;
  return ElementType::Invalid;
}

// Square matrices on the proper side of as many right-hand sides.
bool AreSystems(const Shape& a, const Shape& b, ElementType type, bool left_side) {
  if (!a.IsArray() || !b.IsArray() || !a.IsStatic() || !b.IsStatic() || a.type() != type || b.type() != type)
    return false;
  const int64_t rank = a.rank();
  if (rank < 2 || b.rank() != rank || a.dim(rank - 1) != a.dim(rank - 2)) return false;
  for (int64_t d = 0; d + 2 < rank; ++d)
    if (a.dim(d) != b.dim(d)) return false;
  return a.dim(rank - 1) == b.dim(left_side ? rank - 2 : rank - 1);
}

std::optional<TriangularSolveAttrs> ReadSolve(const Instruction& i) {
  const CustomCallAttrs& call = i.attrs<CustomCallAttrs>();
  const ElementType type = TypeOfSolve(call.target);
  if (type == ElementType::Invalid || i.operand_count() != 2 || call.has_side_effect) return std::nullopt;
  const std::string& config = call.opaque.empty() ? i.backend_config() : call.opaque;
  const char side = Letter(config, "side"), uplo = Letter(config, "uplo"), diagonal = Letter(config, "diag");
  const char transpose = Letter(config, "trans_x");
  if ((side != 'L' && side != 'R') || (uplo != 'L' && uplo != 'U') || (diagonal != 'N' && diagonal != 'U'))
    return std::nullopt;
  const Shape& b = i.operand(1)->shape();
  if (!AreSystems(i.operand(0)->shape(), b, type, side == 'L')) return std::nullopt;
  if (!i.shape().IsArray() || i.shape().type() != type || i.shape().dims() != b.dims()) return std::nullopt;
  TriangularSolveAttrs solve;
  solve.left_side = side == 'L';
  solve.lower = uplo == 'L';
  solve.unit_diagonal = diagonal == 'U';
  switch (transpose) {
    case 'N': solve.transpose_a = TransposeA::NoTranspose; break;
    case 'T': solve.transpose_a = TransposeA::Transpose; break;
    case 'C': solve.transpose_a = TransposeA::Adjoint; break;
    default: return std::nullopt;
  }
  return solve;
}

struct LapackRewriter final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t rewritten = 0;
    for (Computation* c : module.computations()) {
      for (Instruction* i : c->instructions()) {
        if (i->op() != Op::CustomCall) continue;
        const std::optional<TriangularSolveAttrs> solve = ReadSolve(*i);
        if (!solve) continue;
        Builder b(c);
        b.set_insert_before(i);
        b.set_metadata(i->shared_metadata());
        Instruction* value = b.Make(Op::TriangularSolve, {i->operand(0), i->operand(1)}, *solve);
        STROP_TRY(b.status());
        c->Replace(i, value);
        ++rewritten;
      }
    }
    context.Count("lapack-rewriter.rewritten", rewritten);
    return rewritten > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeLapackRewriter() { return std::make_unique<LapackRewriter>(); }

}  // namespace strop
