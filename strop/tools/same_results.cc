#include "strop/tools/same_results.h"

#include <cmath>

#include "strop/interp/interpreter.h"
#include "strop/tools/inputs.h"
#include "strop/tools/stand_ins.h"

namespace strop::tools {
namespace {

// Loops of random arguments may never end: the state that both have after so many trips is compared first. Where that
// differs, as when passes unroll the loop, the loops must end by themselves, and within the larger number.
constexpr int64_t kFewTrips = 1 << 10;
constexpr int64_t kMostTrips = 1 << 20;

// What rounding in another order may change, relative to the larger value. Far above that of a few operations, far
// below what a wrong one gives.
double Tolerance(ElementType type) {
  const int64_t bits = IsComplex(type) ? Bits(type) / 2 : Bits(type);
  if (bits >= 64) return 1e-8;
  if (bits >= 32) return 1e-3;
  return bits >= 16 ? 6e-2 : 0.5;
}

bool Close(double was, double is, double tolerance) {
  if (was == is || (std::isnan(was) && std::isnan(is))) return true;
  if (!std::isfinite(was) || !std::isfinite(is)) return false;
  return std::abs(was - is) <= tolerance * (1 + std::max(std::abs(was), std::abs(is)));
}

std::string IndexOf(const Shape& shape, int64_t linear) {
  std::string out;
  for (int64_t d = shape.rank() - 1; d >= 0; --d) {
    out = StrCat(linear % shape.dim(d), out.empty() ? "" : ",", out);
    linear /= shape.dim(d);
  }
  return StrCat("{", out, "}");
}

std::string Differs(const Literal& was, const Literal& is) {
  if (was == is) return "";
  if (!was.shape().Compatible(is.shape())) return StrCat("is ", is.shape(), ", was ", was.shape());
  const ElementType type = was.type();
  const double tolerance = Tolerance(type);
  for (int64_t i = 0; i < was.num_elements(); ++i) {
    if (!IsFloat(type) && !IsComplex(type)) {
      if (was.GetInt(i) != is.GetInt(i))
        return StrCat("at ", IndexOf(was.shape(), i), " is ", is.GetInt(i), ", was ", was.GetInt(i));
    } else if (!Close(was.GetDouble(i), is.GetDouble(i), tolerance) ||
               (IsComplex(type) && !Close(was.GetImag(i), is.GetImag(i), tolerance))) {
      const auto text = [i, type](const Literal& value) {
        return IsComplex(type) ? StrCat("(", value.GetDouble(i), ", ", value.GetImag(i), ")")
                               : StrCat(value.GetDouble(i));
      };
      return StrCat("at ", IndexOf(was.shape(), i), " is ", text(is), ", was ", text(was));
    }
  }
  return "";
}

Result<Literal> Evaluate(const Module& module, std::span<const Literal> arguments, std::string_view which,
                         bool few_trips, StandIns& outside) {
  InterpretOptions options;
  outside.AddTo(options);
  options.max_loop_iterations = few_trips ? kFewTrips : kMostTrips;
  options.leaves_long_loops = few_trips;
  Interpreter interpreter(options);
  Result<Literal> value = interpreter.Evaluate(module, arguments);
  if (!value.ok()) return std::move(value).status().Note(StrCat("while evaluating the program ", which));
  return PadToBounds(*value, module.entry()->root()->shape());
}

}  // namespace

std::string FirstDifference(const Literal& was, const Literal& is) {
  const std::vector<Literal> old_arrays = ArraysOf(was), new_arrays = ArraysOf(is);
  if (old_arrays.size() != new_arrays.size())
    return StrCat("there are ", new_arrays.size(), " results, were ", old_arrays.size());
  for (size_t k = 0; k < old_arrays.size(); ++k) {
    const std::string difference = Differs(old_arrays[k], new_arrays[k]);
    if (!difference.empty()) return StrCat("result ", k, " ", difference);
  }
  return "";
}

Status CheckSameResults(const Module& before, const Module& after, uint64_t seed) {
  InputSource random;
  random.random = true;
  random.seed = seed;
  STROP_ASSIGN(const std::vector<Literal> arguments, MakeInputs(before, random));
  std::string difference;
  for (bool few_trips : {true, false}) {
    StandIns outside_before, outside_after;
    STROP_ASSIGN(const Literal was, Evaluate(before, arguments, "before", few_trips, outside_before));
    STROP_ASSIGN(const Literal is, Evaluate(after, arguments, "after", few_trips, outside_after));
    difference = FirstDifference(was, is);
    if (difference.empty()) difference = FirstDifference(outside_before.departures(), outside_after.departures());
    if (difference.empty()) return OkStatus();
  }
  return FailedPrecondition("the passes change what the program computes: ", difference);
}

}  // namespace strop::tools
