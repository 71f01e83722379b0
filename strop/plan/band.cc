#include "strop/plan/band.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <unordered_set>
#include <utility>

#include "strop/plan/plan.h"
#include "strop/plan/values.h"

namespace strop {
namespace {

constexpr int64_t kBlockBytes = int64_t{256} << 10;  // of the values inside: they share the cache with what is read
constexpr int64_t kLeastBlock = 8;                   // rows, where a product has as many
constexpr int64_t kTasks = 16;                       // enough to be even among threads
constexpr int kMostSteps = 256;                      // of one search backwards; bands are a few dozen instructions

constexpr int64_t kOutside = 0;  // width of what does not depend on the rows
constexpr int64_t kMixed = -1;   // of what is not computed row by row

using Widths = std::unordered_map<const Instruction*, int64_t>;
using WidthOf = std::function<int64_t(const Instruction&)>;

bool PassesOn(Op op) { return op == Op::Reshape || op == Op::Bitcast; }
bool IsRowMajor(const Shape& shape) { return !shape.has_layout() || shape.layout().IsRowMajor(); }

// How many dimensions, from the first on, make the rows; -1: none do.
int64_t LeadingDims(const Shape& shape, int64_t rows) {
  int64_t product = 1, d = 0;
  while (product < rows && d < shape.rank()) product *= shape.dim(d++);
  return product == rows ? d : -1;
}

bool KeepsRows(const Instruction& broadcast, int64_t rows) {
  const Shape &from = broadcast.operand(0)->shape(), &to = broadcast.shape();
  const int64_t from_lead = LeadingDims(from, rows), to_lead = LeadingDims(to, rows);
  if (from_lead < 0 || to_lead < 0) return false;
  int64_t next = 0;  // dimension of the result
  for (int64_t d = 0; d < from.rank(); ++d) {
    const int64_t at = broadcast.dimensions()[static_cast<size_t>(d)];
    if ((d < from_lead) != (at < to_lead)) {
      if (from.dim(d) == 1) continue;
      return false;
    }
    if (d >= from_lead) continue;
    while (next < at && to.dim(next) == 1) ++next;
    if (at != next || from.dim(d) != to.dim(at)) return false;
    ++next;
  }
  return true;
}

// Are the rows of the operand reduced, each by itself?
bool ReducesWithinRows(const Instruction& reduce, int64_t rows, const WidthOf& of) {
  const int64_t inputs = reduce.operand_count() / 2;
  for (int64_t k = 0; k < inputs; ++k) {
    const int64_t lead = LeadingDims(reduce.operand(k)->shape(), rows);
    if (of(*reduce.operand(k)) <= 0 || of(*reduce.operand(inputs + k)) != kOutside || lead < 0) return false;
    for (int64_t d : reduce.dimensions())
      if (d < lead) return false;
  }
  return true;
}

bool TransposesWithinRows(const Instruction& transpose, int64_t rows) {
  const int64_t lead = LeadingDims(transpose.shape(), rows);
  for (int64_t d = 0; d < lead; ++d)
    if (transpose.dimensions()[static_cast<size_t>(d)] != d) return false;
  return lead >= 0 && LeadingDims(transpose.operand(0)->shape(), rows) == lead;
}

// Does the left operand have its dimensions in the order batch, free, contracting?
bool MultipliesRows(const Instruction& dot) {
  const auto& attrs = dot.attrs<DotAttrs>();
  const int64_t rank = dot.operand(0)->shape().rank(), batch = static_cast<int64_t>(attrs.lhs_batch.size()),
                sums = static_cast<int64_t>(attrs.lhs_contracting.size());
  for (int64_t d = 0; d < batch; ++d)
    if (attrs.lhs_batch[static_cast<size_t>(d)] != d) return false;
  for (int64_t d = 0; d < sums; ++d)
    if (attrs.lhs_contracting[static_cast<size_t>(d)] != rank - sums + d) return false;
  return true;
}

int64_t RowWidth(const Instruction& i, int64_t rows, const WidthOf& of);

int64_t FusionWidth(const Instruction& fusion, int64_t rows, const WidthOf& of) {
  Widths inner;
  const WidthOf inner_of = [&](const Instruction& i) { return inner.at(&i); };
  for (const Instruction* i : fusion.called(0)->PostOrder()) {
    const int64_t width = i->IsParameter() ? of(*fusion.operand(i->parameter_number())) : RowWidth(*i, rows, inner_of);
    if (width == kMixed) return kMixed;
    inner[i] = width;
  }
  return inner.at(fusion.called(0)->root());
}

// Elements a row of what `i` computes of operands of these widths.
int64_t RowWidth(const Instruction& i, int64_t rows, const WidthOf& of) {
  bool by_rows = false;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const int64_t width = of(*i.operand(k));
    if (width == kMixed || (width > 0 && !IsRowMajor(i.operand(k)->shape()))) return kMixed;
    by_rows |= width > 0;
  }
  if (!by_rows) return kOutside;
  const Shape& shape = i.shape();
  if (!shape.IsArray() || !shape.IsStatic() || shape.num_elements() % rows != 0) return kMixed;
  const int64_t width = shape.num_elements() / rows;
  switch (i.op()) {
    case Op::Reshape:
    case Op::Copy: return width;
    case Op::Bitcast: return IsRowMajor(shape) && shape.type() == i.operand(0)->shape().type() ? width : kMixed;
    case Op::Broadcast: return KeepsRows(i, rows) ? width : kMixed;
    case Op::Reduce: return ReducesWithinRows(i, rows, of) ? width : kMixed;
    case Op::Transpose: return TransposesWithinRows(i, rows) ? width : kMixed;
    case Op::Dot: return of(*i.operand(1)) == kOutside && MultipliesRows(i) && RowsOf(i).rows == rows ? width : kMixed;
    case Op::Fusion: return i.attrs<FusionAttrs>().kind == FusionKind::Custom ? kMixed : FusionWidth(i, rows, of);
    default:
      if (!IsElementwise(i.op())) return kMixed;
      for (int64_t k = 0; k < i.operand_count(); ++k)
        if (of(*i.operand(k)) > 0 && !i.operand(k)->shape().SameDims(shape)) return kMixed;
      return width;
  }
}

// The most rows whose values inside fit, in blocks that no product's batch cuts; 0: too few of them.
int64_t ChooseBlock(const Band& band) {
  int64_t product_rows = 0, row_bytes = 0;
  for (const Instruction* m : band.members) {
    if (m->op() == Op::Dot) product_rows = std::gcd(product_rows, RowsOf(*m).of_product);
    if (band.ResultOf(m) < 0) row_bytes += band.widths.at(m) * Bytes(m->shape().type());
  }
  const int64_t most = std::max<int64_t>(kBlockBytes / std::max<int64_t>(row_bytes, 1), kLeastBlock);
  int64_t block = 0;
  for (int64_t rows = std::min(kLeastBlock, product_rows); rows <= std::min(most, product_rows); ++rows) {
    if (product_rows % rows != 0) continue;
    if (block == 0 || band.rows / rows >= kTasks) block = rows;
  }
  return block;
}

// Finds one band after the other, and replaces each by a fusion.
class BandFormer {
 public:
  BandFormer(Module& module, Computation& computation, const TargetInfo& target, std::vector<FusionLimit>* limits)
      : module_(module), computation_(computation), target_(target), limits_(limits) {}

