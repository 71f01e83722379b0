// The check.* family: a program that states what its own results are. Outcomes are collected in Interpreter::checks();
// a check that fails does not stop the program.
//   eq         every element compares equal: NaN equals nothing, -0 equals 0
//   almost_eq  both NaN, or equal, or both finite and |a - b| <= tolerance
//   close      distance in units in the last place at most max (and at least min); a non-finite value is only close to
//   itself
#include <cmath>
#include <limits>

#include "strop/interp/ops.h"
#include "strop/interp/ops/dictionary.h"

namespace strop::interp {

namespace {

enum class Check { Eq, AlmostEq, Close };

constexpr uint64_t kFarthest = std::numeric_limits<uint64_t>::max();

// Number of representable values between zero and |v|: the code without its sign.
uint64_t Rank(ElementType t, double v) {
  const uint64_t code = EncodeFloat(t, std::fabs(v));
  return FormatOf(t).bits == 64 ? code & ~(uint64_t{1} << 63) : code;
}
uint64_t UlpDistance(ElementType t, double a, double b) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return a == b ? 0 : kFarthest;
  const uint64_t x = Rank(t, a), y = Rank(t, b);
  if (std::signbit(a) != std::signbit(b)) return x + y;  // finite ranks are below 2^63
  return x > y ? x - y : y - x;
}
// 2^64 - 1 is written in the text as it is, and read as the double 2^64.
uint64_t UlpLimit(double number) {
  return number >= 0x1p64 ? kFarthest : number > 0 ? static_cast<uint64_t>(number) : 0;
}
bool AlmostEqual(double a, double b, double tolerance) {
  return (std::isnan(a) && std::isnan(b)) || a == b ||
         (std::isfinite(a) && std::isfinite(b) && std::fabs(a - b) <= tolerance);
}

struct Comparison {
  Check check;
  double tolerance = 0;
  uint64_t max_ulp = 0, min_ulp = 0;

  bool Parts(ElementType part, double a, double b) const {
    if (check == Check::AlmostEq) return AlmostEqual(a, b, tolerance);
    const uint64_t distance = UlpDistance(part, a, b);
    return distance <= max_ulp && distance >= min_ulp;
  }
  bool Elements(ElementType t, Cell a, Cell b) const {
    const Domain domain = DomainOf(t);
    if (check == Check::Eq || (domain != Domain::Real && domain != Domain::Complex))
      return CompareCells(domain, CompareDirection::Eq, CompareOrder::Default, a, b);
    if (domain == Domain::Real) return Parts(t, a.re, b.re);
    return Parts(ComplexPart(t), a.re, b.re) && Parts(ComplexPart(t), a.im, b.im);
  }
};

// Empty if every element agrees; otherwise which one does not.
std::string Difference(const Comparison& comparison, const Literal& actual, const Literal& expected) {
  if (!actual.shape().Compatible(expected.shape()))
    return StrCat("shapes differ: ", actual.shape().ToString(), " and ", expected.shape().ToString());
  for (int64_t i = 0; i < actual.num_elements(); ++i)
    if (!comparison.Elements(actual.type(), LoadCell(actual, i), LoadCell(expected, i)))
      return StrCat("element ", i, " is ", ElementToString(actual, i), ", expected ", ElementToString(expected, i));
  return "";
}

Result<Literal> Nothing(const OpCall& call) {
  if (call.shape.IsTuple()) return Literal::Tuple({});
  return call.shape.IsToken() ? Result<Literal>(Literal::Token()) : call.NewResult();
}

Result<Comparison> ComparisonOf(const OpCall& call) {
  const auto& a = call.attrs<CustomCallAttrs>();
  Comparison c{Check::Eq};
  if (a.target == "check.eq" && IsFloat(call.in(0).type())) {
    c.check = Check::AlmostEq;
    STROP_ASSIGN(c.tolerance, NumberOr(a.opaque, "tolerance", 1e-4));
  } else if (a.target == "check.expect_almost_eq") {
    c.check = Check::AlmostEq;
    STROP_ASSIGN(c.tolerance, NumberOr(a.opaque, "tolerance", 1e-3));
  } else if (a.target == "check.expect_close") {
    c.check = Check::Close;
    STROP_ASSIGN(double max_ulp, NumberOr(a.opaque, "max_ulp_difference", 3));
    STROP_ASSIGN(double min_ulp, NumberOr(a.opaque, "min_ulp_difference", 0));
    c.max_ulp = UlpLimit(max_ulp);
    c.min_ulp = UlpLimit(min_ulp);
  }
  return c;
}

}  // namespace

// Operands: actual, expected (check.eq the other way round, which only the message shows).
Result<Literal> EvalCheck(OpCall& call) {
  const auto& a = call.attrs<CustomCallAttrs>();
  if (call.operands.size() != 2 || !call.in(0).shape().IsArray() || !call.in(1).shape().IsArray())
    return InvalidArgument(a.target, " compares two arrays");
  STROP_ASSIGN(Comparison comparison, ComparisonOf(call));
  const bool reversed = a.target == "check.eq";
  CheckOutcome outcome{a.target, false, Difference(comparison, call.in(reversed ? 1 : 0), call.in(reversed ? 0 : 1))};
  outcome.passed = outcome.message.empty();
  call.evaluator.state().checks.push_back(outcome);
  if (IsPred(call.shape.type())) return Literal::Scalar<bool>(outcome.passed);
  return Nothing(call);
}

// Remembers its operand under probe_id, once more at each execution, and hands it on.
Result<Literal> EvalProbe(OpCall& call) {
  const std::string id(TextOr(call.attrs<CustomCallAttrs>().opaque, "probe_id", ""));
  call.evaluator.state().probes[id].push_back(call.in(0));
  return std::move(call.operands[0]);
}

// Compares with what probe_id saw at its iteration-th execution (counted from one; 0 and none mean the first).
Result<Literal> EvalExpectSerialized(OpCall& call) {
  const auto& a = call.attrs<CustomCallAttrs>();
  const std::string id(TextOr(a.opaque, "probe_id", ""));
  STROP_ASSIGN(double iteration, NumberOr(a.opaque, "iteration", 0));
  const std::vector<Literal>& seen = call.evaluator.state().probes[id];
  const size_t index = iteration >= 1 ? static_cast<size_t>(iteration) - 1 : 0;
  CheckOutcome outcome{a.target, false, ""};
  if (index >= seen.size())
    outcome.message = StrCat("probe '", id, "' has seen ", seen.size(), " values");
  else
    outcome.message = Difference(Comparison{Check::Eq}, seen[index], call.in(0));
  outcome.passed = outcome.message.empty();
  call.evaluator.state().checks.push_back(outcome);
  return Nothing(call);
}

// Shows its operand in the outcome list of no check: printing belongs to the host, which may ask for it with a
// custom_call hook.
Result<Literal> EvalPrint(OpCall& call) { return Nothing(call); }

}  // namespace strop::interp
