// The parser's state; private to text/. One class over four files: header.cc, computation.cc, instruction.cc,
// attributes.cc.
#pragma once
#include <optional>
#include <unordered_map>

#include "strop/base/cursor.h"
#include "strop/ir/module.h"
#include "strop/text/literal_parse.h"

namespace strop {

class ModuleParser {
 public:
  ModuleParser(std::string_view text, std::string_view file) : at_(text, file) {}
  Result<std::unique_ptr<Module>> Run();
  // After Run: an error whose location is an instruction of the module gets the place of its definition instead.
  Status Locate(const Status& violation) const;

 private:
  struct Defined {
    Instruction* instruction;
    size_t offset;
  };
  // One computation while its body is read. Names are views of the text (or of `made_names_`).
  struct Scope {
    Computation* computation;
    std::unordered_map<std::string_view, Defined> names;
    bool is_single_instruction = false;  // operands may be declared by use: add(f32[2] x, f32[2] y)
    int64_t made_parameters = 0;
    Defined root{nullptr, 0};
    size_t last_offset = 0;  // where the last instruction so far starts
  };
  // A callee whose computation stands further down in the text.
  struct ForwardCall {
    Instruction* user;
    int64_t slot;
    std::string_view name;
    size_t offset;
  };
  struct CalleeRef {
    Computation* computation = nullptr;  // null: a forward reference by `name`
    std::string_view name;
    size_t offset = 0;
  };
  // An instruction before it exists.
  struct Draft {
    std::string_view name;  // empty for nested instructions
    size_t name_offset = 0;
    std::optional<Shape> shape;
    Op op = Op::kEnd;
    size_t op_offset = 0;
    Op wrapped = Op::kEnd;  // async sugar: the op that X of "X-start" names
    size_t operands_offset = 0;
    std::vector<Instruction*> operands;
    Attrs attrs;       // of the op; of the wrapped op in sugar
    AsyncAttrs async;  // of the async op in sugar
    std::vector<CalleeRef> callees;
    std::vector<std::string_view> seen;  // attribute names
    std::optional<Sharding> sharding;
    std::shared_ptr<const OpMetadata> metadata;
    FrontendAttributes frontend_attributes;
    std::string backend_config, origin, statistics;
    std::vector<Instruction*> control_predecessors;
  };

  // header.cc
  Status ParseHeader();
  Status ParseHeaderAttribute(std::string_view name, size_t offset);
  Status ParseEntryLayout();
  Status ParseAliases();
  Status ParseDonors();
  Status ParseStackFrames();
  Status ParseNumbered(std::vector<std::string>& names);
  Status ParseRecord(std::initializer_list<std::pair<std::string_view, int64_t*>> fields);

  // computation.cc
  // What XLA prints has an entry_computation_layout, an ENTRY and ROOTs. Of a text without the first, written by hand,
  // the last computation and the last instructions are those that are not marked, as XLA has it.
  bool IsFullForm() const { return module_->config().has_entry_layout; }
  Status ParseComputations();
  Status ParseComputation(bool is_entry, size_t offset);
  Status ParseSignature(std::optional<Shape>& result, size_t& result_offset);
  // `{ ... }`, into a new computation.
  Result<Computation*> ParseBody(std::string_view name);
  Status CheckParameters(const Computation& computation, size_t offset);
  Status ParseSingleInstruction();
  Status ResolveForwardCalls();
  Status CheckNoCallCycle();
  bool StartsWithInstruction();
  void UnwrapResultLayout();

  // instruction.cc
  Status ParseInstruction(Scope& scope);
  // Everything behind `name =`. Nested instructions have no attributes.
  Result<Instruction*> ParseRhs(Scope& scope, Draft& draft, bool with_attributes);
  Status ParseOpcode(Draft& draft);
  Status ParseOperands(Scope& scope, Draft& draft);
  Result<Instruction*> ParseOperand(Scope& scope);
  Result<Instruction*> NamedOperand(Scope& scope, std::string_view name, size_t offset,
                                    const std::optional<Shape>& shape);
  Result<Instruction*> ElementOperand(Scope& scope, Instruction* tuple, std::string_view name, size_t offset);
  Status ParseParenthesised(Scope& scope, Draft& draft);
  Status CheckParameterNumber(const Scope& scope, int64_t number, size_t offset);
  Result<Instruction*> Create(Scope& scope, Draft& draft);
  Status InferMissingShape(Draft& draft);
  Result<Computation*> WrapAsync(Draft& draft);
  Status InheritAsyncCallees(Draft& draft);
  void SetExtras(Draft& draft, Instruction* made);
  void SetCallees(const Draft& draft, Instruction* made);
  bool IsName();
  std::string_view Name();  // with or without %; empty if none is next

  // attributes.cc
  Status ParseAttributes(Scope& scope, Draft& draft);
  Status ParseAttribute(Scope& scope, Draft& draft, std::string_view name, size_t offset);
  Result<bool> ParseCommonAttribute(Scope& scope, Draft& draft, std::string_view name);
  Result<bool> ParseCallee(Draft& draft, std::string_view name);
  Status ParseCalleeRef(CalleeRef& callee);
  Status ParseCalleeList(Draft& draft);
  Status UnknownAttribute(const Draft& draft, std::string_view name, size_t offset);
  Status CheckRequired(const Draft& draft, size_t offset);

  Cursor at_;
  std::vector<std::pair<const Instruction*, size_t>> definitions_;  // where each instruction starts
  std::unique_ptr<Module> module_;
  Computation* last_computation_ = nullptr;
  std::unordered_map<std::string_view, Computation*> computations_;
  std::vector<ForwardCall> forward_calls_;
  std::vector<std::unique_ptr<std::string>> made_names_;
  MadeUpValues made_up_;
  int depth_ = 0;  // nested instructions and inline computations
};

// Guards the parser's own recursion.
inline constexpr int kMaxParseDepth = 200;

}  // namespace strop