  void Run() {
    Number();
    for (size_t n = 0; n < order_.size(); ++n) {
      if (!IsBeginning(*order_[n])) continue;
      Grow(n);
      Trim();
      if (!IsWorthIt()) continue;
      Outline();
      Number();
      n = 0;
    }
    if (!taken_.empty()) computation_.SortTopologically();
  }

 private:
  void Number() {
    order_ = computation_.PostOrder();
    number_.assign(static_cast<size_t>(module_.id_bound()), 0);
    for (size_t n = 0; n < order_.size(); ++n) number_[static_cast<size_t>(order_[n]->id())] = n;
    seen_.assign(order_.size(), 0);
    search_ = 0;
  }
  size_t NumberOf(const Instruction& i) const { return number_[static_cast<size_t>(i.id())]; }

  bool Joins(const Instruction& i, int64_t elements = 0) const {
    return !i.HasControlEdges() && static_cast<bool>(target_.joins_band(i, elements));
  }
  bool IsBeginning(const Instruction& i) const {
    return i.op() == Op::Dot && !taken_.contains(&i) && !tried_.contains(&i) && i.shape().num_elements() > 0 &&
           RowsOf(i).of_product >= target_.least_band_rows && Joins(i);
  }
  bool IsMember(const Instruction* i) const { return band_.widths.contains(i); }

