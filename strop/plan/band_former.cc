// Bands of products and what is computed from them row by row.
#include <algorithm>
#include <set>

#include "strop/plan/band_maker.h"
#include "strop/plan/values.h"

namespace strop::plan_internal {
namespace {

// Finds one band after the other, and replaces each by a fusion.
class BandFormer : BandMaker {
 public:
  using BandMaker::BandMaker;

  void Run() {
    Number();
    for (size_t n = 0; n < order_.size(); ++n) {
      if (!IsBeginning(*order_[n])) continue;
      Grow(n);
      Trim();
      if (!IsWorthIt()) continue;
      Outline({});
      Number();
      n = 0;
    }
    if (!taken_.empty()) computation_.SortTopologically();
  }

 private:
  bool IsBeginning(const Instruction& i) const {
    return i.op() == Op::Dot && !taken_.contains(&i) && !tried_.contains(&i) && i.shape().num_elements() > 0 &&
           RowsOf(i).of_product >= target_.least_band_rows && Joins(i);
  }
  // Is the value read by what may be in the band alone: `by`, members, and what reads members as well?
  bool IsReadByBand(const Instruction& value, const Instruction& by) const {
    return std::ranges::all_of(value.uses(), [&](const Use& use) {
      const Instruction& user = *use.user;
      if (&user == &by || IsMember(&user)) return true;
      if (PassesOn(user.op())) return IsReadByBand(user, by);
      for (int64_t k = 0; k < user.operand_count(); ++k)
        if (IsMember(user.operand(k))) return true;
      return false;
    });
  }
  // A product of the same rows, perhaps reshaped, that the band alone reads, and that nothing in the band is needed
  // for.
  bool CanBePulledIn(const Instruction& value, const Instruction& by) {
    const Instruction* i = &value;
    for (;; i = i->operand(0)) {
      if (IsMember(i) || taken_.contains(i) || i == computation_.root() || !IsReadByBand(*i, by)) return false;
      if (!PassesOn(i->op())) break;
      if (i->HasControlEdges() || !IsRowMajor(i->shape())) return false;
    }
    return i->op() == Op::Dot && RowsOf(*i).rows == band_.rows && !NeedsMember(*i) && Joins(*i);
  }

  // Takes it, and looks at its users later.
  void Take(const Instruction& i, int64_t width) {
    Add(i, width);
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
    Take(dot, dot.shape().num_elements() / band_.rows);
    while (!next_.empty()) {
      const Instruction* i = order_[*next_.begin()];
      next_.erase(next_.begin());
      if (!IsMember(i) && !taken_.contains(i)) TryToAdd(*i);
    }
    SortMembers();
  }

  void TryToAdd(const Instruction& i) {
    std::vector<const Instruction*> pulled;
    const auto is_pulled = [&](const Instruction* o) {
      return std::find(pulled.begin(), pulled.end(), o) != pulled.end();
    };
    const auto width_of_pulled = [this](const Instruction& o) { return o.shape().num_elements() / band_.rows; };
    for (int64_t k = 0; i.op() != Op::Dot && k < i.operand_count(); ++k)
      if (CanBePulledIn(*i.operand(k), i) && !is_pulled(i.operand(k))) pulled.push_back(i.operand(k));
    for (;;) {
      const int64_t width = RowWidth(i, band_.rows, [&](const Instruction& o) {
        const auto member = band_.widths.find(&o);
        if (member != band_.widths.end()) return member->second;
        return is_pulled(&o) ? width_of_pulled(o) : kOutside;
      });
      if (width > 0 || width == kSummed) return AddWith(i, width, pulled);
      if (pulled.empty()) return;
      pulled.clear();
    }
  }

  void AddWith(const Instruction& i, int64_t width, const std::vector<const Instruction*>& pulled) {
    if (PassesOn(i.op()) ? i.HasControlEdges() : !Joins(i, {.adds_up = width == kSummed})) return;
    if (width == kSummed) {
      const int64_t summed = SummedRowsOf(i).of_product;
      if (band_.summed != 0 && band_.summed != summed) return;
    }
    for (int64_t k = 0; k < i.operand_count(); ++k)
      if (!IsMember(i.operand(k)) && NeedsMember(*i.operand(k))) return;
    for (const Instruction* o : pulled)
      for (;; o = o->operand(0)) {
        Take(*o, o->shape().num_elements() / band_.rows);
        if (!PassesOn(o->op())) break;
      }
    Take(i, width);
    if (width == kSummed) band_.summed = SummedRowsOf(i).of_product;
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
    return std::all_of(band_.members.begin(), band_.members.end(),
                       [this](const Instruction* m) { return m->op() == Op::Dot || Joins(*m, band_.TaskOf(m)); });
  }

  std::unordered_set<const Instruction*> tried_;  // products that begin none
  std::set<size_t> next_;                         // numbers of users that may join
};

}  // namespace

void FormProductBands(Module& module, Computation& computation, const TargetInfo& target,
                      std::vector<FusionLimit>* limits) {
  BandFormer(module, computation, target, limits).Run();
}

}  // namespace strop::plan_internal
