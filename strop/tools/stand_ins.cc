#include "strop/tools/stand_ins.h"

#include <algorithm>
#include <cmath>

#include "strop/base/hash.h"
#include "strop/tools/inputs.h"
#include "strop/tools/same_results.h"

namespace strop::tools {
namespace {

uint64_t HashOf(std::string_view text) {
  Fnv1a hash;
  hash.Add(text);
  return hash.value();
}

// The last steps of SplitMix64, for one of many numbers that belong to `seed`.
uint64_t Mixed(uint64_t seed, uint64_t number) {
  uint64_t x = seed + (number + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// 0.5 to 1 with a sign: no element goes unseen, and two that are swapped change the sum.
double Weight(uint64_t seed, int64_t element) {
  const uint64_t word = Mixed(seed, element);
  const double size = 0.5 + static_cast<double>(word >> 12) * 0x1p-53;
  return word & 1 ? size : -size;
}

// Grows slowly, and by no more than x does: a change of large values in proportion stays one, an error does not grow.
double Softened(double x) {
  constexpr double kInfinite = 1000;  // past that of every finite number, 710
  if (std::isnan(x)) return -kInfinite / 2;
  if (std::isinf(x)) return std::copysign(kInfinite, x);
  return std::copysign(std::log1p(std::abs(x)), x);
}

// Adds each element of one operand to at least one of the sums, and to each sum at least one element.
void AddWeighted(const Literal& operand, uint64_t seed, double scale, std::vector<double>& sums) {
  const int64_t count = operand.num_elements(), results = std::ssize(sums);
  if (count == 0 || results == 0) return;
  const bool complex = IsComplex(operand.type());
  const double share = scale / std::sqrt(static_cast<double>((count + results - 1) / results));
  for (int64_t n = 0; n < std::max(count, results); ++n) {
    double value = Softened(operand.GetDouble(n % count)) * Weight(seed, n);
    if (complex) value += Softened(operand.GetImag(n % count)) * Weight(~seed, n);
    sums[n % results] += share * value;
  }
}

// Adds what the operands make of each element to `answer`, an array of floats or of complex numbers.
void AddOperands(std::span<const Literal> operands, uint64_t seed, Literal& answer) {
  const int64_t count = answer.num_elements();
  std::vector<double> sums(IsComplex(answer.type()) ? 2 * count : count);
  const double scale = 1 / std::sqrt(static_cast<double>(std::max<size_t>(operands.size(), 1)));
  for (size_t k = 0; k < operands.size(); ++k) AddWeighted(operands[k], Mixed(seed, k), scale, sums);
  for (int64_t n = 0; n < count; ++n) {
    if (IsComplex(answer.type())) {
      answer.SetComplex(n, answer.GetComplex(n) + std::complex<double>(sums[2 * n], sums[2 * n + 1]));
    } else {
      answer.SetDouble(n, answer.GetDouble(n) + sums[n]);
    }
  }
}

bool HasFloats(const Shape& shape) { return shape.IsArray() && (IsFloat(shape.type()) || IsComplex(shape.type())); }

// What a call answers. Floats are continuous in the operands' floats and change with each of their elements; everything
// changes wholly with any other operand. Integers cannot be continuous: with floats they change, wholly too, only where
// the call answers no floats that would.
class Answer {
 public:
  Answer(std::string what, std::span<const Literal> operands) : call_(std::move(what)) {
    for (const Literal& operand : operands)
      for (Literal& array : ArraysOf(operand)) {
        const bool is_float = HasFloats(array.shape());
        StrAppend(call_, ";", array.shape().WithoutLayout());
        StrAppend(values_, ";", array.Hash());
        if (!is_float) StrAppend(call_, ";", array.Hash());
        if (is_float) floats_.push_back(std::move(array));
      }
  }

  Result<Literal> Of(const Shape& shape) const {
    const std::vector<Shape> leaves = shape.Leaves();
    return Of(shape, std::any_of(leaves.begin(), leaves.end(), HasFloats));
  }

 private:
  // An element of a tuple's.
  Answer(const Answer& whole, size_t element) : Answer(whole) { StrAppend(call_, "/", element); }

  Result<Literal> Of(const Shape& shape, bool floats_show_it) const {
    if (shape.IsTuple()) {
      std::vector<Literal> elements;
      for (const Shape& element : shape.elements()) {
        STROP_ASSIGN(Literal value, Answer(*this, elements.size()).Of(element, floats_show_it));
        elements.push_back(std::move(value));
      }
      return Literal::Tuple(std::move(elements));
    }
    const uint64_t seed = HashOf(floats_show_it ? call_ : StrCat(call_, values_));
    STROP_ASSIGN(Literal value, RandomValue(shape, seed));
    if (HasFloats(shape)) AddOperands(floats_, seed, value);
    return value;
  }

  std::string call_, values_;
  std::vector<Literal> floats_;
};

}  // namespace

void StandIns::AddTo(InterpretOptions& options) {
  options.rng_repeats = true;
  options.custom_call = [this](const Instruction& i, std::span<const Literal> operands, Literal* result) {
    return CustomCall(i, operands, result);
  };
  options.communicate = [this](const Instruction& i, std::span<const Literal> operands, Literal* result) {
    return Communicate(i, operands, result);
  };
  options.absent_others = [this](const Instruction& i, std::span<const Literal> operands, Literal* result) {
    return AbsentOthers(i, operands, result);
  };
  options.infeed = [this](const Instruction& i, std::span<const Literal>, Literal* result) {
    STROP_ASSIGN(*result, RandomValue(i.shape(), ++fed_));
    return OkStatus();
  };
  options.outfeed = [this](const Instruction&, std::span<const Literal> operands, Literal* result) {
    Leave("outfeed", operands);
    *result = Literal::Token();
    return OkStatus();
  };
}

Status StandIns::CustomCall(const Instruction& i, std::span<const Literal> operands, Literal* result) {
  const auto& attrs = i.attrs<CustomCallAttrs>();
  if (attrs.has_side_effect) Leave(StrCat("custom call ", attrs.target), operands);
  STROP_ASSIGN(*result, Answer(StrCat(attrs.target, ";", attrs.opaque), operands).Of(i.shape()));
  return OkStatus();
}

// Of a collective that starts the answer is what its end gives: passes make the two one.
Status StandIns::AbsentOthers(const Instruction& i, std::span<const Literal> operands, Literal* result) {
  const bool starts = i.op() == Op::AllGatherStart || i.op() == Op::CollectivePermuteStart;
  const Shape& shape = starts && i.shape().IsTuple() ? i.shape().element(1) : i.shape();
  STROP_ASSIGN(*result, Answer("others", operands).Of(shape));
  return OkStatus();
}

Status StandIns::Communicate(const Instruction& i, std::span<const Literal> operands, Literal* result) {
  const int64_t channel = i.attrs<ChannelAttrs>().channel_id;
  if (i.op() == Op::Send) {
    Leave(StrCat("send on channel ", channel), operands.first(1));
    *result = Literal::Token();
    return OkStatus();
  }
  STROP_ASSIGN(*result, RandomValue(i.shape().element(0), HashOf(StrCat(channel, ";", received_[channel]++))));
  return OkStatus();
}

void StandIns::Leave(std::string what, std::span<const Literal> values) {
  departures_.push_back({std::move(what), {values.begin(), values.end()}});
}

std::string FirstDifference(const std::vector<StandIns::Departure>& was, const std::vector<StandIns::Departure>& is) {
  for (size_t k = 0; k < std::min(was.size(), is.size()); ++k) {
    const std::string where = StrCat("departure ", k, " (", was[k].what, ") ");
    if (was[k].what != is[k].what) return StrCat(where, "is ", is[k].what);
    if (was[k].values.size() != is[k].values.size())
      return StrCat(where, "carries ", is[k].values.size(), " values, were ", was[k].values.size());
    for (size_t v = 0; v < was[k].values.size(); ++v) {
      const std::string difference = FirstDifference(was[k].values[v], is[k].values[v]);
      if (!difference.empty()) return StrCat(where, difference);
    }
  }
  if (was.size() != is.size()) return StrCat("there are ", is.size(), " departures, were ", was.size());
  return "";
}

}  // namespace strop::tools
