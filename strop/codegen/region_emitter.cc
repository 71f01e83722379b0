#include "strop/codegen/region_emitter.h"
#include "strop/codegen/critical_path.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "strop/runtime/executable.h"

namespace strop {

using V = llvm::Value*;

namespace {

constexpr int64_t kMaxShadowBytes = 1 << 10;      // a larger buffer stays where it is
constexpr int64_t kMaxAllShadowBytes = 16 << 10;  // of the stack
constexpr int64_t kMaxHeldBytes = 512;            // what is only read, and fits into registers
constexpr int64_t kMaxPadding = 512;              // longer vectors are masked
constexpr uint64_t kAlignment = 64;
constexpr int64_t kRepeatedCode = 2048;  // simple instructions of all kernels, when their loops are no more
constexpr int64_t kMostRepeated = 32;    // times
constexpr int64_t kRepeatedBytes = 512;  // of a result: larger ones fill the registers
constexpr int64_t kReducedBytes =
    1 << 14;  // of what is reduced to one: more is many trips, however little is left of it

static_assert(sizeof(std::atomic<bool>) == 1, "regions read it as a byte");

// Does the kernel write arrays of no more bytes than that?
bool WritesAtMost(const KernelBody& body, int64_t bytes) {
  return std::all_of(body.roots.begin(), body.roots.end(), [&](const Instruction* root) {
    const Shape& shape = root->op() == Op::DynamicUpdateSlice ? root->operand(1)->shape() : root->shape();
    const std::vector<Shape> leaves = shape.Leaves();
    return std::all_of(leaves.begin(), leaves.end(),
                       [&](const Shape& leaf) { return leaf.IsArray() && leaf.byte_size() <= bytes; });
  });
}

bool ReducesAtMost(const KernelBody& body, int64_t bytes) {
  return std::ranges::all_of(body.Computed(), [&](const Instruction* i) {
    return i->op() != Op::Reduce || i->operand(0)->shape().byte_size() <= bytes;
  });
}

}  // namespace

Status RegionEmitter::Emit(const std::string& name) {
  IrBuilder& ir = b_.ir();
  function_ = CreateFunction(b_, llvm::FunctionType::get(b_.Int(1), {b_.Ptr(), b_.Ptr()}, false), name);
  function_->addRetAttr(llvm::Attribute::ZExt);
  ir.SetInsertPoint(llvm::BasicBlock::Create(b_.context(), "entry", function_));
  cancelled_ = ir.CreateLoad(b_.Ptr(), FieldOfContext(offsetof(RegionContext, cancelled)), "cancelled");
  trips_ = Alloca(8);
  ir.CreateStore(b_.I64(0), trips_);
  PlaceBuffers();
  PlaceCalls();
  copies_ = Copies();
  give_up_ = llvm::BasicBlock::Create(b_.context(), "give_up", function_);
  b_.DeferMath(true);
  const Status status = region_.tasks > 1 ? EmitTask() : EmitProgram(0);
  b_.DeferMath(false);
  STROP_TRY(status);
  for (size_t k = 0; k < places_.size(); ++k)
    if (places_[k].outside && region_.buffers[k].stored)
      Copy(places_[k].outside, places_[k].pointer, region_.buffers[k].size);
  Leave(true);
  ir.SetInsertPoint(give_up_);
  Leave(false);
  return OkStatus();
}

// One trip of the loop over parts.
Status RegionEmitter::EmitTask() {
  V number = b_.ir().CreateLoad(b_.Int(32), FieldOfContext(offsetof(RegionContext, task)), "task");
  b_.ir().CreateStore(number, places_[region_.number].pointer);
  return EmitProgram(region_.programs[0][0].programs[1]);
}

V RegionEmitter::FieldOfContext(uint64_t offset) {
  return b_.ir().CreateConstInBoundsGEP1_64(b_.Int(8), function_->getArg(1), offset);
}

// What long functions (a power of doubles is a hundred instructions) are more than CodeOf says, in each register of the
// result's vectors.
int64_t RegionEmitter::CodeOfLongFunctions(const KernelBody& body) const {
  constexpr int64_t kLong = 100;
  const Shape& shape = body.roots[0]->shape();
  const int64_t bytes = shape.IsArray() ? shape.byte_size() : 0;
  const int64_t registers = std::max<int64_t>(bytes / b_.target().vector_bytes, 1);
  int64_t code = 0;
  for (const Instruction* i : body.Computed())
    if (Is(i->op(), kFloatMath) && InstructionsOfMath(i->op()) >= kLong) code += kLong * registers;
  return code;
}

// Small arrays are best in registers, which positions that are known allow: the less code a region has, the more often
// each part of it may be repeated.
int64_t RegionEmitter::Copies() const {
  int64_t code = 1;
  for (const std::vector<RegionNode>& program : region_.programs)
    for (const RegionNode& node : program)
      if (node.kind == RegionNodeKind::kKernel && !is_call_(*node.instruction)) {
        const KernelBody body = KernelBody::Of(*node.instruction);
        code += CodeOf(body) + CodeOfLongFunctions(body);
      }
  return std::min(kRepeatedCode / code, kMostRepeated);
}

void RegionEmitter::Leave(bool ended) {
  b_.ir().CreateStore(b_.ir().CreateLoad(b_.Int(64), trips_), FieldOfContext(offsetof(RegionContext, trips)));
  b_.ir().CreateRet(b_.ir().getInt1(ended));
}

V RegionEmitter::Alloca(int64_t bytes) {
  llvm::AllocaInst* memory =
      b_.ir().CreateAlloca(llvm::ArrayType::get(b_.Int(8), static_cast<uint64_t>(std::max<int64_t>(bytes, 1))));
  memory->setAlignment(llvm::Align(kAlignment));
  return memory;
}

// The padding is cleared: what vectors read there is computed with, and thrown away. It is written vector by vector, as
// the buffer will be read, so that the optimizer sees vectors in it.
V RegionEmitter::Own(size_t buffer) {
  const int64_t size = region_.buffers[buffer].size;
  const ElementType type = types_[buffer];
  if (type == ElementType::Invalid) return Alloca(size);
  // A vector that reaches beyond the end is not longer than the array, rounded up.
  const int64_t rounded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size)));
  places_[buffer].padding = std::min(rounded, kMaxPadding);
  const int64_t step = std::min<int64_t>(b_.target().vector_bytes, rounded);
  const int64_t room = (size + places_[buffer].padding + step - 1) / step * step;
  V memory = Alloca(room);
  llvm::Type* element = ElementBuilder(b_).StorageType(type);
  const int64_t lanes = std::max<int64_t>(step * 8 / static_cast<int64_t>(element->getScalarSizeInBits()), 1);
  llvm::Constant* zeros = llvm::Constant::getNullValue(VectorBuilder::WithLanes(element, static_cast<int>(lanes)));
  for (int64_t at = 0; at < room; at += step)
    b_.ir().CreateAlignedStore(zeros, b_.ir().CreateConstInBoundsGEP1_64(b_.Int(8), memory, static_cast<uint64_t>(at)),
                               llvm::Align(static_cast<uint64_t>(step)));
  return memory;
}

