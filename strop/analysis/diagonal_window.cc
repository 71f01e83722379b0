#include "strop/analysis/diagonal_window.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "strop/analysis/integer_range.h"
#include "strop/ir/module.h"

namespace strop {
namespace {

constexpr int kMostSteps = 256;                   // of a search; masks are a few instructions away
constexpr int64_t kMostShift = int64_t{1} << 31;  // of indices; sums of as many steps stay below kFar

// row * row index + column * column index + constant.
struct Line {
  int64_t row = 0, column = 0, constant = 0;
};

Line Plus(Line a, Line b, int64_t sign) {
  return {a.row + sign * b.row, a.column + sign * b.column, a.constant + sign * b.constant};
}

DiagonalWindow Intersection(DiagonalWindow a, DiagonalWindow b) {
  return {std::max(a.low, b.low), std::min(a.high, b.high)};
}
DiagonalWindow Hull(DiagonalWindow a, DiagonalWindow b) {
  if (a.low > a.high) return b;
  if (b.low > b.high) return a;
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}
constexpr DiagonalWindow kNothing{0, -1};

CompareDirection Opposite(CompareDirection direction) {
  switch (direction) {
    case CompareDirection::Eq: return CompareDirection::Ne;
    case CompareDirection::Ne: return CompareDirection::Eq;
    case CompareDirection::Ge: return CompareDirection::Lt;
    case CompareDirection::Gt: return CompareDirection::Le;
    case CompareDirection::Le: return CompareDirection::Gt;
    case CompareDirection::Lt: return CompareDirection::Ge;
  }
  return direction;
}

// Which dimensions of an array are the rows' and the columns'; -1: it has none.
struct Axes {
  int64_t row = -1, column = -1;
};

// The same of what a broadcast, or a change of shape by dimensions of one element, reads; none if it mixes dimensions.
std::optional<Axes> AxesOfOperand(const Instruction& i, Axes axes) {
  const Shape &from = i.operand(0)->shape(), &to = i.shape();
  Axes of_operand;
  if (i.op() == Op::Broadcast) {
    for (int64_t d = 0; d < from.rank(); ++d) {
      if (i.dimensions()[static_cast<size_t>(d)] == axes.row) of_operand.row = d;
      if (i.dimensions()[static_cast<size_t>(d)] == axes.column) of_operand.column = d;
    }
    return of_operand;
  }
  int64_t d = 0, e = 0;
  for (; d < from.rank() || e < to.rank(); ++d, ++e) {
    while (d < from.rank() && from.dim(d) == 1) ++d;
    while (e < to.rank() && to.dim(e) == 1) ++e;
    if (d == from.rank() || e == to.rank()) break;
    if (from.dim(d) != to.dim(e)) return std::nullopt;
    if (e == axes.row) of_operand.row = d;
    if (e == axes.column) of_operand.column = d;
  }
  if (d < from.rank() || e < to.rank()) return std::nullopt;
  return of_operand;
}

bool ChangesShape(Op op) { return op == Op::Broadcast || op == Op::Reshape; }

// What an array of integers is, if no operation on the way may leave its type. Takes from `steps` what it looks at.
std::optional<Line> LineOf(const Instruction& i, Axes axes, int& steps) {
  if (--steps < 0 || !RangeOf(i)) return std::nullopt;
  switch (i.op()) {
    case Op::Iota: {
      const int64_t d = i.attrs<IotaAttrs>().dimension;
      if (d == axes.row) return Line{1, 0, 0};
      if (d == axes.column) return Line{0, 1, 0};
      return std::nullopt;
    }
    case Op::Constant: {
      if (i.shape().num_elements() != 1) return std::nullopt;
      const int64_t value = i.literal().GetInt(0);
      if (value < -kMostShift || value > kMostShift) return std::nullopt;
      return Line{0, 0, value};
    }
    case Op::Broadcast:
    case Op::Reshape: {
      const std::optional<Axes> operand_axes = AxesOfOperand(i, axes);
      return operand_axes ? LineOf(*i.operand(0), *operand_axes, steps) : std::nullopt;
    }
    case Op::Convert:
      return IsInteger(i.operand(0)->shape().type()) ? LineOf(*i.operand(0), axes, steps) : std::nullopt;
    case Op::Add:
    case Op::Subtract: {
      const std::optional<Line> a = LineOf(*i.operand(0), axes, steps), b = LineOf(*i.operand(1), axes, steps);
      if (!a || !b) return std::nullopt;
      return Plus(*a, *b, i.op() == Op::Add ? 1 : -1);
    }
    default: return std::nullopt;
  }
}

// Where column - row + constant, or its negative, compares so with zero.
DiagonalWindow WindowOf(const Instruction& compare, bool value, Axes axes, int& steps) {
  const std::optional<Line> a = LineOf(*compare.operand(0), axes, steps);
  const std::optional<Line> b = LineOf(*compare.operand(1), axes, steps);
  if (!a || !b) return {};
  Line line = Plus(*a, *b, -1);
  CompareDirection direction = compare.attrs<CompareAttrs>().direction;
  if (!value) direction = Opposite(direction);
  if (line.row * line.column != -1) return {};
  if (line.column == -1) {
    line = Plus({}, line, -1);
    direction = direction == CompareDirection::Ge   ? CompareDirection::Le
                : direction == CompareDirection::Gt ? CompareDirection::Lt
                : direction == CompareDirection::Le ? CompareDirection::Ge
                : direction == CompareDirection::Lt ? CompareDirection::Gt
                                                    : direction;
  }
  const int64_t zero = -line.constant;
  switch (direction) {
    case CompareDirection::Ge: return {.low = zero};
    case CompareDirection::Gt: return {.low = zero + 1};
    case CompareDirection::Le: return {.high = zero};
    case CompareDirection::Lt: return {.high = zero - 1};
    case CompareDirection::Eq: return {zero, zero};
    case CompareDirection::Ne: return {};
  }
  return {};
}

// Where the predicate may be `value`.
DiagonalWindow WindowOfPredicate(const Instruction& predicate, bool value, Axes axes, int& steps) {
  if (--steps < 0) return {};
  switch (predicate.op()) {
    case Op::Compare:
      if (!IsInteger(predicate.operand(0)->shape().type())) return {};
      return WindowOf(predicate, value, axes, steps);
    case Op::Not: return WindowOfPredicate(*predicate.operand(0), !value, axes, steps);
    case Op::And:
    case Op::Or: {
      const DiagonalWindow a = WindowOfPredicate(*predicate.operand(0), value, axes, steps);
      const DiagonalWindow b = WindowOfPredicate(*predicate.operand(1), value, axes, steps);
      return (predicate.op() == Op::And) == value ? Intersection(a, b) : Hull(a, b);
    }
    default: break;
  }
  if (!ChangesShape(predicate.op())) return {};
  const std::optional<Axes> axes_of_operand = AxesOfOperand(predicate, axes);
  return axes_of_operand ? WindowOfPredicate(*predicate.operand(0), value, *axes_of_operand, steps) : DiagonalWindow();
}

class Readers {
 public:
  explicit Readers(Axes axes) : axes_(axes) {}

