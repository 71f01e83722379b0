#include "strop/cpu/model_object.h"

#include <algorithm>
#include <set>

#include "strop/codegen/llvm_headers.h"
#include "strop/cpu/isa.h"
#include "strop/cpu/jit.h"
#include "strop/cpu/load/model_sections.h"
#include "strop/cpu/load/problems.h"
#include "strop/runtime/spec_bytes.h"

namespace strop::cpu {
namespace {

// By which name the linker knows a kind.
struct KindSymbol {
  const RecipeKind* kind;
  std::string_view variable;
};
constexpr KindSymbol kSymbols[] = {
    {&kKernelRecipe, "kKernelRecipe"},
    {&kRegionRecipe, "kRegionRecipe"},
    {&kSortByCodeRecipe, "kSortByCodeRecipe"},
    {&kGemmRecipe, "kGemmRecipe"},
    {&kWholeGemmRecipe, "kWholeGemmRecipe"},
    {&kKeptGemmRecipe, "kKeptGemmRecipe"},
    {&kBandRecipe, "kBandRecipe"},
    {&kConvolutionRecipe, "kConvolutionRecipe"},
    {&kCholeskyRecipe, "kCholeskyRecipe"},
    {&kTriangularSolveRecipe, "kTriangularSolveRecipe"},
    {&kRandomBitsRecipe, "kRandomBitsRecipe"},
    {&kScanRecipe, "kScanRecipe"},
    {&kSortRecipe, "kSortRecipe"},
    {&kTopKRecipe, "kTopKRecipe"},
    {&kFftRecipe, "kFftRecipe"},
    {&kLapackRecipe, "kLapackRecipe"},
};
static_assert(std::size(kSymbols) == kNumRecipeKinds);

std::string MangledName(std::string_view variable) { return StrCat("_ZN5strop3cpu", variable.size(), variable, "E"); }

Status AddKinds(std::string_view recipe, std::set<std::string>& symbols) {
  ByteReader in(recipe);
  std::string_view name;
  in(name);
  for (const KindSymbol& symbol : kSymbols)
    if (symbol.kind->name == name) symbols.insert(MangledName(symbol.variable));
  if (name != kRegionRecipe.name) return OkStatus();
  STROP_ASSIGN(const RegionProblem region, ProblemOfRecipe<RegionProblem>(recipe, kRegionRecipe));
  for (const std::string& call : region.calls) STROP_TRY(AddKinds(call, symbols));
  return OkStatus();
}

Result<std::set<std::string>> KindsOf(const ExecutableSpec& spec) {
  std::set<std::string> symbols;
  for (const Program& program : spec.programs) {
    for (const Step& step : program.steps) {
      const auto* host = std::get_if<HostStep>(&step.body);
      if (host && host->interpreted)
        return Unimplemented("step ", step.info.name, " (", step.info.op,
                             ") is interpreted, and a program that is linked has no evaluator");
      if (step.kind() == StepKind::kCollective || step.kind() == StepKind::kInfeed || step.kind() == StepKind::kOutfeed)
        return Unimplemented("step ", step.info.name, " (", step.info.op, ") in a program for one device");
      if (!step.recipe.empty()) STROP_TRY(AddKinds(step.recipe, symbols));
    }
  }
  return symbols;
}

// The functions of a model that is opened by name; each calls that of include/strop/model.h.
class EntryPoints {
 public:
  EntryPoints(llvm::Module& module, std::string name) : module_(module), name_(std::move(name)) {}

  // const char* <name>_create(int threads, StropModel** model)
  void AddCreate(llvm::Constant* data) {
    llvm::IRBuilder<> b = Begin("_create", pointer_, {llvm::Type::getInt32Ty(context_), pointer_});
    llvm::Function* f = b.GetInsertBlock()->getParent();
    b.CreateRet(Call(b, "strop_model_create", pointer_, {data, f->getArg(0), f->getArg(1)}));
  }

  // const char* <name>_run(const StropModel* model, const void* argument0, ..., void* result0, ...)
  void AddRun(size_t arguments, size_t results) {
    llvm::IRBuilder<> b = Begin("_run", pointer_, std::vector<llvm::Type*>(1 + arguments + results, pointer_));
    llvm::Function* f = b.GetInsertBlock()->getParent();
    llvm::Value* in = List(b, *f, 1, arguments);
    llvm::Value* out = List(b, *f, 1 + arguments, results);
    b.CreateRet(Call(b, "strop_model_run", pointer_, {f->getArg(0), in, out}));
  }