void RegionEmitter::Copy(V to, V from, int64_t bytes) {
  b_.ir().CreateMemCpy(to, llvm::MaybeAlign(), from, llvm::MaybeAlign(), static_cast<uint64_t>(bytes));
}

llvm::BasicBlock* RegionEmitter::Block(const char* name) {
  return llvm::BasicBlock::Create(b_.context(), name, function_, give_up_);
}

void RegionEmitter::FindTypes() {
  types_.assign(region_.buffers.size(), ElementType::Invalid);
  for (const std::vector<RegionNode>& program : region_.programs) {
    for (const RegionNode& node : program) {
      if (node.kind != RegionNodeKind::kKernel) continue;
      std::vector<Shape> shapes;
      for (int64_t k = 0; k < node.instruction->operand_count(); ++k)
        shapes.push_back(node.instruction->operand(k)->shape());
      for (const Shape& leaf : node.instruction->shape().Leaves()) shapes.push_back(leaf);
      for (size_t k = 0; k < std::min(shapes.size(), node.args.size()); ++k)
        if (shapes[k].IsArray() && shapes[k].num_elements() > 1) types_[node.args[k]] = shapes[k].type();
    }
  }
}

void RegionEmitter::PlaceBuffers() {
  IrBuilder& ir = b_.ir();
  int64_t shadow_bytes = 0;
  places_.resize(region_.buffers.size());
  FindTypes();
  V locals = nullptr;
  if (region_.local_bytes > 0)
    locals = ir.CreateLoad(b_.Ptr(), FieldOfContext(offsetof(RegionContext, locals)), "locals");
  for (size_t k = 0; k < places_.size(); ++k) {
    const RegionBuffer& buffer = region_.buffers[k];
    Place& place = places_[k];
    if (buffer.local >= 0) {
      place.pointer = ir.CreateConstInBoundsGEP1_64(b_.Int(8), locals, static_cast<uint64_t>(buffer.local));
      continue;
    }
    if (buffer.arg < 0 || static_cast<int32_t>(k) == region_.number) {
      place.pointer = Own(k);
      continue;
    }
    V slot = ir.CreateConstInBoundsGEP1_64(b_.Ptr(), function_->getArg(0), static_cast<uint64_t>(buffer.arg));
    llvm::LoadInst* pointer = ir.CreateAlignedLoad(b_.Ptr(), slot, llvm::Align(8));
    pointer->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.context(), {}));
    if (buffer.size > 0)  // what is only read can be read before it is known to be needed
      pointer->setMetadata(llvm::LLVMContext::MD_dereferenceable,
                           llvm::MDNode::get(b_.context(), llvm::ConstantAsMetadata::get(
                                                               ir.getInt64(static_cast<uint64_t>(buffer.size)))));
    if (!buffer.written && buffer.size <= kMaxHeldBytes && types_[k] != ElementType::Invalid)
      pointer->setMetadata(llvm::LLVMContext::MD_align,
                           llvm::MDNode::get(b_.context(), llvm::ConstantAsMetadata::get(
                                                               ir.getInt64(static_cast<uint64_t>(Bytes(types_[k]))))));
    place.pointer = pointer;
    if (!buffer.written || buffer.in_parts || buffer.size > kMaxShadowBytes ||
        shadow_bytes + buffer.size > kMaxAllShadowBytes)
      continue;
    shadow_bytes += buffer.size;
    place.outside = pointer;
    place.pointer = Own(k);
  }
  for (size_t k = 0; k < places_.size(); ++k)
    if (places_[k].outside && region_.buffers[k].loaded)
      Copy(places_[k].pointer, places_[k].outside, region_.buffers[k].size);
}

