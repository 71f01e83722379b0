// The parser behind text_parser.h. Its methods are spread over the text_*.cc files: characters (text_lexer.cc), types
// (text_types.cc), attributes (text_attrs.cc, text_dense.cc, text_dialect_attrs.cc), operations (text_ops.cc), the
// pretty forms (text_pretty.cc) and the ops with a form of their own (text_custom.cc).
//
// It reads characters directly: what a token is depends on the place in MLIR (`4x8xf32`, `e5m10`, `[0]x[1]`), so there
// is no token stream. Aliases (`#loc3 = ...`, usually at the end of the file) are found by one scan over the lines and
// parsed where they are first used.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "strop/base/status.h"
#include "strop/import/mlir.h"
#include "strop/import/mlir_ops.h"

namespace strop {

class MlirTextParser {
 public:
  MlirTextParser(MlirModule& module, std::string_view text, std::string_view file_name, int64_t first_line);

  Status ParseFile();
  Result<const MlirAttr*> ParseAttr(const MlirType* type = nullptr);
  Result<const MlirType*> ParseType();
  bool AtEnd();
  Status ErrorHere(std::string message);

 private:
  // ---- characters (text_lexer.cc)
  void SkipSpace();
  char Peek();                          // first character after space, 0 at the end
  bool Try(std::string_view token);     // punctuation; spaces before it are skipped
  bool TryWord(std::string_view word);  // a whole identifier
  Status Expect(std::string_view token);
  Status ExpectWord(std::string_view word);
  std::string_view Word();  // identifier, possibly empty
  std::string_view PeekWord();
  Result<std::string_view> QuotedString();
  bool TryInteger(int64_t& value, Status& status);
  Result<int64_t> Integer();
  Result<std::string_view> SymbolName();  // @name or @"name", without the @
  // "12:7" and the error at a position
  const MlirAttr* LocAt(size_t pos);
  template <class... Args>
  Status Error(size_t pos, const Args&... args) {
    return ErrorAt(pos, StrCat(args...));
  }
  Status ErrorAt(size_t pos, std::string message);
  std::string Found();  // what stands here, for messages: "'tensor'", "end of input"

  // Counts nesting of regions, types and attributes.
  struct Nested {
    explicit Nested(int& depth) : depth_(depth) { ++depth_; }
    ~Nested() { --depth_; }
    int& depth_;
  };
  Status CheckNesting();

  // ---- types (text_types.cc)
  Result<const MlirType*> ParseBuiltinType(std::string_view word, size_t start);
  Result<const MlirType*> ParseShaped(MlirTypeKind kind);
  Result<const MlirType*> ParseDialectType();
  Result<const MlirType*> ParseQuantType();
  Result<const MlirType*> ParseFunctionType();
  Status ParseDims(std::vector<int64_t>& dims);                    // 4x?x as far as it goes
  Status ParseTypeList(std::vector<const MlirType*>& types);       // a, b, c (at least one)
  Status ParseTypesInParens(std::vector<const MlirType*>& types);  // (a, b) or ()
  Status ParseResultTypes(std::vector<const MlirType*>& types);    // a or (a, b)

  // ---- attributes (text_attrs.cc)
  Result<const MlirAttr*> ParseNumber(const MlirType* type);
  Result<const MlirAttr*> MakeNumber(std::string_view digits, bool negative, const MlirType* type, size_t start);
  Result<const MlirAttr*> ParseKeywordAttr();
  Result<const MlirAttr*> ParseHashAttr(const MlirType* type);
  Result<const MlirAttr*> ParseArrayAttr();
  Result<const MlirAttr*> ParseDictAttr();
  Status ParseDictBody(std::vector<MlirNamedAttr>& fields);  // after `{`, through `}`
  Status ParseOptionalDict(std::vector<MlirNamedAttr>& attrs);
  Result<const MlirAttr*> ParseSymbolAttr();
  Result<const MlirAttr*> ParseDenseArrayAttr();
  Result<const MlirAttr*> ParseBracketedInts();             // [1, 2] or a whole attribute
  Result<std::vector<int64_t>> ParseIntList(bool dynamic);  // [1, ?]
  Result<const MlirAttr*> ParseLoc();                       // loc(...)
  Result<const MlirAttr*> ParseLocBody();
  Status ParseOptionalLoc(const MlirAttr*& loc);
  Result<const MlirAttr*> ParseOpaqueBody(std::string_view prefix, size_t start);
  Status SkipBalanced();  // from an opening bracket past its partner

