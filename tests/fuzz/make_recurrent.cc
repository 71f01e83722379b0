// Loops over steps of recurrent nets with products as large as real ones: what the library computes by several
// threads, what is made in front of the loop, and what a region computes itself. All numbers are small whole ones, so
// that sums are exact in any order and a difference is a mistake.
#include <algorithm>

#include "tests/fuzz/scope.h"

namespace strop::fuzz {
namespace {

constexpr int64_t kMaxProducts = 30'000'000;  // multiplications of a loop: the evaluator takes about a nanosecond each
constexpr int64_t kFirstResult = 5;           // in the loop's tuple, behind step, state, inputs and weights
constexpr double kLimit = 3;                  // of a state's numbers

class Cell {
 public:
  Cell(Scope& scope, ElementType type) : scope_(scope), random_(scope.random()), type_(type) {
    rows_ = random_.Pick(std::vector<int64_t>{1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48});
    inputs_ = random_.Pick(std::vector<int64_t>{16, 64, 100, 256, 512, 1000});
    units_ = random_.Pick(std::vector<int64_t>{16, 64, 100, 256, 512, 1024, 2048});
    gates_ = random_.Chance(60) ? 1 : random_.Between(int64_t{2}, int64_t{4});
    trips_ = random_.Between(int64_t{1}, int64_t{3});
    turned_ = random_.Chance(40);
    stacked_ = random_.Chance(60);
    backward_ = random_.Chance(40);
    while (Products() > kMaxProducts) units_ = std::max(units_ / 2, int64_t{16});
  }

  Instruction* Make() {
    Builder b(scope_.computation());
    std::vector<Instruction*> state = {b.Scalar(ElementType::S32, 0), Leaf({rows_, units_}),
                                       Leaf({trips_, rows_, inputs_}), Leaf(Weights(inputs_)), Leaf(Weights(units_))};
    if (stacked_) state.push_back(b.Splat(type_, 0, {trips_, rows_, units_}));
    if (backward_) state.push_back(b.Splat(type_, 0, {units_, units_}));
    Instruction* packed = b.Tuple(state);
    if (!b.status().ok()) return nullptr;
    Computation* const called[] = {Condition(packed->shape()), Body(packed->shape())};
    return called[1] ? b.Make(Op::While, std::span<Instruction* const>(&packed, 1), NoAttrs{}, called, nullptr)
                     : nullptr;
  }

  // Places in the loop's tuple: the last state, what was stacked, sums of outer products.
  std::vector<int64_t> Results() const {
    std::vector<int64_t> places = {1};
    for (int64_t i = 0; i < stacked_ + backward_; ++i) places.push_back(kFirstResult + i);
    return places;
  }

 private:
  int64_t Products() const {
    return rows_ * trips_ * units_ * (gates_ * (inputs_ + units_) + (backward_ ? 2 * units_ : 0));
  }
  Int64Vector Weights(int64_t from) const {
    return turned_ ? Int64Vector{gates_ * units_, from} : Int64Vector{from, gates_ * units_};
  }

  // -1, 0, 1 or 2 in place of any number.
  Instruction* Leaf(const Int64Vector& dims) {
    Computation* entry = scope_.computation();
    Builder b(entry);
    const int64_t number = entry->parameter_count();
    Instruction* x = entry->AddParameter(number, Shape::Array(type_, dims), StrCat("p", number));
    const auto beyond = [&](double bound, CompareDirection direction) {
      return b.Convert(b.Compare(x, b.Splat(type_, bound, dims), direction), type_);
    };
    return b.Make(Op::Subtract, {b.Make(Op::Add, {beyond(0, CompareDirection::Gt), beyond(1.5, CompareDirection::Gt)}),
                                 beyond(-1, CompareDirection::Lt)});
  }

  Computation* Condition(const Shape& state) {
    Computation* computation = scope_.NewComputation("steps_left");
    Builder b(computation);
    b.Compare(b.GetTupleElement(computation->AddParameter(0, state), 0),
              b.Scalar(ElementType::S32, static_cast<double>(trips_)), CompareDirection::Lt);
    return b.Finish().ok() ? computation : nullptr;
  }