void RegionEmitter::PlaceCalls() {
  for (const std::vector<RegionNode>& program : region_.programs) {
    for (const RegionNode& node : program) {
      if (node.kind != RegionNodeKind::kKernel || !is_call_(*node.instruction)) continue;
      V args = Alloca(static_cast<int64_t>(node.args.size() * sizeof(void*)));
      for (size_t k = 0; k < node.args.size(); ++k)
        b_.ir().CreateStore(places_[node.args[k]].pointer, b_.ir().CreateConstInBoundsGEP1_64(b_.Ptr(), args, k));
      const int64_t number = static_cast<int64_t>(calls_.size());
      calls_[&node] = {number, args};
    }
  }
}

void RegionEmitter::EmitCall(const RegionNode& node) {
  const Call& call = calls_.at(&node);
  for (size_t k = 0; k < node.args.size(); ++k)  // what changes places
    if (llvm::isa<llvm::PHINode>(places_[node.args[k]].pointer))
      b_.ir().CreateStore(places_[node.args[k]].pointer, b_.ir().CreateConstInBoundsGEP1_64(b_.Ptr(), call.args, k));
  auto* type = llvm::FunctionType::get(b_.ir().getVoidTy(), {b_.Ptr(), b_.Int(64), b_.Ptr()}, false);
  llvm::FunctionCallee callee = b_.module().getOrInsertFunction(kCallSymbol, type);
  llvm::cast<llvm::Function>(callee.getCallee())->setDoesNotThrow();
  b_.ir().CreateCall(callee, {function_->getArg(1), b_.I64(call.number), call.args});
}

