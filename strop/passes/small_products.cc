// Batches of products of a few terms, and of a few rows by columns or of columns by a few rows, are sums of products of
// elements:
//
//   dot(f32[1000,3,3] %a, f32[1000,3,3] %b), lhs_batch_dims={0}, rhs_batch_dims={0}
//   ->  broadcast(%a[:,:,0]) * broadcast(%b[:,0,:]) + broadcast(%a[:,:,1]) * broadcast(%b[:,1,:]) + ...
//
// A product of 2 x 2 is less work than the call that computes it. As arithmetic it is vectors over rows, columns and
// members of the batch, at known places of each other (docs/adr/0025), and kernels of it take in what it is computed
// from and what is computed from it: rotations, small systems, scans over matrices. Points by rotations, too: a row of
// a few columns fills no vector by itself, but all elements of a product, or of many, do (20x3 by 3x3 took 100 ns, now
// 17). Complex products are so without a batch, too: gates of a few states that are applied to a register of them.
#include <algorithm>
#include <array>

#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kMostOfSide = 4;         // rows or columns
constexpr int64_t kMostOfOtherSide = 512;  // columns or rows
constexpr int64_t kMostTerms = 8;
constexpr int64_t kMostTermsOfFew = 16;  // where neither are more than kMostOfSide, of numbers that nothing converts
// Of rows by so many columns, each term is a vector: the library multiplies them as fast where they are read again.
constexpr int64_t kMostWideProducts = 16;  // terms times rows
constexpr int64_t kFewestElements = 16;    // of the result
// As many terms are less work than to write the product and to read it again, whatever the sides: a vector of it is one
// row's numbers by as many vectors of columns. Of less than so many elements the library's is there without compiling.
constexpr int64_t kTermsOfAny = 4, kFewestOfAny = 512;
constexpr int64_t kTermsOfPairs = 2;     // of more, what lies apart is put together for each row
constexpr int64_t kFewestComplex = 256;  // of a complex one

bool IsFloatOrBrain(ElementType type) {
  return type == ElementType::F32 || type == ElementType::F64 || type == ElementType::BF16 || type == ElementType::F16;
}

// Are numbers of type `from` numbers of type `to` as well?
bool Holds(ElementType to, ElementType from) {
  return (IsComplex(to) && to == from) || (IsFloatOrBrain(to) && IsFloatOrBrain(from) && Bits(from) <= Bits(to)) ||
         (IsInteger(to) && IsInteger(from) && Bits(from) <= Bits(to));
}

// In which type products of this type are summed. Integers wrap, the small ones with any bits above: they are
// multiplied as integers of 16 bits at least.
ElementType SumType(ElementType type) {
  if (IsFloat(type) && Bits(type) < 32) return ElementType::F32;
  if (IsInteger(type) && Bits(type) < 16) return IsSigned(type) ? ElementType::S16 : ElementType::U16;
  return type;
}

class Expander {
 public:
  explicit Expander(Instruction* dot) : dot_(dot), attrs_(dot->attrs<DotAttrs>()), b_(dot->parent()) {}

  bool Run() {
    if (!IsSmall()) return false;
    b_.set_insert_before(dot_);
    if (dot_->has_metadata()) b_.set_metadata(dot_->shared_metadata());
    const ElementType type = dot_->shape().type(), wide = SumType(type);
    Instruction* sides[2];
    for (int64_t k = 0; k < 2; ++k) sides[k] = b_.Convert(dot_->operand(k), wide);
    const int64_t terms = Terms();
    Instruction* sum = nullptr;
    for (int64_t t = 0; t < terms; ++t) {
      Instruction* product = b_.Make(Op::Multiply, {Term(sides[0], 0, t), Term(sides[1], 1, t)});
      sum = sum ? b_.Make(Op::Add, {sum, product}) : product;
    }
    sum = b_.Convert(sum, type);
    if (!b_.status().ok()) return false;
    dot_->parent()->Replace(dot_, sum);
    return true;
  }