  // Is a member of the band needed for it? What has a lower number than the first of them is older than all. After many
  // steps the answer is yes: what is that far away stays outside, and large programs are planned in linear time.
  bool NeedsMember(const Instruction& i) {
    std::vector<const Instruction*> stack = {&i};
    ++search_;
    for (int steps = 0; !stack.empty(); ++steps) {
      const Instruction* at = stack.back();
      stack.pop_back();
      if (IsMember(at) || steps >= kMostSteps) return true;
      if (NumberOf(*at) < first_ || seen_[NumberOf(*at)] == search_) continue;
      seen_[NumberOf(*at)] = search_;
      for (int64_t k = 0; k < at->operand_count(); ++k) stack.push_back(at->operand(k));
      stack.insert(stack.end(), at->control_predecessors().begin(), at->control_predecessors().end());
    }
    return false;
  }

  // A product of the same rows, perhaps reshaped, that one instruction alone reads, and that nothing in the band is
  // needed for.
  bool CanBePulledIn(const Instruction& value) {
    const Instruction* i = &value;
    for (;; i = i->operand(0)) {
      if (i->use_count() != 1 || IsMember(i) || taken_.contains(i) || i == computation_.root()) return false;
      if (!PassesOn(i->op())) break;
      if (i->HasControlEdges() || !IsRowMajor(i->shape())) return false;
    }
    return i->op() == Op::Dot && RowsOf(*i).rows == band_.rows && !NeedsMember(*i) && Joins(*i);
  }

  // Takes it, and looks at its users later.
  void Add(const Instruction& i, int64_t width) {
    band_.widths[&i] = width;
    if (!PassesOn(i.op())) band_.members.push_back(&i);
    first_ = std::min(first_, NumberOf(i));
    for (const Use& use : i.uses()) next_.insert(NumberOf(*use.user));
  }

  // Takes what follows from instruction `first` on, row by row.
  void Grow(size_t first) {
    band_ = {};
    next_.clear();
    first_ = first;
    const Instruction& dot = *order_[first];
    tried_.insert(&dot);
    band_.rows = RowsOf(dot).rows;
    Add(dot, dot.shape().num_elements() / band_.rows);
    while (!next_.empty()) {
      const Instruction* i = order_[*next_.begin()];
      next_.erase(next_.begin());
      if (!IsMember(i) && !taken_.contains(i)) TryToAdd(*i);
    }
    std::sort(band_.members.begin(), band_.members.end(),
              [this](const Instruction* a, const Instruction* b) { return NumberOf(*a) < NumberOf(*b); });
  }

  void TryToAdd(const Instruction& i) {
    std::vector<const Instruction*> pulled;
    const auto is_pulled = [&](const Instruction* o) {
      return std::find(pulled.begin(), pulled.end(), o) != pulled.end();
    };
    const auto width_of_pulled = [this](const Instruction& o) { return o.shape().num_elements() / band_.rows; };
    for (int64_t k = 0; i.op() != Op::Dot && k < i.operand_count(); ++k)
      if (CanBePulledIn(*i.operand(k)) && !is_pulled(i.operand(k))) pulled.push_back(i.operand(k));
    for (;;) {
      const int64_t width = RowWidth(i, band_.rows, [&](const Instruction& o) {
        const auto member = band_.widths.find(&o);
        if (member != band_.widths.end()) return member->second;
        return is_pulled(&o) ? width_of_pulled(o) : kOutside;
      });
      if (width > 0) return AddWith(i, width, pulled);
      if (pulled.empty()) return;
      pulled.clear();
    }
  }

  void AddWith(const Instruction& i, int64_t width, const std::vector<const Instruction*>& pulled) {
    if (PassesOn(i.op()) ? i.HasControlEdges() : !Joins(i)) return;
    for (int64_t k = 0; k < i.operand_count(); ++k)
      if (!IsMember(i.operand(k)) && NeedsMember(*i.operand(k))) return;
    for (const Instruction* o : pulled)
      for (;; o = o->operand(0)) {
        Add(*o, o->shape().num_elements() / band_.rows);
        if (!PassesOn(o->op())) break;
      }
    Add(i, width);
  }

  bool IsSeen(const Instruction* i) const {
    return i == computation_.root() ||
           std::any_of(i->uses().begin(), i->uses().end(), [this](const Use& use) { return !IsMember(use.user); });
  }