  // ---- constants (text_dense.cc)
  struct Element {
    enum Kind : uint8_t { kNumber, kString, kTrue, kFalse, kComplex } kind = kNumber;
    bool negative = false;
    size_t begin = 0, end = 0;  // the digits; of kComplex the index of two more elements
  };
  struct ElementList {
    std::vector<Element> elements, parts;
    std::vector<int64_t> dims;
    bool hex = false;
    std::string_view hex_text;
  };
  Result<const MlirAttr*> ParseDense();
  Result<const MlirAttr*> ParseDenseResource();
  Result<const MlirAttr*> ParseSparse();
  Status ParseElements(ElementList& list, size_t depth);
  Status ParseElement(ElementList& list, Element& element, bool inside_complex);
  Result<const MlirAttr*> MakeDense(const ElementList& list, const MlirType* type, size_t start);
  Status WriteElement(const ElementList& list, const Element& element, const MlirType& type, char* out);
  Result<std::string_view> HexBytes(std::string_view hex, size_t start);
  Status ParseResources();  // {-# dialect_resources: ... #-}

  // ---- attributes of dialects (text_dialect_attrs.cc)
  Result<const MlirAttr*> ParseDialectAttr(std::string_view name, size_t start);
  Result<const MlirAttr*> ParseStructBody(const MlirStructInfo& info);
  Result<const MlirAttr*> ParseStructFields(const MlirStructInfo& info, std::string_view end);
  Result<const MlirAttr*> ParseConvDimensions();
  Status ParseConvPart(char first, char second, std::vector<int64_t>& spatial, int64_t& a, int64_t& b);
  Result<const MlirAttr*> ParseAccuracyBody();
  Result<const MlirAttr*> ParseStablehloAxisRef();
  template <class Axis, class Ids>
  Result<const MlirAttr*> ParseMeshRest(std::string_view kind, Axis&& parse_axis, Ids&& parse_ids);
  Result<const MlirAttr*> ParseStablehloMesh();
  Result<const MlirAttr*> ParseSubAxis(std::string_view name);
  Result<const MlirAttr*> ParseSdyBody(std::string_view kind);  // "mesh", "sharding", ...; after the mnemonic
  Result<const MlirAttr*> ParseSdyMesh();
  Result<const MlirAttr*> ParseSdySharding();
  Result<const MlirAttr*> ParseSdyShardingList();  // [<@mesh, [...]>, ...]
  Result<const MlirAttr*> ParseSdyDimension();
  Result<const MlirAttr*> ParseSdyAxis();
  Result<const MlirAttr*> ParseSdyAxes();  // {"a", "b"}
  Result<const MlirAttr*> ParseSdyManualAxes();

  // ---- operations (text_ops.cc)
  struct OperandRef {
    std::string_view name;  // without the %
    uint32_t number = 0;    // #n
    size_t pos = 0;
  };
  struct Arg {
    std::string_view name;
    const MlirType* type = nullptr;
    const MlirAttr* loc = nullptr;
    const MlirAttr* attrs = nullptr;  // Dict
    size_t pos = 0;
  };
  // Under construction.
  struct OpState {
    std::string_view name;
    const MlirOpInfo* info = nullptr;
    size_t pos = 0;
    std::vector<OperandRef> operands;
    std::vector<const MlirType*> operand_types, result_types;
    std::vector<MlirNamedAttr> attrs;
    std::vector<MlirRegion*> regions;
    std::vector<MlirBlock*> successors;
    const MlirAttr* loc = nullptr;
    void Add(std::string_view attr_name, const MlirAttr* value) { attrs.push_back({attr_name, value}); }
  };
  struct Definition {
    std::span<MlirValue* const> values;
  };
  struct Forward {                                     // operands that name a value defined later
    std::vector<std::pair<MlirValue**, size_t>> uses;  // slot and position
    std::vector<const MlirType*> types;
    uint32_t number = 0;
    std::string_view name;
  };
  struct Scope {  // of names, one per isolated region
    std::unordered_map<std::string_view, Definition> names;
    std::vector<std::vector<std::string_view>> regions;  // names to forget when a region ends
    std::vector<Forward> forward;
    std::unordered_map<std::string, size_t> forward_index;  // "name#n"
  };
  struct Labels {  // of the region being read
    std::unordered_map<std::string_view, MlirBlock*> blocks;
    std::vector<MlirBlock*> order;
  };

