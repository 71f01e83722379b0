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

// double f(double x) { return CALLEE(x) + 0.125; }
std::string ObjectThatCalls(const char* callee) {
  llvm::LLVMContext context;
  llvm::Module module("calls", context);
  auto emitter = *ObjectEmitter::Create(Isa::OfHost(), 2);
  emitter->Prepare(module);
  llvm::IRBuilder<> ir(context);
  llvm::Type* f64 = ir.getDoubleTy();
  auto* type = llvm::FunctionType::get(f64, {f64}, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "f", module);
  ir.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
  llvm::Value* called = ir.CreateCall(module.getOrInsertFunction(callee, type), {f->getArg(0)});
  ir.CreateRet(ir.CreateFAdd(called, llvm::ConstantFP::get(f64, 0.125)));
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