  std::vector<const Instruction*> InOrder(const std::function<bool(const Instruction&)>& which) const {
    std::vector<const Instruction*> found;
    for (const auto& [i, width] : band_.widths)
      if (which(*i)) found.push_back(i);
    std::sort(found.begin(), found.end(),
              [this](const Instruction* x, const Instruction* y) { return NumberOf(*x) < NumberOf(*y); });
    return found;
  }

  // Reshapes that nobody in the band reads stay outside. What others read is a result, by itself or reshaped.
  void Trim() {
    std::vector<const Instruction*> reshapes = InOrder([](const Instruction& i) { return PassesOn(i.op()); });
    for (size_t n = reshapes.size(); n-- > 0;) {
      const auto uses = reshapes[n]->uses();
      if (std::none_of(uses.begin(), uses.end(), [this](const Use& use) { return IsMember(use.user); }))
        band_.widths.erase(reshapes[n]);
    }
    reshaped_results_ = InOrder([this](const Instruction& i) { return PassesOn(i.op()) && IsSeen(&i); });
    for (const Instruction* m : band_.members) {
      const auto is_source = [m](const Instruction* r) { return Band::Source(r) == m; };
      if (IsSeen(m) || std::any_of(reshaped_results_.begin(), reshaped_results_.end(), is_source))
        band_.results.push_back(m);
    }
  }

  bool IsWorthIt() {
    int64_t bytes = 0, dots = 0;
    for (const Instruction* m : band_.members) {
      dots += m->op() == Op::Dot;
      if (band_.ResultOf(m) < 0) bytes += m->shape().byte_size();
    }
    if (dots < 2 || bytes < target_.least_band_bytes || band_.results.empty()) return false;
    band_.block = ChooseBlock(band_);
    if (band_.block < target_.least_band_rows) return false;
    return std::all_of(band_.members.begin(), band_.members.end(), [this](const Instruction* m) {
      return m->op() == Op::Dot || Joins(*m, band_.block * band_.widths.at(m));
    });
  }

  void Outline() {
    Computation* inside = module_.AddComputation("band");
    std::unordered_map<const Instruction*, Instruction*> clones;
    std::vector<Instruction*> operands, members;
    for (const Instruction* i : InOrder([](const Instruction&) { return true; }))
      members.push_back(order_[NumberOf(*i)]);
    for (Instruction* m : members) {
      std::vector<Instruction*> arguments;
      for (int64_t k = 0; k < m->operand_count(); ++k) {
        Instruction* o = m->operand(k);
        if (!clones.contains(o)) {
          clones[o] = inside->AddParameter(static_cast<int64_t>(operands.size()), o->shape(),
                                           StrCat("param_", operands.size()));
          operands.push_back(o);
        }
        arguments.push_back(clones.at(o));
      }
      clones[m] = inside->AddClone(*m, m->shape(), arguments);
    }
    std::vector<Instruction*> roots;
    std::vector<Shape> shapes;
    for (const Instruction* r : band_.results) {
      roots.push_back(clones.at(r));
      shapes.push_back(r->shape());
    }
    const bool one = roots.size() == 1;
    const Shape shape = one ? shapes[0] : Shape::Tuple(shapes);
    inside->set_root(one ? roots[0] : inside->Add(Op::Tuple, shape, roots, NoAttrs{}));
    FusionAttrs attrs;
    attrs.kind = FusionKind::Custom;
    Instruction* fusion = computation_.Add(Op::Fusion, shape, operands, attrs, "band", members.back());
    fusion->set_called({inside});
    if (members.back()->has_metadata()) fusion->set_metadata(members.back()->shared_metadata());
    taken_.insert(fusion);
    std::unordered_map<const Instruction*, Instruction*> outside;  // looked up only
    for (size_t r = 0; r < roots.size(); ++r) {
      Instruction* value = fusion;
      if (!one)
        value =
            computation_.Add(Op::GetTupleElement, shapes[r], {fusion}, GetTupleElementAttrs{static_cast<int64_t>(r)});
      outside[band_.results[r]] = value;
    }
    for (const Instruction* i : reshaped_results_)
      outside[i] = computation_.AddClone(*i, i->shape(), std::vector<Instruction*>{outside.at(Band::Source(i))});
    for (Instruction* m : members) {
      if (!outside.contains(m)) continue;
      m->ReplaceAllUsesWith(outside.at(m));
      taken_.insert(outside.at(m));
    }
    TellLimits(*fusion, members);
    for (size_t n = members.size(); n-- > 0;) computation_.Remove(members[n]);
  }