 private:
  const Dims& Batch(int64_t k) const { return k == 0 ? attrs_.lhs_batch : attrs_.rhs_batch; }
  const Dims& Contracting(int64_t k) const { return k == 0 ? attrs_.lhs_contracting : attrs_.rhs_contracting; }
  int64_t Terms() const {
    int64_t terms = 1;
    for (int64_t d : attrs_.lhs_contracting) terms *= dot_->operand(0)->shape().dim(d);
    return terms;
  }

  bool MembersLieSideBySide() const {
    for (int64_t k = 0; k < 2; ++k)
      if (Contains(Batch(k), dot_->operand(k)->shape().rank() - 1)) return true;
    return false;
  }

  // In memory, of the right side.
  bool ColumnsAreNeighbours() const {
    const Instruction& side = *dot_->operand(1);
    int64_t last = side.shape().rank() - 1;
    if (side.op() == Op::Transpose) last = std::ranges::find(side.dimensions(), last) - side.dimensions().begin();
    return !Contains(Contracting(1), last);
  }

  bool IsSmall() const {
    const Shape& shape = dot_->shape();
    if (dot_->operand_count() != 2 || !shape.IsStatic() || !attrs_.algorithm.empty()) return false;
    const bool complex = IsComplex(shape.type());
    if (!IsFloatOrBrain(shape.type()) && !(IsInteger(shape.type()) && Bits(shape.type()) >= 32) && !complex)
      return false;
    if (dot_->HasControlEdges() || dot_->sharding() || attrs_.lhs_contracting.empty()) return false;
    const bool batched = !attrs_.lhs_batch.empty() || IsInteger(shape.type());
    const int64_t terms = Terms();
    const bool any = !complex && terms <= kTermsOfAny && shape.num_elements() >= kFewestOfAny;
    if (!complex && !batched && !any) return false;
    int64_t free[2] = {1, 1};
    bool converted = false;
    for (int64_t k = 0; k < 2; ++k) {
      const Shape& side = dot_->operand(k)->shape();
      if (!Holds(SumType(shape.type()), side.type()) || !side.IsStatic() || side.num_elements() == 0) return false;
      converted |= side.type() != SumType(shape.type());
      for (int64_t d = 0; d < side.rank(); ++d)
        if (!Contains(Contracting(k), d) && !Contains(Batch(k), d)) free[k] *= side.dim(d);
    }
    const auto [few, most] = std::minmax(free[0], free[1]);
    // A gate that is applied to a state.
    if (complex) return few <= kMostOfSide && terms <= kMostOfSide && shape.num_elements() >= kFewestComplex;
    if (any && (terms <= kTermsOfPairs || (ColumnsAreNeighbours() && !converted)) && !MembersLieSideBySide())
      return true;
    if (!complex && !batched) return false;
    // (Of integers the library has no fast products by so few, however many there are of the others.)
    if (few > kMostOfSide || (most > kMostOfOtherSide && !IsInteger(shape.type()))) return false;
    if (most > kMostOfSide || terms > kMostOfSide) {
      // What SideBySide does better.
      if (MembersLieSideBySide() || (few == 1 && terms <= kMostOfSide)) return false;
    }
    if (terms > (most <= kMostOfSide && !converted ? kMostTermsOfFew : kMostTerms)) return false;
    if (free[1] > kMostOfSide && terms * free[0] > kMostWideProducts) return false;
    return shape.num_elements() >= kFewestElements;
  }

