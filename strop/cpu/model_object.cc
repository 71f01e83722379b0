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
    {&kBandRecipe, "kBandRecipe"},
    {&kConvolutionRecipe, "kConvolutionRecipe"},
    {&kCholeskyRecipe, "kCholeskyRecipe"},
    {&kTriangularSolveRecipe, "kTriangularSolveRecipe"},
    {&kRandomBitsRecipe, "kRandomBitsRecipe"},
    {&kScanRecipe, "kScanRecipe"},
    {&kSortRecipe, "kSortRecipe"},
    {&kTopKRecipe, "kTopKRecipe"},
    {&kFftRecipe, "kFftRecipe"},
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

}  // namespace

Result<std::string> ModelBytes(const ExecutableSpec& spec, std::string_view features) {
  ArtifactWriter artifact;
  STROP_TRY(WriteSpec(spec, artifact));
  artifact.Add(kFeaturesSection, std::string(features));
  return artifact.Finish();
}

Result<std::string> ModelObject(const std::string& name, const ExecutableSpec& spec, std::string_view features) {
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
  constant(llvm::ConstantStruct::getAnon(fields), "strop_model_data_" + name, true);
  return emitter->Emit(module, {});
}

}  // namespace strop::cpu
