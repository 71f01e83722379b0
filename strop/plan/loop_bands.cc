// Bands of loops: kernels that read the same large arrays, row by row, or what others among them compute. Each block of
// rows comes from memory once, for all of them.
//
//   %m = f32[2048] reduce(%x, ...), dimensions={1}       %both = (f32[2048], f32[2048]) fusion(%x), kind=kCustom,
//   %v = f32[2048] fusion(%x, %m), calls=variance   ->     calls={ m = reduce(x), v = fusion(x, m) }
#include <algorithm>
#include <set>

#include "strop/plan/band_maker.h"
#include "strop/plan/values.h"

namespace strop::plan_internal {
namespace {

constexpr int64_t kLeastRow = 256;  // elements of a row that is reduced: short ones go side by side
constexpr int64_t kLeastBlockBytes = int64_t{16} << 10;
constexpr int64_t kLeastBlocks = 16;  // which are tasks
constexpr size_t kMostMembers = 12;
constexpr size_t kFar = 64;  // places between two members: what waits for the other stays alive

class LoopBandFormer : BandMaker {
 public:
  using BandMaker::BandMaker;

  void Run() {
    Number();
    // Rows that are reduced first: what is computed element by element goes with any rows.
    for (const bool reductions : {true, false}) {
      for (size_t n = 0; n < order_.size(); ++n) {
        const Instruction& i = *order_[n];
        if (Reduces(i) != reductions || !ReadsOrWritesMuch(i) || tried_.contains(i.id()) || !CanJoin(i)) continue;
        tried_.insert(i.id());
        Grow(i);
        if (!Settle() || !IsWorthIt()) continue;
        Outline(kLoopBand);
        Number();
        n = 0;
      }
    }
    if (!taken_.empty()) computation_.SortTopologically();
  }

 private:
  bool CanJoin(const Instruction& i) const {
    const bool kernel = i.op() == Op::Fusion || i.op() == Op::Reduce || IsElementwise(i.op());
    return kernel && !taken_.contains(&i) && i.shape().IsArray() && i.shape().IsStatic() && IsRowMajor(i.shape()) &&
           i.shape().num_elements() > 0 && Joins(i);
  }
  // Is its result a row's sum, or whatever is reduced, for each row?
  static bool Reduces(const Instruction& i) {
    return i.op() == Op::Reduce || (i.op() == Op::Fusion && i.called(0)->root()->op() == Op::Reduce);
  }
  bool ReadsOrWritesMuch(const Instruction& i) const {
    if (IsLargeOperand(i)) return true;
    for (int64_t k = 0; k < i.operand_count(); ++k)
      if (IsLargeOperand(*i.operand(k))) return true;
    return false;
  }

  // Of `i` if the members, `i` itself and large arrays outside are there row by row.
  int64_t WidthOfNew(const Instruction& i) const {
    return RowWidth(i, band_.rows, [&](const Instruction& o) {
      const auto member = band_.widths.find(&o);
      if (member != band_.widths.end()) return member->second;
      return IsLargeOperand(o) && o.shape().num_elements() % band_.rows == 0 ? o.shape().num_elements() / band_.rows
                                                                             : kOutside;
    });
  }

  // Everything around `beginning` that goes with it.
  void Grow(const Instruction& beginning) {
    band_ = {};
    first_ = NumberOf(beginning);
    next_.clear();
    // Each element by itself, else by the rows of the last dimension (a softmax).
    const int64_t elements = beginning.shape().num_elements();
    int64_t width = kMixed;
    for (int64_t row : {int64_t{1}, beginning.shape().rank() > 0 ? beginning.shape().dims().back() : 1}) {
      if (width > 0) break;
      band_.rows = elements / row;
      width = WidthOfNew(beginning);
    }
    if (width <= 0 || HasShortRows(beginning)) return;
    Take(beginning, width);
    while (!next_.empty() && band_.members.size() < kMostMembers) {
      const Instruction& i = *order_[*next_.begin()];
      next_.erase(next_.begin());
      const size_t at = NumberOf(i), begin = NumberOf(beginning);
      if (!IsMember(&i) && std::max(at, begin) - std::min(at, begin) <= kFar) TryToAdd(i);
    }
    SortMembers();
  }
  // Are there rows that are reduced, of few elements each, or of such as do not lie together?
  static bool HasShortRows(const Instruction& i) {
    if (i.op() == Op::Fusion) {
      for (const Instruction* inner : i.called(0)->instructions())
        if (HasShortRows(*inner)) return true;
      return false;
    }
    if (i.op() != Op::Reduce) return false;
    const Shape& from = i.operand(0)->shape();
    const int64_t first = from.rank() - static_cast<int64_t>(i.dimensions().size());
    int64_t elements = 1;
    for (int64_t d : i.dimensions()) {
      if (d < first && from.dim(d) > 1) return true;
      elements *= from.dim(d);
    }
    return elements < kLeastRow;
  }