  // Of operand k, the elements of one term, spread over the result. They are taken from where they lie.
  Instruction* Term(Instruction* side, int64_t k, int64_t term) {
    const Shape& shape = side->shape();
    const Dims& contracting = Contracting(k);
    const int64_t rank = shape.rank();
    Dims lies;  // which dimension of the operand each one of memory is
    const bool turned = side->op() == Op::Transpose;
    for (int64_t d = 0; d < rank; ++d) lies.push_back(d);
    for (int64_t d = 0; turned && d < rank; ++d) lies[side->dimensions()[d]] = d;
    Dims at(static_cast<size_t>(rank), -1);  // the index of what is summed
    for (size_t n = contracting.size(); n-- > 0; term /= shape.dim(contracting[n]))
      at[contracting[n]] = term % shape.dim(contracting[n]);
    // Free dimensions come behind the batch in the result, those of the left side first.
    const auto sums = static_cast<int64_t>(contracting.size()), batch = static_cast<int64_t>(Batch(k).size());
    const int64_t free = k == 1 ? dot_->shape().rank() - (rank - batch - sums) : batch;
    Dims order;  // of what is left of the operand, by its place in the result
    for (int64_t d : Batch(k)) order.push_back(d);
    for (int64_t d = 0; d < rank; ++d)
      if (at[d] < 0 && !Contains(Batch(k), d)) order.push_back(d);
    Dims start, limit, to;
    Int64Vector dims;
    for (int64_t d : lies) {
      start.push_back(std::max<int64_t>(at[d], 0));
      limit.push_back(at[d] < 0 ? shape.dim(d) : at[d] + 1);
      if (at[d] >= 0) continue;
      dims.push_back(shape.dim(d));
      const auto place = std::ranges::find(order, d) - order.begin();
      to.push_back(place < batch ? place : free + (place - batch));
    }
    const Dims stride(static_cast<size_t>(rank), 1);
    Instruction* taken = b_.Reshape(b_.Slice(turned ? side->operand(0) : side, start, limit, stride), dims);
    if (!std::ranges::is_sorted(to)) {
      Dims permutation;
      for (int64_t n = 0; n < static_cast<int64_t>(to.size()); ++n) permutation.push_back(n);
      std::ranges::sort(permutation, [&](int64_t x, int64_t y) { return to[x] < to[y]; });
      taken = b_.Transpose(taken, permutation);
      std::ranges::sort(to);
    }
    return b_.Broadcast(taken, dot_->shape().dims(), to);
  }

  Instruction* dot_;
  const DotAttrs attrs_;
  Builder b_;
};

// Batches of matrices by vectors, as sums of products of elements in the order in which the matrices lie:
//
//   dot(f32[100,9,300] %a, f32[300,9] %x), lhs_batch_dims={2}, rhs_batch_dims={0}, ...
//   ->  transpose(reduce(multiply(%a, broadcast(transpose(%x))), dimensions={1}))
//
// Members of the batch that lie side by side in memory, the batch being the last dimension, are lanes then; sums of
// a few terms are less work than a call; and the library has no loops along complex vectors, nor along those of small
// integers, batch or no batch. Other products whose members lie side by side would read matrices element by element:
// such a side is transposed first.
class SideBySide {
 public:
  explicit SideBySide(Instruction* dot) : dot_(dot), attrs_(dot->attrs<DotAttrs>()), b_(dot->parent()) {}

  bool Run() {
    if (dot_->operand_count() != 2 || !attrs_.algorithm.empty()) return false;
    if (attrs_.lhs_batch.empty() && !IsOfSmallIntegers()) return false;
    if (!dot_->shape().IsStatic() || !Side(0).IsStatic() || !Side(1).IsStatic() || dot_->shape().num_elements() == 0)
      return false;
    if (dot_->HasControlEdges() || dot_->sharding()) return false;
    b_.set_insert_before(dot_);
    if (dot_->has_metadata()) b_.set_metadata(dot_->shared_metadata());
    for (int64_t k = 0; k < 2; ++k)
      if (IsVector(1 - k) && SumsPay(k)) return SumProducts(k);
    bool changed = false;
    for (int64_t k = 0; k < 2; ++k)
      if (Lies(k)) changed |= Transpose(k);
    return changed;
  }