  void TellLimits(const Instruction& fusion, const std::vector<Instruction*>& members) {
    if (!limits_) return;
    std::erase_if(*limits_, [&](FusionLimit& limit) {
      if (std::find(members.begin(), members.end(), limit.kernel) == members.end()) return false;
      if (band_.ResultOf(limit.kernel) < 0) return true;
      limit.kernel = &fusion;
      return false;
    });
  }

  Module& module_;
  Computation& computation_;
  const TargetInfo& target_;
  std::vector<FusionLimit>* limits_;
  std::vector<Instruction*> order_;
  std::vector<size_t> number_;  // in that order, by id
  std::vector<int64_t> seen_;   // by number: the last search that met it
  int64_t search_ = 0;
  std::unordered_set<const Instruction*> taken_;  // bands, and what gives their results
  std::unordered_set<const Instruction*> tried_;  // products that begin none
  // The band that is being made.
  Band band_;
  size_t first_ = 0;                                  // the lowest number of its members
  std::set<size_t> next_;                             // numbers of users that may join
  std::vector<const Instruction*> reshaped_results_;  // reshapes of results that others read
};

}  // namespace

DotRows RowsOf(const Instruction& dot) {
  const auto& attrs = dot.attrs<DotAttrs>();
  const Shape& lhs = dot.operand(0)->shape();
  DotRows rows{1, 1};
  for (int64_t d = 0; d < lhs.rank(); ++d) {
    const auto is_in = [d](const Dims& dims) { return std::find(dims.begin(), dims.end(), d) != dims.end(); };
    if (is_in(attrs.lhs_contracting)) continue;
    rows.rows *= lhs.dim(d);
    if (!is_in(attrs.lhs_batch)) rows.of_product *= lhs.dim(d);
  }
  return rows;
}

const Instruction* Band::Source(const Instruction* value) {
  while (PassesOn(value->op())) value = value->operand(0);
  return value;
}

int Band::ResultOf(const Instruction* member) const {
  const auto at = std::find(results.begin(), results.end(), member);
  return at == results.end() ? -1 : static_cast<int>(at - results.begin());
}

std::optional<Band> Band::Of(const Instruction& fusion) {
  if (fusion.op() != Op::Fusion || fusion.attrs<FusionAttrs>().kind != FusionKind::Custom) return std::nullopt;
  const Computation& inside = *fusion.called(0);
  Band band;
  const WidthOf of = [&](const Instruction& i) { return band.widths.at(&i); };
  for (const Instruction* i : inside.PostOrder()) {
    if (i == inside.root() && i->op() == Op::Tuple) continue;
    int64_t width = kOutside;
    if (!i->IsParameter()) {
      width = RowWidth(*i, std::max<int64_t>(band.rows, 1), of);
      if (i->op() == Op::Dot && width == kOutside) {
        const int64_t rows = RowsOf(*i).rows;
        if (rows == 0 || (band.rows != 0 && rows != band.rows)) return std::nullopt;
        band.rows = rows;
        width = i->shape().num_elements() / rows;
      }
      if (width <= 0) return std::nullopt;
      if (!PassesOn(i->op())) band.members.push_back(i);
    }
    band.widths[i] = width;
  }
  const Instruction* root = inside.root();
  if (root->op() != Op::Tuple) band.results.push_back(root);
  for (int64_t k = 0; root->op() == Op::Tuple && k < root->operand_count(); ++k)
    band.results.push_back(root->operand(k));
  const auto is_kernel = [&](const Instruction* r) { return !r->IsParameter() && !PassesOn(r->op()); };
  if (!std::all_of(band.results.begin(), band.results.end(), is_kernel)) return std::nullopt;
  band.block = ChooseBlock(band);
  if (band.block == 0) return std::nullopt;
  return band;
}

namespace plan_internal {

void FormBands(Module& module, Computation& computation, const TargetInfo& target, std::vector<FusionLimit>* limits) {
  if (target.joins_band) BandFormer(module, computation, target, limits).Run();
}

}  // namespace plan_internal

}  // namespace strop
