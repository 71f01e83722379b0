// Convolutions in the form that the library takes: any order of dimensions, real numbers.
//
//   conv(transpose(x), k), dim_labels=b01f_01io->b01f     conv(x, k) with the labels where x has those dimensions
//   conv(x, reverse(k)), along its window                 conv(x, k) whose window is reversed
//   transpose(conv(x, k))                                 conv with the output's labels permuted
//   conv of complex numbers                               four real ones: (a + ib)(c + id) = (ac - bd) + i(ad + bc)
#include <algorithm>

#include "strop/ir/builder.h"
#include "strop/ir/physical_shape.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

void Relabel(int64_t& batch, int64_t& feature, Dims& spatial, const Dims& to) {
  batch = to[batch];
  feature = to[feature];
  for (int64_t& d : spatial) d = to[d];
}

// The operands of which only the order of elements is changed are read as they were.
bool FoldTranspose(const Instruction* operand, bool kernel, ConvDimLabels& l) {
  if (operand->op() != Op::Transpose) return false;
  if (kernel)
    Relabel(l.kernel_input_feature, l.kernel_output_feature, l.kernel_spatial, operand->dimensions());
  else
    Relabel(l.input_batch, l.input_feature, l.input_spatial, operand->dimensions());
  return true;
}

bool FoldReverse(const Instruction* operand, ConvolutionAttrs& attrs) {
  if (operand->op() != Op::Reverse) return false;
  const Dims& spatial = attrs.dim_labels.kernel_spatial;
  if (attrs.window.dims.size() != spatial.size()) return false;
  std::vector<bool> reversed(spatial.size());
  for (int64_t d : operand->dimensions()) {
    const auto at = std::ranges::find(spatial, d);
    if (at == spatial.end()) return false;
    reversed[static_cast<size_t>(at - spatial.begin())] = true;
  }
  for (size_t d = 0; d < spatial.size(); ++d)
    if (reversed[d]) attrs.window.dims[d].reversal = !attrs.window.dims[d].reversal;
  return true;
}

bool FoldOperands(Instruction* conv) {
  ConvolutionAttrs attrs = conv->attrs<ConvolutionAttrs>();
  bool folded = false;
  for (int64_t k = 0; k < 2; ++k) {
    Instruction* from = conv->operand(k);
    while (FoldTranspose(from, k == 1, attrs.dim_labels) || (k == 1 && FoldReverse(from, attrs)))
      from = from->operand(0);
    if (from == conv->operand(k)) continue;
    conv->SetOperand(k, from);
    folded = true;
  }
  if (folded) conv->set_attrs(std::move(attrs));
  return folded;
}

bool FoldResult(Instruction* transpose) {
  Instruction* conv = transpose->operand(0);
  if (conv->use_count() != 1) return false;
  ConvolutionAttrs attrs = conv->attrs<ConvolutionAttrs>();
  ConvDimLabels& l = attrs.dim_labels;
  Relabel(l.output_batch, l.output_feature, l.output_spatial, InversePermutation(transpose->dimensions()));
  Instruction *input = conv->operand(0), *kernel = conv->operand(1);
  transpose->parent()->ReplaceWithNew(transpose, Op::Convolution, transpose->shape(), {input, kernel},
                                      std::move(attrs));
  return true;
}

Result<Instruction*> RealConvolutions(Instruction* conv) {
  Builder b(conv->parent());
  b.set_insert_before(conv);
  b.set_metadata(conv->shared_metadata());
  const Shape part = conv->shape().WithoutLayout().WithType(ComplexPart(conv->shape().type()));
  Instruction* parts[2][2];
  for (int64_t k = 0; k < 2; ++k) {
    parts[k][0] = b.Make(Op::Real, {conv->operand(k)});
    parts[k][1] = b.Make(Op::Imag, {conv->operand(k)});
  }
  auto convolve = [&](Instruction* x, Instruction* y) {
    return b.MakeWithShape(Op::Convolution, part, {x, y}, conv->any_attrs());
  };
  Instruction* real = b.Make(Op::Subtract, {convolve(parts[0][0], parts[1][0]), convolve(parts[0][1], parts[1][1])});
  Instruction* imaginary = b.Make(Op::Add, {convolve(parts[0][0], parts[1][1]), convolve(parts[0][1], parts[1][0])});
  Instruction* result = b.Make(Op::Complex, {real, imaginary});
  STROP_TRY(b.status());
  return result;
}

struct ConvolutionCanonicalizer final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t folded = 0, complex = 0;
    for (Computation* c : module.computations()) {
      std::vector<Instruction*> candidates;
      for (Instruction* i : c->instructions())
        if (i->op() == Op::Convolution || (i->op() == Op::Transpose && i->operand(0)->op() == Op::Convolution))
          candidates.push_back(i);
      for (Instruction* i : candidates) {
        if (i->parent() != c || i->HasControlEdges()) continue;
        if (i->op() == Op::Transpose) {
          folded += i->operand(0)->op() == Op::Convolution && FoldResult(i);
          continue;
        }
        folded += FoldOperands(i);
        if (!IsComplex(i->shape().type()) || !i->shape().IsStatic()) continue;
        if (!IsComplex(i->operand(0)->shape().type()) || !IsComplex(i->operand(1)->shape().type())) continue;
        STROP_ASSIGN(Instruction * value, RealConvolutions(i));
        c->Replace(i, value);
        ++complex;
      }
    }
    context.Count("convolution-canonicalizer.folded", folded);
    context.Count("convolution-canonicalizer.complex", complex);
    return folded + complex > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeConvolutionCanonicalizer() { return std::make_unique<ConvolutionCanonicalizer>(); }

}  // namespace strop