 private:
  static constexpr int64_t kFewestMembers = 8;
  static constexpr int64_t kMostComplex = 1 << 14;  // elements of a matrix
  static constexpr int64_t kMostTerms = 4, kMostOfHalf = 32;
  // Columns or rows of matrices: a product's tiles would be empty for the most part.
  static constexpr int64_t kFewColumns = 4, kSomeColumns = 16, kFewTerms = 16, kManyTerms = 4096;

  static bool IsRealNumber(ElementType type) { return IsFloatOrBrain(type) || (IsInteger(type) && Bits(type) >= 32); }
  bool IsOfSmallIntegers() const {
    if (!IsInteger(dot_->shape().type()) || Bits(dot_->shape().type()) < 8) return false;
    return std::ranges::all_of(dot_->operands(), [](const Instruction* x) {
      return IsInteger(x->shape().type()) && Bits(x->shape().type()) <= 16;
    });
  }
  const Shape& Side(int64_t k) const { return dot_->operand(k)->shape(); }
  const Dims& Batch(int64_t k) const { return k == 0 ? attrs_.lhs_batch : attrs_.rhs_batch; }
  const Dims& Contracting(int64_t k) const { return k == 0 ? attrs_.lhs_contracting : attrs_.rhs_contracting; }
  Dims Free(int64_t k) const {
    Dims free;
    for (int64_t d = 0; d < Side(k).rank(); ++d)
      if (!Contains(Batch(k), d) && !Contains(Contracting(k), d)) free.push_back(d);
    return free;
  }
  bool IsVector(int64_t k) const { return Free(k).empty(); }

  int64_t MatrixElements(int64_t k) const {
    int64_t elements = 1;
    for (int64_t d = 0; d < Side(k).rank(); ++d)
      if (!Contains(Batch(k), d)) elements *= Side(k).dim(d);
    return elements;
  }
  int64_t Members() const {
    int64_t members = 1;
    for (int64_t d : Batch(0)) members *= Side(0).dim(d);
    return members;
  }

  // Do members lie side by side?
  bool Lies(int64_t k) const {
    const int64_t last = Side(k).rank() - 1;
    return last >= 0 && Contains(Batch(k), last) && Side(k).dim(last) >= kFewestMembers && MatrixElements(k) > 1;
  }

  // For matrices of side k, by vectors.
  bool SumsPay(int64_t k) const {
    const ElementType type = dot_->shape().type();
    if (IsOfSmallIntegers()) return true;
    if (Members() < kFewestMembers) return false;
    if (IsComplex(type)) return Side(0).type() == type && Side(1).type() == type && MatrixElements(k) <= kMostComplex;
    if (!IsRealNumber(type)) return false;
    if (Lies(k)) return true;
    const Dims& summed = Contracting(k);
    if (!IsFloatOrBrain(type) || summed.size() != 1) return false;
    const int64_t terms = Side(k).dim(summed[0]), columns = MatrixElements(k) / std::max<int64_t>(terms, 1);
    if (terms <= kMostTerms || columns <= kFewColumns) return true;
    const bool reads_on = summed[0] != Side(k).rank() - 1;  // one row after the other
    if (columns <= kSomeColumns && (terms <= kFewTerms || (reads_on && terms >= kManyTerms))) return true;
    return Bits(type) < 32 && MatrixElements(k) <= kMostOfHalf && summed[0] == Side(k).rank() - 1;
  }