  Instruction* Product(Builder& b, Instruction* x, Instruction* weights, bool turned) {
    DotAttrs attrs;
    attrs.lhs_contracting = {1};
    attrs.rhs_contracting = {turned ? 1 : 0};
    return b.Dot(x, weights, attrs, type_);
  }
  // Whole numbers no larger than the limit.
  Instruction* Squashed(Builder& b, Instruction* x, double by) {
    const Int64Vector dims = x->shape().dims();
    Instruction* small = b.Make(Op::Floor, {b.Make(Op::Multiply, {x, b.Splat(type_, by, dims)})});
    return b.Make(Op::Clamp, {b.Scalar(type_, -kLimit), small, b.Scalar(type_, kLimit)});
  }
  Instruction* Gate(Builder& b, Instruction* all, int64_t gate) {
    if (gates_ == 1) return all;
    return b.Slice(all, {0, gate * units_}, {rows_, (gate + 1) * units_}, {1, 1});
  }

  Instruction* Input(Builder& b, Instruction* inputs, Instruction* step) {
    Instruction* zero = b.Scalar(ElementType::S32, 0);
    DynamicSliceAttrs attrs;
    attrs.sizes = {1, rows_, inputs_};
    return b.Reshape(b.Make(Op::DynamicSlice, {inputs, step, zero, zero}, attrs), {rows_, inputs_});
  }

  Computation* Body(const Shape& state) {
    Computation* computation = scope_.NewComputation("step");
    Builder b(computation);
    Instruction* parameter = computation->AddParameter(0, state);
    std::vector<Instruction*> next;
    for (int64_t i = 0; i < state.tuple_size(); ++i) next.push_back(b.GetTupleElement(parameter, i));
    Instruction *step = next[0], *h = next[1];
    Instruction* all =
        b.Make(Op::Add, {Product(b, Input(b, next[2], step), next[3], turned_), Product(b, h, next[4], turned_)});
    if (!b.status().ok()) return nullptr;
    Instruction* mixed = Squashed(b, Gate(b, all, 0), 0.125);
    for (int64_t gate = 1; gate < gates_; ++gate)
      mixed = b.Make(Op::Add, {mixed, b.Make(Op::Multiply, {h, Squashed(b, Gate(b, all, gate), 0.0625)})});
    next[1] = Squashed(b, mixed, 1);
    next[0] = b.Make(Op::Add, {step, b.Scalar(ElementType::S32, 1)});
    Instruction* zero = b.Scalar(ElementType::S32, 0);
    if (stacked_)
      next[kFirstResult] = b.Make(Op::DynamicUpdateSlice,
                                  {next[kFirstResult], b.Reshape(next[1], {1, rows_, units_}), step, zero, zero});
    if (backward_) {
      DotAttrs over_rows;
      over_rows.lhs_contracting = {0};
      over_rows.rhs_contracting = {0};
      Instruction*& sums = next[kFirstResult + (stacked_ ? 1 : 0)];
      sums = b.Make(Op::Add, {sums, b.Dot(h, next[1], over_rows, type_)});
    }
    b.Tuple(next);
    return b.Finish().ok() ? computation : nullptr;
  }

  Scope& scope_;
  Random& random_;
  ElementType type_;
  int64_t rows_, inputs_, units_, gates_, trips_;
  bool turned_, stacked_, backward_;
};

}  // namespace

bool MakeRecurrent(Scope& scope) {
  static constexpr ElementType kTypes[] = {ElementType::F32,  ElementType::F32, ElementType::F32,
                                           ElementType::BF16, ElementType::F64, ElementType::F16};
  Cell cell(scope, kTypes[scope.random().Below(std::size(kTypes))]);
  Instruction* loop = cell.Make();
  if (!loop) return false;
  Builder b(scope.computation());
  for (int64_t place : cell.Results()) scope.AddValue(b.GetTupleElement(loop, place));
  return b.status().ok();
}

}  // namespace strop::fuzz
