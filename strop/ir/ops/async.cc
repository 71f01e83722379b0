// Asynchronous pairs: async-start/-update/-done, copies, transfers between hosts and devices.
//
// An async value is a tuple ((operands), result, context...), of which contexts are the backend's own business.
#include "strop/ir/ops/infer.h"

namespace strop::infer {
namespace {

Status ExpectToken(const Args& args, int64_t i) {
  if (args.operand(i).IsToken()) return OkStatus();
  return args.Error("operand ", i, " must be a token, but is ", args.operand(i));
}

Status ExpectTuple(const Args& args, const Shape& shape, int64_t at_least, std::string_view what) {
  if (shape.IsTuple() && shape.tuple_size() >= at_least) return OkStatus();
  return args.Error(what, " must be a tuple of at least ", at_least, " elements, but is ", shape);
}

}  // namespace

Result<Shape> AsyncStart(const Args& args) {
  STROP_ASSIGN(Signature sig, SignatureOf(args, 0));
  const std::string& name = args.called[0]->name();
  if (static_cast<int64_t>(sig.parameters.size()) != args.operand_count())
    return args.Error("%", name, " takes ", sig.parameters.size(), " parameters, but gets ", args.operand_count());
  std::vector<Shape> operands;
  for (int64_t i = 0; i < args.operand_count(); ++i) {
    if (!ShapesAgree(*sig.parameters[i], args.operand(i)))
      return args.Error("parameter ", i, " of %", name, " is ", *sig.parameters[i], ", but operand ", i, " is ",
                        args.operand(i));
    operands.push_back(args.operand(i).WithoutLayout());
  }
  std::vector<Shape> elements = {Shape::Tuple(std::move(operands)), sig.result->WithoutLayout()};
  if (args.declared) {
    STROP_TRY(ExpectTuple(args, *args.declared, 2, "the result"));
    // The result's memory may be bound as late as at the async-done.
    if (args.declared->element(1) == Shape::Tuple({})) elements[1] = Shape::Tuple({});
    for (int64_t i = 2; i < args.declared->tuple_size(); ++i)
      elements.push_back(args.declared->element(i).WithoutLayout());
  }
  return Shape::Tuple(std::move(elements));
}

Result<Shape> AsyncUpdate(const Args& args) {
  if (args.operand_count() < 1) return args.Error("needs the async value");
  STROP_TRY(ExpectTuple(args, args.operand(0), 2, "the operand"));
  return args.operand(0).WithoutLayout();
}

Result<Shape> AsyncDone(const Args& args) {
  STROP_TRY(ExpectTuple(args, args.operand(0), 2, "the operand"));
  const Shape& result = args.operand(0).element(1);
  if (result == Shape::Tuple({}) && args.declared) return args.Declared();
  return result.WithoutLayout();
}

// (destination, source, context)
Result<Shape> CopyStart(const Args& args) {
  const Shape operand = args.operand(0).WithoutLayout();
  std::vector<Shape> elements = {operand, operand, Shape::Scalar(ElementType::U32)};
  if (args.declared) {
    STROP_TRY(ExpectTuple(args, *args.declared, 2, "the result"));
    elements.resize(2);
    for (int64_t i = 2; i < args.declared->tuple_size(); ++i)
      elements.push_back(args.declared->element(i).WithoutLayout());
  }
  return Shape::Tuple(std::move(elements));
}

Result<Shape> CopyDone(const Args& args) {
  STROP_TRY(ExpectTuple(args, args.operand(0), 2, "the operand"));
  return args.operand(0).element(0).WithoutLayout();
}

Result<Shape> Infeed(const Args& args) {
  STROP_TRY(ExpectToken(args, 0));
  STROP_ASSIGN(Shape result, args.Declared());
  if (!result.IsTuple() || result.tuple_size() != 2 || !result.element(1).IsToken())
    return args.Violates(3, "the result must be a tuple of the data and a token, but is ", result);
  return result;
}

Result<Shape> Outfeed(const Args& args) {
  STROP_TRY(ExpectToken(args, 1));
  return Shape::Token();
}

Result<Shape> Send(const Args& args) {
  STROP_TRY(ExpectToken(args, 1));
  return Shape::Tuple({args.operand(0).WithoutLayout(), Shape::Scalar(ElementType::U32), Shape::Token()});
}

Result<Shape> SendDone(const Args& args) {
  STROP_TRY(ExpectTuple(args, args.operand(0), 3, "the operand"));
  return Shape::Token();
}

Result<Shape> Recv(const Args& args) {
  STROP_TRY(ExpectToken(args, 0));
  STROP_ASSIGN(Shape result, args.Declared());
  STROP_TRY(ExpectTuple(args, result, 3, "the result"));
  if (result.tuple_size() != 3 || !result.element(2).IsToken())
    return args.Error("the result must be the data, a context and a token, but is ", result);
  return result;
}

Result<Shape> RecvDone(const Args& args) {
  STROP_TRY(ExpectTuple(args, args.operand(0), 3, "the operand"));
  return Shape::Tuple({args.operand(0).element(0).WithoutLayout(), Shape::Token()});
}

}  // namespace strop::infer