  bool SumProducts(int64_t k) {
    const ElementType type = dot_->shape().type(), wide = SumType(type);
    // The vectors' dimensions where the matrices have them.
    Dims places;
    for (int64_t d = 0; d < Side(1 - k).rank(); ++d) {
      const auto batch = std::ranges::find(Batch(1 - k), d), summed = std::ranges::find(Contracting(1 - k), d);
      places.push_back(batch != Batch(1 - k).end()
                           ? Batch(k)[static_cast<size_t>(batch - Batch(1 - k).begin())]
                           : Contracting(k)[static_cast<size_t>(summed - Contracting(1 - k).begin())]);
    }
    Instruction* vectors = Ordered(b_.Convert(dot_->operand(1 - k), wide), places);
    std::ranges::sort(places);
    Instruction* products =
        b_.Make(Op::Multiply, {b_.Convert(dot_->operand(k), wide), b_.Broadcast(vectors, Side(k).dims(), places)});
    Computation* sum = dot_->parent()->module()->AddComputation("sum");
    const Shape scalar = Shape::Array(wide, {});
    Instruction *left = sum->AddParameter(0, scalar), *right = sum->AddParameter(1, scalar);
    sum->set_root(sum->Add(Op::Add, scalar, {left, right}));
    Dims summed = Contracting(k);
    std::ranges::sort(summed);
    Instruction* sums = b_.Convert(b_.Reduce(products, b_.Scalar(wide, 0), summed, sum), type);
    // What is left of the matrices, to its place in the result: the batch, and what is free behind it.
    const Dims free = Free(k);
    places.clear();
    for (int64_t d = 0; d < Side(k).rank(); ++d) {
      if (Contains(summed, d)) continue;
      const auto batch = std::ranges::find(Batch(k), d);
      places.push_back(batch != Batch(k).end()
                           ? batch - Batch(k).begin()
                           : static_cast<int64_t>(Batch(k).size()) + (std::ranges::find(free, d) - free.begin()));
    }
    sums = Ordered(sums, places);
    if (!b_.status().ok()) return false;
    dot_->parent()->Replace(dot_, sums);
    return true;
  }

  // Transposed so that `places` of its dimensions ascend.
  Instruction* Ordered(Instruction* x, const Dims& places) {
    if (std::ranges::is_sorted(places)) return x;
    Dims permutation;
    for (int64_t n = 0; n < static_cast<int64_t>(places.size()); ++n) permutation.push_back(n);
    std::ranges::sort(permutation, [&](int64_t x, int64_t y) { return places[x] < places[y]; });
    return b_.Transpose(x, permutation);
  }

  // To the batch, what is free, what is summed; for rhs, the other way round.
  bool Transpose(int64_t k) {
    Dims permutation = Batch(k);
    const Dims free = Free(k), summed = Contracting(k);
    for (const Dims* dims : k == 0 ? std::array{&free, &summed} : std::array{&summed, &free})
      permutation.insert(permutation.end(), dims->begin(), dims->end());
    Instruction* transposed = b_.Transpose(dot_->operand(k), permutation);
    Dims batch, contracting;
    for (int64_t d : Batch(k)) batch.push_back(std::ranges::find(permutation, d) - permutation.begin());
    for (int64_t d : summed) contracting.push_back(std::ranges::find(permutation, d) - permutation.begin());
    if (!b_.status().ok()) return false;
    dot_->SetOperand(k, transposed);
    (k == 0 ? attrs_.lhs_batch : attrs_.rhs_batch) = batch;
    (k == 0 ? attrs_.lhs_contracting : attrs_.rhs_contracting) = contracting;
    dot_->set_attrs(attrs_);
    return true;
  }

  Instruction* dot_;
  DotAttrs attrs_;
  Builder b_;
};

struct SmallProducts final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t expanded = 0, turned = 0;
    for (Computation* c : module.PostOrder()) {
      std::vector<Instruction*> dots;
      for (Instruction* i : c->instructions())
        if (i->op() == Op::Dot) dots.push_back(i);
      for (Instruction* dot : dots) {
        if (Expander(dot).Run())
          ++expanded;
        else
          turned += SideBySide(dot).Run();
      }
    }
    context.Count("small-products.side-by-side", turned);
    context.Count("small-products.expanded", expanded);
    return expanded + turned > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeSmallProducts() { return std::make_unique<SmallProducts>(); }

}  // namespace strop
