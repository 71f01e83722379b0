// PrintGeneric: operations in MLIR's generic form. Values are numbered in the order in which the text names them.

#include <algorithm>
#include <unordered_map>

#include "strop/import/mlir_ops.h"
#include "strop/import/mlir_print.h"

namespace strop {
namespace {

class Printer {
 public:
  explicit Printer(bool with_locations) : with_locations_(with_locations) {}

  void Op(const MlirOp& op, int indent) {
    out_.append(indent, ' ');
    if (!op.results.empty()) {
      StrAppend(out_, "%", ResultNumber(op));
      if (op.results.size() > 1) StrAppend(out_, ":", op.results.size());
      out_ += " = ";
    }
    AppendMlirString(out_, op.name);
    out_ += '(';
    for (size_t i = 0; i < op.operands.size(); ++i) {
      if (i) out_ += ", ";
      Value(*op.operands[i]);
    }
    out_ += ')';
    Successors(op);
    Attributes(op, true);
    if (!op.regions.empty()) {
      out_ += " (";
      for (size_t i = 0; i < op.regions.size(); ++i) {
        if (i) out_ += ", ";
        Region(*op.regions[i], indent);
      }
      out_ += ')';
    }
    Attributes(op, false);
    out_ += " : ";
    std::vector<const MlirType*> operands, results;
    for (const MlirValue* v : op.operands) operands.push_back(v->type);
    for (const MlirValue& v : op.results) results.push_back(v.type);
    AppendFunctionType(out_, operands, results);
    Location(op.loc);
    out_ += '\n';
  }

  std::string Take() { return std::move(out_); }

 private:
  void Value(const MlirValue& v) {
    if (v.op) {
      StrAppend(out_, "%", ResultNumber(*v.op));
      if (v.op->results.size() > 1) StrAppend(out_, "#", v.index);
    } else {
      StrAppend(out_, "%arg", ArgNumber(v));
    }
  }

  // Numbers are given where a value is first seen; a block may use what a later one defines.
  int ResultNumber(const MlirOp& op) { return results_.emplace(&op, static_cast<int>(results_.size())).first->second; }
  int ArgNumber(const MlirValue& v) { return args_.emplace(&v, static_cast<int>(args_.size())).first->second; }

  void Successors(const MlirOp& op) {
    if (op.successors.empty()) return;
    out_ += '[';
    for (size_t i = 0; i < op.successors.size(); ++i) {
      if (i) out_ += ", ";
      StrAppend(out_, "^bb", BlockNumber(*op.successors[i]));
    }
    out_ += ']';
  }

  static size_t BlockNumber(const MlirBlock& block) {
    for (size_t i = 0; block.parent && i < block.parent->blocks.size(); ++i) {
      if (block.parent->blocks[i] == &block) return i;
    }
    return 0;
  }

  static bool IsSuccessor(const MlirBlock& block) {
    for (const MlirBlock* other : block.parent->blocks)
      for (const MlirOp* op : other->ops)
        if (std::ranges::find(op->successors, &block) != op->successors.end()) return true;
    return false;
  }

  void Attributes(const MlirOp& op, bool properties) {
    bool first = true;
    for (const MlirNamedAttr& a : op.attrs) {
      if ((op.info && IsProperty(*op.info, a.name)) != properties) continue;
      out_ += first ? (properties ? " <{" : " {") : ", ";
      first = false;
      AppendNamedAttr(out_, a);
    }
    if (!first) out_ += properties ? "}>" : "}";
  }

  void Region(const MlirRegion& region, int indent) {
    out_ += "{\n";
    for (size_t b = 0; b < region.blocks.size(); ++b) {
      const MlirBlock& block = *region.blocks[b];
      if (b > 0 || !block.args.empty() || block.ops.empty() || IsSuccessor(block)) {
        out_.append(indent, ' ');
        StrAppend(out_, "^bb", b);
        if (!block.args.empty()) out_ += '(';
        for (size_t i = 0; i < block.args.size(); ++i) {
          StrAppend(out_, i ? ", " : "", "%arg", ArgNumber(*block.args[i]), ": ");
          AppendType(out_, *block.args[i]->type);
          Location(block.args[i]->loc);
        }
        if (!block.args.empty()) out_ += ')';
        out_ += ":\n";
      }
      for (const MlirOp* op : block.ops) Op(*op, indent + 2);
    }
    out_.append(indent, ' ');
    out_ += '}';
  }

  void Location(const MlirAttr* loc) {
    if (!with_locations_ || !loc) return;
    out_ += ' ';
    AppendAttr(out_, *loc);
  }

  std::string out_;
  bool with_locations_;
  std::unordered_map<const MlirOp*, int> results_;
  std::unordered_map<const MlirValue*, int> args_;
};

}  // namespace

std::string PrintGeneric(const MlirOp& op, bool with_locations) {
  Printer printer(with_locations);
  printer.Op(op, 0);
  return printer.Take();
}

}  // namespace strop
