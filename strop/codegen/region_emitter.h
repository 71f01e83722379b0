// RegionEmitter: the function of a region (plan/region.h), bool(ptr args, ptr RegionContext): its loops and branches,
// with the code of each kernel in its place.
//
// Buffers that the region alone sees are allocas, and so are small ones that it rewrites, with a copy where the region
// begins and ends. The optimizer's promotion of memory turns those into registers that a whole scalar or vector is
// stored in: the carries of loops over scalars and short arrays never touch memory.
//
// Of a region of tasks the function is one task.
#pragma once
#include <functional>
#include <string>

#include "strop/codegen/kernel_frame.h"
#include "strop/plan/region.h"
#include "strop/runtime/executable.h"

namespace strop {

class RegionEmitter {
 public:
  // Emits the code of a kernel inside the frame.
  using EmitKernel = std::function<Status(const RegionNode& node, const KernelBody& body, KernelFrame& frame)>;
  // Is the kernel a call of the library? Those are numbered in the order of the programs and their nodes.
  using IsCall = std::function<bool(const Instruction& kernel)>;
  RegionEmitter(VectorBuilder& b, const Region& region, EmitKernel emit_kernel, IsCall is_call)
      : b_(b), region_(region), emit_kernel_(std::move(emit_kernel)), is_call_(std::move(is_call)) {}
  // void(const RegionContext*, i64 number of the call, ptr args): what calls the library.
  static constexpr const char* kCallSymbol = kRegionCallSymbol;

  Status Emit(const std::string& function);

 private:
  using V = llvm::Value*;
  struct Place {
    V pointer = nullptr;  // where nodes read and write
    V outside = nullptr;  // the argument that it stands for, if it is another
    int64_t padding = 0;  // bytes behind it
  };
  int64_t Copies() const;
  int64_t CodeOfLongFunctions(const KernelBody& body) const;
  void FindTypes();
  void PlaceBuffers();
  V Alloca(int64_t bytes);
  // Memory for a buffer, with room for vectors that reach beyond its end.
  V Own(size_t buffer);
  void Copy(V to, V from, int64_t bytes);
  V FieldOfContext(uint64_t offset);
  Status EmitTask();
  Status EmitProgram(int32_t program);
  Status EmitNode(const RegionNode& node);
  Status EmitOneKernel(const RegionNode& node);
  void PlaceCalls();
  void EmitCall(const RegionNode& node);
  Status EmitWhile(const RegionNode& node);
  void AssumeCounter(const RegionNode::Counter& counter);
  Status EmitConditional(const RegionNode& node);
  V LoadPredicate(int32_t buffer);
  // Of the buffers of a loop's rotations, one after another: where they lie.
  std::vector<V> Addresses(const RegionNode& node) const;
  std::vector<llvm::PHINode*> EnterRotations(const RegionNode& node, llvm::BasicBlock* before);
  void TurnRotations(const RegionNode& node, const std::vector<llvm::PHINode*>& addresses);
  void LeaveRotations(const RegionNode& node, const std::vector<V>& homes);
  llvm::BasicBlock* Block(const char* name);
  void Leave(bool ended);

  VectorBuilder& b_;
  const Region& region_;
  EmitKernel emit_kernel_;
  IsCall is_call_;
  llvm::Function* function_ = nullptr;
  std::vector<Place> places_;       // of buffers
  std::vector<ElementType> types_;  // of buffers that kernels see as arrays; of others Invalid
  struct Call {
    int64_t number = 0;
    V args = nullptr;  // the addresses of its buffers, in memory
  };
  std::map<const RegionNode*, Call> calls_;
  V trips_ = nullptr, cancelled_ = nullptr;
  llvm::BasicBlock* give_up_ = nullptr;
  int64_t copies_ = 1;  // of the code of an element
};

}  // namespace strop