  Status ParseTopLevel();
  Result<MlirOp*> ParseOp();
  Status ParseGenericOp(OpState& state);
  Status ParsePrettyOp(OpState& state, std::string_view word);
  Result<MlirOp*> FinishOp(OpState& state);
  Status ParseOperandRef(OperandRef& ref);
  bool AtOperand() { return Peek() == '%'; }
  Status ParseOperandList(std::vector<OperandRef>& operands);  // zero or more
  Status Resolve(const OperandRef& ref, const MlirType* type, MlirValue** slot);
  Status Define(std::string_view name, std::span<MlirValue* const> values, size_t pos);
  Status ParseArgList(std::vector<Arg>& args, bool typed);  // (%a: T {..} loc(..), ...)
  // `{ ops }`; args become those of the entry block. An op that is isolated opens a new scope.
  Result<MlirRegion*> ParseRegion(std::span<const Arg> args, bool isolated);
  Status ParseBlocks(MlirRegion* region, std::span<const Arg> args, Labels& labels);
  Status AddArgs(MlirBlock* block, std::span<const Arg> args);
  void OpenScope(bool isolated);
  Status CloseScope(bool isolated);

  // ---- pretty forms (text_pretty.cc)
  Status ParseByFormat(OpState& state, std::string_view format);
  Status ParseFormatToken(OpState& state, std::string_view token);
  Status ParseFormatAttr(OpState& state, std::string_view kind, std::string_view name);
  Status ParseFormatTypes(OpState& state, std::string_view kind);
  Status ParseFormatCustom(OpState& state, std::string_view what, std::string_view name);
  Status TypesFromFunction(OpState& state, const MlirType& type, size_t pos);
  Status ParseSliceRanges(OpState& state);
  Status ParsePrecision(OpState& state, bool algorithm);
  Status ParseDotDimensions(OpState& state);
  Status ParseWindow(OpState& state);
  Status ParseExponentMantissa(OpState& state);

  // ---- ops with a form of their own (text_custom.cc)
  Status ParseCustomOp(OpState& state, std::string_view form);
  Status ParseModuleOp(OpState& state);
  Status ParseFuncOp(OpState& state);
  Status ParseFuncResults(std::vector<const MlirType*>& types, std::vector<const MlirAttr*>& attrs, bool& any);
  Status ParseConstantOp(OpState& state);
  Status ParseWhileOp(OpState& state);
  Status ParseReduceOp(OpState& state);
  Status ParseReducer(OpState& state);
  Status ParseScanOp(OpState& state);
  Result<MlirRegion*> MakeReducer(std::string_view op_name, const MlirType* type, std::string_view dialect,
                                  const MlirAttr* loc);

  struct Alias {
    size_t pos = 0, end = 0;  // of the definition's right side; end once it was read
    bool reading = false;
    const MlirAttr* attr = nullptr;
    const MlirType* type = nullptr;
  };
  void FindAliases();
  Status ParseAliasDefinition();

  MlirModule& m_;
  std::string_view text_;
  size_t pos_ = 0;
  std::string_view file_name_;
  int64_t first_line_;
  // Position and number of the last line that was asked for; operations come in order, so that lines are counted once.
  size_t line_pos_ = 0;
  int64_t line_ = 0;
  int depth_ = 0;
  std::unordered_map<std::string_view, Alias> aliases_;  // with the leading # or !
  std::unordered_map<std::string_view, const MlirAttr*> resources_;
  std::vector<Scope> scopes_;
  std::vector<std::string_view> default_dialects_;  // "func" inside a function: `return` for `func.return`
  std::vector<Labels*> labels_;
};

}  // namespace strop