Status RegionEmitter::EmitProgram(int32_t program) {
  for (const RegionNode& node : region_.programs[static_cast<size_t>(program)]) STROP_TRY(EmitNode(node));
  return OkStatus();
}

Status RegionEmitter::EmitNode(const RegionNode& node) {
  switch (node.kind) {
    case RegionNodeKind::kKernel: return EmitOneKernel(node);
    case RegionNodeKind::kCopy:
      Copy(places_[node.args[1]].pointer, places_[node.args[0]].pointer, region_.buffers[node.args[0]].size);
      return OkStatus();
    case RegionNodeKind::kWhile: return EmitWhile(node);
    case RegionNodeKind::kConditional: return EmitConditional(node);
  }
  return Internal("unknown kind of node");
}

Status RegionEmitter::EmitOneKernel(const RegionNode& node) {
  if (calls_.contains(&node)) {
    EmitCall(node);
    return OkStatus();
  }
  const KernelBody body = KernelBody::Of(*node.instruction);
  std::vector<ElementBuilder::Memory> buffers;
  for (int32_t arg : node.args) {
    const RegionBuffer& buffer = region_.buffers[arg];
    buffers.push_back({.pointer = places_[arg].pointer,
                       .invariant = buffer.arg >= 0 && !buffer.written,
                       .padding = places_[arg].padding});
  }
  KernelFrame frame(b_, body, node.in_place, buffers);
  if (WritesAtMost(body, kRepeatedBytes) && ReducesAtMost(body, kReducedBytes)) frame.RepeatUpTo(copies_);
  // There is little else to compute while a state of two vectors is waited for.
  b_.ShortenChains(WritesAtMost(body, 2 * b_.target().vector_bytes));
  const Status status = emit_kernel_(node, body, frame);
  b_.ShortenChains(false);
  return status;
}

V RegionEmitter::LoadPredicate(int32_t buffer) {
  V byte = b_.ir().CreateLoad(b_.Int(8), places_[buffer].pointer);
  return b_.ir().CreateICmpNE(byte, b_.Zero(byte));
}

Status RegionEmitter::EmitWhile(const RegionNode& node) {
  IrBuilder& ir = b_.ir();
  llvm::BasicBlock *condition = Block("condition"), *body = Block("body"), *after = Block("after");
  llvm::BasicBlock* before = ir.GetInsertBlock();
  ir.CreateBr(condition);
  ir.SetInsertPoint(condition);
  const std::vector<V> homes = Addresses(node);
  const std::vector<llvm::PHINode*> addresses = EnterRotations(node, before);
  STROP_TRY(EmitProgram(node.programs[0]));
  ir.CreateCondBr(LoadPredicate(node.args[0]), body, after);
  ir.SetInsertPoint(body);
  llvm::LoadInst* cancelled = ir.CreateAlignedLoad(b_.Int(8), cancelled_, llvm::Align(1));
  cancelled->setAtomic(llvm::AtomicOrdering::Monotonic);
  llvm::BasicBlock* go_on = Block("go_on");
  ir.CreateCondBr(ir.CreateICmpEQ(cancelled, b_.Zero(cancelled)), go_on, give_up_,
                  llvm::MDBuilder(b_.context()).createBranchWeights(1000, 1));
  ir.SetInsertPoint(go_on);
  for (const RegionNode::Counter& counter : node.counters) AssumeCounter(counter);
  STROP_TRY(EmitProgram(node.programs[1]));
  ir.CreateStore(ir.CreateAdd(ir.CreateLoad(b_.Int(64), trips_), b_.I64(1)), trips_);
  TurnRotations(node, addresses);
  ir.CreateBr(condition);
  ir.SetInsertPoint(after);
  LeaveRotations(node, homes);
  return OkStatus();
}

// Where it indexes arrays that are longer it need not be put into their range.
void RegionEmitter::AssumeCounter(const RegionNode::Counter& counter) {
  llvm::Type* type = b_.Int(static_cast<int>(8 * counter.bytes));
  V i = b_.ir().CreateAlignedLoad(type, places_[counter.buffer].pointer,
                                  llvm::Align(static_cast<uint64_t>(counter.bytes)));
  b_.ir().CreateAssumption(b_.ir().CreateICmpULE(i, b_.I(counter.last, i)));
}

