#include "strop/plan/band_maker.h"

#include <algorithm>

#include "strop/ir/unrounded.h"
#include "strop/plan/values.h"

namespace strop::plan_internal {
namespace {

constexpr int kMostSteps = 256;  // of one search backwards; bands are a few dozen instructions

}  // namespace

void BandMaker::Number() {
  order_ = computation_.PostOrder();
  number_.assign(static_cast<size_t>(module_.id_bound()), 0);
  for (size_t n = 0; n < order_.size(); ++n) number_[static_cast<size_t>(order_[n]->id())] = n;
  seen_.assign(order_.size(), 0);
  search_ = 0;
}

bool BandMaker::NeedsMember(const Instruction& i) {
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

void BandMaker::Add(const Instruction& i, int64_t width) {
  band_.widths[&i] = width;
  if (!PassesOn(i.op())) band_.members.push_back(&i);
  first_ = std::min(first_, NumberOf(i));
}

void BandMaker::SortMembers() {
  std::sort(band_.members.begin(), band_.members.end(),
            [this](const Instruction* a, const Instruction* b) { return NumberOf(*a) < NumberOf(*b); });
}

bool BandMaker::IsSeen(const Instruction* i) const {
  return i == computation_.root() ||
         std::any_of(i->uses().begin(), i->uses().end(), [this](const Use& use) { return !IsMember(use.user); });
}

std::vector<const Instruction*> BandMaker::InOrder(const std::function<bool(const Instruction&)>& which) const {
  std::vector<const Instruction*> found;
  for (const auto& [i, width] : band_.widths)
    if (which(*i)) found.push_back(i);
  std::sort(found.begin(), found.end(),
            [this](const Instruction* x, const Instruction* y) { return NumberOf(*x) < NumberOf(*y); });
  return found;
}

void BandMaker::Trim() {
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

// A product of bf16 whose sums may stay f32, and that only fusions of the band read.
bool BandMaker::StaysF32(const Instruction& member) const {
  if (member.op() != Op::Dot || !MayStayUnrounded(member) || member.shape().type() != ElementType::BF16) return false;
  const std::function<bool(const Instruction&)> read_by_fusions = [&](const Instruction& value) {
    return !IsSeen(&value) && std::ranges::all_of(value.users(), [&](const Instruction* user) {
      return user->op() == Op::Fusion || (PassesOn(user->op()) && read_by_fusions(*user));
    });
  };
  return read_by_fusions(member);
}

// Makes a parameter of bf16 one of f32, whose value is as good as one of bf16.
void BandMaker::ReadAsF32(Computation& fused, int64_t parameter) {
  Instruction* narrow = fused.parameter(parameter);
  const Shape shape = narrow->shape();
  narrow->set_shape(shape.WithType(ElementType::F32));
  Instruction* value = fused.Add(Op::Convert, shape, {narrow});
  value->set_frontend_attribute(kUnroundedMark, "1");
  narrow->ReplaceAllUsesWith(value);
  fused.SortTopologically();
}

void BandMaker::Outline(std::string_view backend_config) {
  Computation* inside = module_.AddComputation("band");
  std::unordered_map<const Instruction*, Instruction*> clones;
  std::vector<Instruction*> operands, members;
  for (const Instruction* i : InOrder([](const Instruction&) { return true; })) members.push_back(order_[NumberOf(*i)]);
  for (Instruction* m : members) {
    std::vector<Instruction*> arguments;
    for (int64_t k = 0; k < m->operand_count(); ++k) {
      Instruction* o = m->operand(k);
      if (!clones.contains(o)) {
        clones[o] =
            inside->AddParameter(static_cast<int64_t>(operands.size()), o->shape(), StrCat("param_", operands.size()));
        operands.push_back(o);
      }
      arguments.push_back(clones.at(o));
    }
    // Sums that need not be rounded (ir/unrounded.h) stay as they are, in the cache as in registers.
    const bool sums = StaysF32(*m);
    const bool passes_on = PassesOn(m->op()) && arguments[0]->shape().type() != m->shape().type();
    clones[m] = inside->AddClone(*m, sums || passes_on ? m->shape().WithType(ElementType::F32) : m->shape(), arguments);
    if (m->op() != Op::Fusion) continue;
    for (int64_t k = 0; k < m->operand_count(); ++k)
      if (arguments[static_cast<size_t>(k)]->shape().type() != m->operand(k)->shape().type())
        ReadAsF32(*m->called(0), k);
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
  if (!backend_config.empty()) fusion->set_backend_config(std::string(backend_config));
  if (members.back()->has_metadata()) fusion->set_metadata(members.back()->shared_metadata());
  taken_.insert(fusion);
  std::unordered_map<const Instruction*, Instruction*> outside;  // looked up only
  for (size_t r = 0; r < roots.size(); ++r) {
    Instruction* value = fusion;
    if (!one)
      value = computation_.Add(Op::GetTupleElement, shapes[r], {fusion}, GetTupleElementAttrs{static_cast<int64_t>(r)});
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

void BandMaker::TellLimits(const Instruction& fusion, const std::vector<Instruction*>& members) {
  if (!limits_) return;
  std::erase_if(*limits_, [&](FusionLimit& limit) {
    if (std::find(members.begin(), members.end(), limit.kernel) == members.end()) return false;
    if (band_.ResultOf(limit.kernel) < 0) return true;
    limit.kernel = &fusion;
    return false;
  });
}

}  // namespace strop::plan_internal
