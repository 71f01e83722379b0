#include "strop/codegen/kernel_body.h"

namespace strop {
namespace {

// One entry per leaf; get-tuple-element of an instruction of the body names that instruction and the leaf.
void AddRoot(const Instruction* i, KernelBody& body) {
  if (i->op() == Op::Tuple) {
    for (int64_t k = 0; k < i->operand_count(); ++k) AddRoot(i->operand(k), body);
    return;
  }
  if (i->op() == Op::GetTupleElement && i->shape().IsArray() && i->operand(0)->op() == Op::Reduce) {
    body.roots.push_back(i->operand(0));
    body.root_leaf.push_back(static_cast<int>(i->tuple_index()));
    return;
  }
  for (int k = 0; k < i->shape().num_leaves(); ++k) {
    body.roots.push_back(i);
    body.root_leaf.push_back(k);
  }
}

}  // namespace

KernelBody KernelBody::Of(const Instruction& kernel) {
  KernelBody body;
  body.kernel = &kernel;
  if (kernel.op() == Op::Fusion) {
    const Computation& computation = *kernel.called(0);
    for (const Instruction* parameter : computation.parameters()) body.inputs.push_back(parameter);
    AddRoot(computation.root(), body);
  } else {
    for (int64_t k = 0; k < kernel.operand_count(); ++k) body.inputs.push_back(kernel.operand(k));
    AddRoot(&kernel, body);
  }
  return body;
}

std::vector<const Instruction*> KernelBody::Computed() const {
  std::vector<const Instruction*> list;
  if (kernel->op() != Op::Fusion) return {kernel};
  for (const Instruction* i : kernel->called(0)->PostOrder())
    if (i->op() != Op::Parameter) list.push_back(i);
  return list;
}

}  // namespace strop