  // void <name>_destroy(StropModel* model)
  void AddDestroy() {
    llvm::Type* nothing = llvm::Type::getVoidTy(context_);
    llvm::IRBuilder<> b = Begin("_destroy", nothing, {pointer_});
    Call(b, "strop_model_destroy", nothing, {b.GetInsertBlock()->getParent()->getArg(0)});
    b.CreateRetVoid();
  }

 private:
  llvm::IRBuilder<> Begin(std::string_view suffix, llvm::Type* result, const std::vector<llvm::Type*>& parameters) {
    auto* f = llvm::Function::Create(llvm::FunctionType::get(result, parameters, false),
                                     llvm::GlobalValue::ExternalLinkage, StrCat(name_, suffix), module_);
    f->addFnAttr(llvm::Attribute::NoImplicitFloat);  // no vectors: the program may be for a smaller machine than this
    return llvm::IRBuilder<>(llvm::BasicBlock::Create(context_, "", f));
  }

  llvm::Value* Call(llvm::IRBuilder<>& b, const char* name, llvm::Type* result,
                    const std::vector<llvm::Value*>& values) {
    std::vector<llvm::Type*> types;
    for (llvm::Value* value : values) types.push_back(value->getType());
    return b.CreateCall(module_.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false)), values);
  }

  // So many parameters from number `first` on as an array, which is never empty.
  llvm::Value* List(llvm::IRBuilder<>& b, llvm::Function& f, size_t first, size_t count) {
    llvm::Value* list = b.CreateAlloca(pointer_, b.getInt64(count + 1));
    for (size_t n = 0; n < count; ++n)
      b.CreateStore(f.getArg(static_cast<unsigned>(first + n)), b.CreateGEP(pointer_, list, b.getInt64(n)));
    return list;
  }

  llvm::Module& module_;
  llvm::LLVMContext& context_ = module_.getContext();
  std::string name_;
  llvm::Type* pointer_ = llvm::PointerType::get(context_, 0);
};

}  // namespace

Result<std::string> ModelBytes(const ExecutableSpec& spec, std::string_view features) {
  ArtifactWriter artifact;
  STROP_TRY(WriteSpec(spec, artifact));
  artifact.Add(kFeaturesSection, std::string(features));
  return artifact.Finish();
}

Result<std::string> ModelObject(const std::string& name, const ExecutableSpec& spec, std::string_view features,
                                ModelUse use) {
  STROP_ASSIGN(const std::set<std::string> symbols, KindsOf(spec));
  STROP_ASSIGN(const std::string bytes, ModelBytes(spec, features));

  llvm::LLVMContext context;
  llvm::Module module(name, context);
  STROP_ASSIGN(const std::unique_ptr<ObjectEmitter> emitter, ObjectEmitter::Create(Isa::OfHost(), 2));
  emitter->Prepare(module);
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  llvm::Type* word = llvm::Type::getInt64Ty(context);
  const auto constant = [&](llvm::Constant* value, const std::string& symbol, bool exported) {
    auto* global = new llvm::GlobalVariable(
        module, value->getType(), true,
        exported ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage, value, symbol);
    global->setAlignment(llvm::Align(64));
    return global;
  };
  llvm::Constant* data =
      constant(llvm::ConstantDataArray::getString(context, bytes, /*AddNull=*/false), "artifact", false);
  std::vector<llvm::Constant*> kinds;
  for (const std::string& symbol : symbols) kinds.push_back(module.getOrInsertGlobal(symbol, pointer));
  llvm::Constant* list =
      constant(llvm::ConstantArray::get(llvm::ArrayType::get(pointer, kinds.size()), kinds), "kinds", false);
  llvm::Constant* fields[] = {data, llvm::ConstantInt::get(word, bytes.size()), list,
                              llvm::ConstantInt::get(word, kinds.size())};
  llvm::Constant* model = constant(llvm::ConstantStruct::getAnon(fields), "strop_model_data_" + name, true);
  if (use == ModelUse::kShared) {
    EntryPoints functions(module, name);
    functions.AddCreate(model);
    functions.AddRun(spec.parameters.size(), spec.outputs.size());
    functions.AddDestroy();
  }
  return emitter->Emit(module, {});
}

}  // namespace strop::cpu