  // Its users, what it reads, and what else reads that may follow.
  void Take(const Instruction& i, int64_t width) {
    Add(i, width);
    const auto note_users = [this](const Instruction& of) {
      for (const Use& use : of.uses()) next_.insert(NumberOf(*use.user));
    };
    note_users(i);
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      const Instruction& o = *i.operand(k);
      if (!IsLargeOperand(o)) continue;
      next_.insert(NumberOf(o));
      note_users(o);
    }
  }

  void TryToAdd(const Instruction& i) {
    const bool passes_on = PassesOn(i.op());
    if (passes_on ? i.HasControlEdges() || !IsMember(i.operand(0)) || !IsRowMajor(i.shape()) : !CanJoin(i)) return;
    if (i.shape().num_elements() % band_.rows != 0) return;
    const int64_t width = WidthOfNew(i);
    if (width <= 0 || HasShortRows(i)) return;
    for (int64_t k = 0; k < i.operand_count(); ++k)
      if (!IsMember(i.operand(k)) && NeedsMember(*i.operand(k))) return;
    const Band before = band_;
    const size_t first = first_;
    Add(i, width);
    // Members that read it must read it row by row, and none must wait for something outside that needs it.
    const auto is_fine = [&](const Instruction* m) {
      if (m == &i) return true;
      if (NumberOf(*m) < NumberOf(i)) return true;
      if (WidthOfNew(*m) != band_.widths.at(m)) return false;
      for (int64_t k = 0; k < m->operand_count(); ++k)
        if (!IsMember(m->operand(k)) && NeedsMember(*m->operand(k))) return false;
      return true;
    };
    const bool fine = std::ranges::all_of(band_.widths, [&](const auto& member) { return is_fine(member.first); });
    band_ = before;
    first_ = first;
    if (fine) Take(i, width);
  }

  // What comes from memory once instead of several times.
  int64_t BytesSaved() const {
    int64_t saved = 0;
    const auto readers = [this](const Instruction* source) {
      return std::ranges::count_if(band_.members, [source](const Instruction* m) {
        for (int64_t k = 0; k < m->operand_count(); ++k)
          if (Band::Source(m->operand(k)) == source) return true;
        return false;
      });
    };
    std::set<const Instruction*> sources;  // however they are reshaped; summed up only
    for (const Instruction* o : band_.Operands()) sources.insert(Band::Source(o));
    for (const Instruction* o : sources)
      if (IsLargeOperand(*o)) saved += (readers(o) - 1) * o->shape().byte_size();
    for (const Instruction* m : band_.members)
      if (IsLargeOperand(*m)) saved += (readers(m) + (band_.ResultOf(m) < 0)) * m->shape().byte_size();
    return saved;
  }

  // Chooses the block. Members that are not cut into such blocks (few elements a row) leave, with all that need them.
  bool Settle() {
    for (;;) {
      if (band_.members.size() < 2) return false;
      band_.results.clear();
      Trim();
      std::vector<const Instruction*> inside;
      for (const auto& [i, width] : band_.widths) inside.push_back(i);
      if (RowsOfLoops(inside) != band_.rows) return false;
      band_.block = ChooseBlock(band_);
      if (band_.block == 0 || band_.rows / band_.block < kLeastBlocks) return false;
      std::unordered_set<const Instruction*> leaving;
      for (const Instruction* m : band_.members) {
        bool leaves = !Joins(*m, band_.TaskOf(m));
        for (int64_t k = 0; k < m->operand_count(); ++k) leaves |= leaving.contains(Band::Source(m->operand(k)));
        if (leaves) leaving.insert(m);
      }
      if (leaving.empty()) return true;
      std::erase_if(band_.members, [&](const Instruction* m) { return leaving.contains(m); });
      std::erase_if(band_.widths, [&](const auto& known) { return leaving.contains(Band::Source(known.first)); });
    }
  }

  bool IsWorthIt() const {
    if (band_.results.empty() || BytesSaved() < target_.least_band_bytes) return false;
    int64_t block_bytes = 0;
    for (const Instruction* o : band_.Operands()) block_bytes += o->shape().byte_size() / band_.rows * band_.block;
    return block_bytes >= kLeastBlockBytes && block_bytes <= 4 * target_.l2_bytes;
  }

  std::set<int64_t> tried_;  // beginnings, by id
  std::set<size_t> next_;    // numbers of what may join
};

}  // namespace

void FormLoopBands(Module& module, Computation& computation, const TargetInfo& target,
                   std::vector<FusionLimit>* limits) {
  LoopBandFormer(module, computation, target, limits).Run();
}

}  // namespace strop::plan_internal
