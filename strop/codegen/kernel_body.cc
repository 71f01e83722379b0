#include "strop/codegen/kernel_body.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

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

bool HasSmallFloats(const Shape& shape) {
  if (shape.IsTuple()) return std::any_of(shape.elements().begin(), shape.elements().end(), HasSmallFloats);
  return shape.IsArray() && IsFloat(shape.type()) && Bits(shape.type()) < 32;
}

// Does it at most move the small floats that it reads or gives?
bool Moves(const Instruction& i) {
  bool small = HasSmallFloats(i.shape());
  for (int64_t k = 0; k < i.operand_count(); ++k) small |= HasSmallFloats(i.operand(k)->shape());
  if (!small || i.op() == Op::Constant || i.op() == Op::Tuple) return true;
  if (!Is(i.op(), kDataMovement) && i.op() != Op::Select) return false;
  // Positions aside, and predicates, operands are of the result's type.
  for (int64_t k = 0; k < i.operand_count(); ++k)
    if (HasSmallFloats(i.operand(k)->shape()) && i.operand(k)->shape().type() != i.shape().type()) return false;
  return HasSmallFloats(i.shape());
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

bool KernelBody::MovesSmallFloats() const {
  const std::vector<const Instruction*> computed = Computed();
  return std::all_of(computed.begin(), computed.end(),
                     [](const Instruction* i) { return i->called().empty() && Moves(*i); });
}

int64_t KernelBody::ElementsOf(size_t r) const {
  const Shape& shape = roots[r]->shape();
  return (shape.IsTuple() ? shape.element(root_leaf[r]) : shape).num_elements();
}

Decision ComputesFromArrays(const Instruction& kernel) {
  if (kernel.op() == Op::Tuple || kernel.op() == Op::GetTupleElement || kernel.op() == Op::Parameter)
    return Decision::No("no computation");
  for (int64_t k = 0; k < kernel.operand_count(); ++k) {
    const Shape& shape = kernel.operand(k)->shape();
    if (!shape.IsArray() || !shape.IsStatic()) return Decision::No("operand ", k, " is ", shape.ToString());
  }
  return Decision::Yes();
}

std::vector<ResultsOfOneSize> ResultsBySize(const KernelBody& body) {
  std::map<int64_t, ResultsOfOneSize> by_size;
  for (size_t r = 0; r < body.roots.size(); ++r) {
    ResultsOfOneSize& results = by_size[body.ElementsOf(r)];
    results.body.roots.push_back(body.roots[r]);
    results.body.root_leaf.push_back(body.root_leaf[r]);
    results.outputs.push_back(r);
  }
  std::vector<ResultsOfOneSize> list;
  for (auto& [elements, results] : by_size) {
    results.elements = elements;
    results.body.kernel = body.kernel;
    results.body.inputs = body.inputs;
    list.push_back(std::move(results));
  }
  return list;
}

std::string KernelSymbol(const std::string& name, size_t number) {
  std::string symbol = "strop_";
  for (char c : name) symbol += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return StrCat(symbol, "__", number);
}

}  // namespace strop