  DiagonalWindow Of(const Instruction& array) {
    if (--steps_ < 0) return {};
    DiagonalWindow window = kNothing;
    for (const Instruction* user : array.users()) window = Hull(window, OfUser(array, *user));
    if (!array.IsRoot()) return window;
    // The root of a fusion, as whoever reads the fusion sees it.
    const auto caller = callers_.find(array.parent());
    return caller == callers_.end() ? DiagonalWindow() : Hull(window, Of(*caller->second));
  }

 private:
  DiagonalWindow OfUser(const Instruction& array, const Instruction& user) {
    if (user.op() == Op::Fusion) {
      callers_[user.called(0)] = &user;
      DiagonalWindow window = kNothing;
      for (int64_t k = 0; k < user.operand_count(); ++k)
        if (user.operand(k) == &array) window = Hull(window, Of(*user.called(0)->parameters()[static_cast<size_t>(k)]));
      return window;
    }
    if (!user.shape().IsArray() || user.shape().dims() != array.shape().dims() || !IsElementwise(user.op())) return {};
    if (user.op() != Op::Select) return Of(user);
    if (user.operand(0) == &array || user.operand(1) == user.operand(2)) return {};
    return WindowOfPredicate(*user.operand(0), user.operand(1) == &array, axes_, steps_);
  }

  const Axes axes_;
  std::unordered_map<const Computation*, const Instruction*> callers_;  // of fusions on the way
  int steps_ = kMostSteps;
};

}  // namespace

DiagonalWindow WindowThatIsRead(const Instruction& array, int64_t row_dimension, int64_t column_dimension) {
  return Readers({row_dimension, column_dimension}).Of(array);
}

}  // namespace strop
