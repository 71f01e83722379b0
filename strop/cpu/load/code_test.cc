// The loader of machine code: what LLVM writes, and what nobody should.
#include "strop/cpu/load/code.h"

#include <gtest/gtest.h>

#include <cmath>

#include "strop/base/mutator.h"
#include "strop/codegen/llvm_headers.h"
#include "strop/cpu/isa.h"
#include "strop/cpu/jit.h"

namespace strop::cpu {
namespace {

// double f(double x) { return CALLEE(x) + 0.125; }, where CALLEE is called by `between`, if that is not empty.
std::string ObjectThatCalls(const char* callee, const std::string& between = "") {
  llvm::LLVMContext context;
  llvm::Module module("calls", context);
  auto emitter = *ObjectEmitter::Create(Isa::OfHost(), 2);
  emitter->Prepare(module);
  llvm::IRBuilder<> ir(context);
  llvm::Type* f64 = ir.getDoubleTy();
  auto* type = llvm::FunctionType::get(f64, {f64}, false);
  llvm::FunctionCallee called = module.getOrInsertFunction(callee, type);
  const auto add = [&](const std::string& name, llvm::GlobalValue::LinkageTypes linkage, double plus) {
    auto* f = llvm::Function::Create(type, linkage, name, module);
    ir.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
    ir.CreateRet(ir.CreateFAdd(ir.CreateCall(called, {f->getArg(0)}), llvm::ConstantFP::get(f64, plus)));
    called = f;
  };
  if (!between.empty()) add(between, llvm::GlobalValue::InternalLinkage, 0);
  add("f", llvm::GlobalValue::ExternalLinkage, 0.125);
  return *emitter->Emit(module, {});
}

TEST(LoadedCode, CallsKnownFunctionsFromSeveralObjects) {
  const std::string cosh = ObjectThatCalls("cosh"), atan = ObjectThatCalls("atan");
  const std::string_view objects[] = {cosh, atan};
  const auto code = LoadedCode::Load(objects);
  ASSERT_TRUE(code.ok()) << code.status().ToString();
  using Function = double (*)(double);
  EXPECT_EQ(reinterpret_cast<Function>((*code)->Find(0, "f"))(0.5), std::cosh(0.5) + 0.125);
  EXPECT_EQ(reinterpret_cast<Function>((*code)->Find(1, "f"))(0.5), std::atan(0.5) + 0.125);
  EXPECT_EQ((*code)->Find(1, "g"), nullptr);
  EXPECT_EQ((*code)->Find(2, "f"), nullptr);
}

TEST(LoadedCode, FunctionsAreReplaced) {
  const std::string cosh = ObjectThatCalls("cosh"), atan = ObjectThatCalls("atan"), none;
  const auto code = LoadedCode::LoadReplaceable(cosh);
  ASSERT_TRUE(code.ok()) << code.status().ToString();
  const auto f = reinterpret_cast<double (*)(double)>((*code)->Find(0, "f"));
  EXPECT_EQ(f(0.5), std::cosh(0.5) + 0.125);
  const std::string_view objects[] = {atan};
  const auto other = LoadedCode::Load(objects);
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  ASSERT_TRUE((*code)->ReplaceBy(**other).ok());
  EXPECT_EQ(f(0.5), std::atan(0.5) + 0.125);

  const auto empty = LoadedCode::Load({});
  ASSERT_TRUE(empty.ok()) << empty.status().ToString();
  EXPECT_EQ((*code)->ReplaceBy(**empty).message(), "no other code for f");
  EXPECT_EQ((*other)->ReplaceBy(**code).message(), "no other code for f") << "whose callers hold its own address";
  EXPECT_EQ(f(0.5), std::atan(0.5) + 0.125);
}

TEST(LoadedCode, FunctionsOfItsOwnNeedNoReplacement) {
  const std::string cosh = ObjectThatCalls("cosh", "between"), atan = ObjectThatCalls("atan");
  const auto code = LoadedCode::LoadReplaceable(cosh);
  ASSERT_TRUE(code.ok()) << code.status().ToString();
  EXPECT_EQ((*code)->Find(0, "between"), nullptr);
  const auto f = reinterpret_cast<double (*)(double)>((*code)->Find(0, "f"));
  EXPECT_EQ(f(0.5), std::cosh(0.5) + 0.125);
  const std::string_view objects[] = {atan};
  const auto other = LoadedCode::Load(objects);
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  ASSERT_TRUE((*code)->ReplaceBy(**other).ok());
  EXPECT_EQ(f(0.5), std::atan(0.5) + 0.125);
}

TEST(LoadedCode, QuickCodeAsksForNothingAhead) {
  for (int level : {0, 2}) {
    llvm::LLVMContext context;
    llvm::Module module("fetches", context);
    auto emitter = *ObjectEmitter::Create(Isa::OfHost(), level);
    emitter->Prepare(module);
    llvm::IRBuilder<> ir(context);
    auto* type = llvm::FunctionType::get(ir.getVoidTy(), {ir.getPtrTy()}, false);
    auto* f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "f", module);
    ir.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
    llvm::Value* ahead = ir.CreateConstGEP1_64(ir.getInt8Ty(), f->getArg(0), 4096);
    ir.CreateIntrinsic(llvm::Intrinsic::prefetch, {ahead->getType()},
                       {ahead, ir.getInt32(0), ir.getInt32(3), ir.getInt32(1)});
    ir.CreateRetVoid();
    ASSERT_TRUE(emitter->Emit(module, {.optimization_level = level}).ok());
    EXPECT_EQ(f->getInstructionCount(), level == 0 ? 1u : 3u);
  }
}

TEST(LoadedCode, RefusesFunctionsThatAreNotInTheTable) {
  const std::string object = ObjectThatCalls("system");
  const std::string_view objects[] = {object};
  EXPECT_EQ(LoadedCode::Load(objects).status().message(), "the code calls functions that are not known: system");
}

TEST(LoadedCode, DamagedObjects) {
  const std::string object = ObjectThatCalls("cosh");
  for (size_t size = 0; size < object.size(); ++size) {
    const std::string_view objects[] = {std::string_view(object).substr(0, size)};
    EXPECT_FALSE(LoadedCode::Load(objects).ok()) << size;
  }
  Mutator mutate;
  for (int n = 0; n < 20000; ++n) {
    const std::string bad = mutate.Overwrite(object);
    const std::string_view objects[] = {bad};
    (void)LoadedCode::Load(objects).ok();
  }
}

}  // namespace
}  // namespace strop::cpu