std::vector<V> RegionEmitter::Addresses(const RegionNode& node) const {
  std::vector<V> addresses;
  for (const std::vector<int32_t>& rotation : node.rotations)
    for (int32_t buffer : rotation) addresses.push_back(places_[buffer].pointer);
  return addresses;
}

// In the head of the loop: where each of them lies in this trip.
std::vector<llvm::PHINode*> RegionEmitter::EnterRotations(const RegionNode& node, llvm::BasicBlock* before) {
  std::vector<llvm::PHINode*> addresses;
  for (const std::vector<int32_t>& rotation : node.rotations) {
    for (int32_t buffer : rotation) {
      Place& place = places_[buffer];
      llvm::PHINode* address = b_.ir().CreatePHI(b_.Ptr(), 2, "place");
      address->addIncoming(place.pointer, before);
      place.pointer = address;
      place.padding = 0;  // the others' memory may have none
      addresses.push_back(address);
    }
  }
  return addresses;
}

void RegionEmitter::TurnRotations(const RegionNode& node, const std::vector<llvm::PHINode*>& addresses) {
  auto first = addresses.begin();
  for (const std::vector<int32_t>& rotation : node.rotations) {
    const size_t n = rotation.size();
    for (size_t k = 0; k < n; ++k) first[k]->addIncoming(first[(k + 1) % n], b_.ir().GetInsertBlock());
    first += static_cast<int64_t>(n);
  }
}

// Behind the loop: turned back, with copies, until all of them lie where they did before it.
void RegionEmitter::LeaveRotations(const RegionNode& node, const std::vector<V>& homes) {
  IrBuilder& ir = b_.ir();
  auto home = homes.begin();
  for (const std::vector<int32_t>& rotation : node.rotations) {
    llvm::BasicBlock *before = ir.GetInsertBlock(), *check = Block("at_home"), *back = Block("back"),
                     *done = Block("home");
    ir.CreateBr(check);
    ir.SetInsertPoint(check);
    std::vector<llvm::PHINode*> at;
    for (int32_t buffer : rotation) {
      at.push_back(ir.CreatePHI(b_.Ptr(), 2, "place"));
      at.back()->addIncoming(places_[buffer].pointer, before);
    }
    ir.CreateCondBr(ir.CreateICmpEQ(at[0], home[0]), done, back);
    ir.SetInsertPoint(back);
    V to = at.back();
    for (size_t k = 0; k + 1 < at.size(); ++k) {
      Copy(to, at[k], region_.buffers[rotation[k]].size);
      to = at[k];
    }
    for (size_t k = 0; k < at.size(); ++k) at[k]->addIncoming(at[(k + at.size() - 1) % at.size()], back);
    ir.CreateBr(check);
    ir.SetInsertPoint(done);
    for (size_t k = 0; k < rotation.size(); ++k) places_[rotation[k]].pointer = home[k];
    home += static_cast<int64_t>(rotation.size());
  }
}

Status RegionEmitter::EmitConditional(const RegionNode& node) {
  IrBuilder& ir = b_.ir();
  llvm::BasicBlock* after = Block("after");
  std::vector<llvm::BasicBlock*> branches;
  for (size_t k = 0; k < node.programs.size(); ++k) branches.push_back(Block("branch"));
  if (node.by_index) {
    // Out of range: the last.
    V index = ir.CreateAlignedLoad(b_.Int(32), places_[node.args[0]].pointer, llvm::Align(4));
    auto* choose = ir.CreateSwitch(index, branches.back(), static_cast<unsigned>(branches.size()));
    for (size_t k = 0; k + 1 < branches.size(); ++k)
      choose->addCase(ir.getInt32(static_cast<uint32_t>(k)), branches[k]);
  } else {
    ir.CreateCondBr(LoadPredicate(node.args[0]), branches[0], branches[1]);
  }
  for (size_t k = 0; k < branches.size(); ++k) {
    ir.SetInsertPoint(branches[k]);
    STROP_TRY(EmitProgram(node.programs[k]));
    ir.CreateBr(after);
  }
  ir.SetInsertPoint(after);
  return OkStatus();
}

}  // namespace strop
