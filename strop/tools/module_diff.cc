#include "strop/tools/module_diff.h"

#include <algorithm>
#include <deque>

#include "strop/ir/hash.h"

namespace strop::tools {
namespace {

using Partners = std::vector<const Instruction*>;  // by id; null: none

std::string_view Callees(const Instruction& i) { return Info(i.op()).callees; }

// Of all that a value depends on, callees included; by id.
class Fingerprints {
 public:
  explicit Fingerprints(const Module& module) : of_(module.id_bound(), 0) {
    for (const Computation* c : module.PostOrder()) {
      for (const Instruction* i : c->PostOrder()) of_[i->id()] = Of(*i);
      const uint64_t root = c->root() ? of_[c->root()->id()] : 0;
      if (static_cast<int64_t>(computations_.size()) <= c->id()) computations_.resize(c->id() + 1, 0);
      computations_[c->id()] = root;
    }
  }
  uint64_t operator[](const Instruction* i) const { return of_[i->id()]; }

 private:
  uint64_t Of(const Instruction& i) const {
    uint64_t hash = HashCombine(static_cast<uint64_t>(i.op()), HashShape(i.shape()));
    hash = HashCombine(hash, HashAttrs(i.any_attrs()));
    for (int64_t k = 0; k < i.operand_count(); ++k) hash = HashCombine(hash, of_[i.operand(k)->id()]);
    for (const Computation* c : i.called()) hash = HashCombine(hash, c ? computations_[c->id()] : 0);
    return hash;
  }
  std::vector<uint64_t> of_, computations_;
};

class Matcher {
 public:
  Matcher(const Module& was, const Module& is)
      : was_(was),
        is_(is),
        was_prints_(was),
        is_prints_(is),
        partner_of_was_(was.id_bound()),
        partner_of_is_(is.id_bound()) {}

  ModuleDiff Run() {
    ModuleDiff diff;
    Pair(was_.entry(), is_.entry());
    for (size_t next = 0; next < pairs_.size(); ++next) MatchComputation(*pairs_[next].first, *pairs_[next].second);
    for (const Computation* c : was_.computations())  // not called by partners: by name
      for (const Computation* d : is_.computations())
        if (c->name() == d->name() && Pair(c, d)) MatchComputation(*c, *d);
    for (const auto& [c, d] : pairs_) diff.computations.push_back(Compare(*c, *d));
    for (const Computation* c : was_.computations())
      if (!PartnerOf(c)) diff.computations.push_back({.was = c, .removed = All(*c)});
    for (const Computation* d : is_.computations())
      if (!IsPaired(d)) diff.computations.push_back({.is = d, .added = All(*d)});
    return diff;
  }

 private:
  static std::vector<const Instruction*> All(const Computation& c) {
    std::vector<const Instruction*> out;
    for (const Instruction* i : c.instructions()) out.push_back(i);
    return out;
  }
  const Computation* PartnerOf(const Computation* c) const {
    for (const auto& [was, is] : pairs_)
      if (was == c) return is;
    return nullptr;
  }
  bool IsPaired(const Computation* d) const {
    return std::any_of(pairs_.begin(), pairs_.end(), [d](const auto& pair) { return pair.second == d; });
  }
  bool Pair(const Computation* c, const Computation* d) {
    if (!c || !d || PartnerOf(c) || IsPaired(d)) return false;
    pairs_.emplace_back(c, d);
    return true;
  }

  const Instruction* PartnerOfWas(const Instruction* i) const { return partner_of_was_[i->id()]; }
  const Instruction* PartnerOfIs(const Instruction* i) const { return partner_of_is_[i->id()]; }
  bool Match(const Instruction* a, const Instruction* b) {
    if (a->op() != b->op() || PartnerOfWas(a) || PartnerOfIs(b)) return false;
    partner_of_was_[a->id()] = b;
    partner_of_is_[b->id()] = a;
    queue_.emplace_back(a, b);
    return true;
  }

  // The k-th of those with equal keys to the k-th.
  template <class Key>
  void MatchByKey(const Computation& c, const Computation& d, const Key& key) {
    using KeyType = decltype(key(*c.first(), true));
    std::map<KeyType, std::deque<const Instruction*>> free;
    for (const Instruction* b : d.instructions())
      if (!PartnerOfIs(b)) free[key(*b, false)].push_back(b);
    for (const Instruction* a : c.instructions()) {
      if (PartnerOfWas(a)) continue;
      const auto found = free.find(key(*a, true));
      if (found == free.end() || found->second.empty()) continue;
      const Instruction* b = found->second.front();
      found->second.pop_front();
      Match(a, b);
    }
    Spread();
  }

  // From pairs to their operands and users.
  void Spread() {
    while (!queue_.empty()) {
      const auto [a, b] = queue_.front();
      queue_.pop_front();
      if (a->operand_count() == b->operand_count())
        for (int64_t k = 0; k < a->operand_count(); ++k) Match(a->operand(k), b->operand(k));
      for (const Instruction* user : a->users()) {
        if (PartnerOfWas(user)) continue;
        for (const Instruction* other : b->users())
          if (!PartnerOfIs(other) && OperandsArePartners(*user, *other) && Match(user, other)) break;
      }
      for (size_t k = 0; k < std::min(a->called().size(), b->called().size()); ++k) Pair(a->called(k), b->called(k));
    }
  }
  bool OperandsArePartners(const Instruction& a, const Instruction& b) const {
    if (a.op() != b.op() || a.operand_count() != b.operand_count()) return false;
    for (int64_t k = 0; k < a.operand_count(); ++k)
      if (PartnerOfWas(a.operand(k)) != b.operand(k)) return false;
    return true;
  }

  void MatchComputation(const Computation& c, const Computation& d) {
    MatchByKey(c, d, [this](const Instruction& i, bool was) {
      return i.IsParameter() ? HashCombine(1, i.parameter_number()) : was ? was_prints_[&i] : is_prints_[&i];
    });
    if (c.root() && d.root()) Match(c.root(), d.root());
    Spread();
    MatchByKey(c, d, [](const Instruction& i, bool) { return std::pair(i.op(), i.name()); });
    MatchByKey(c, d, [](const Instruction& i, bool) {
      return HashCombine(HashCombine(static_cast<uint64_t>(i.op()), HashShape(i.shape())), HashAttrs(i.any_attrs()));
    });
  }

  static void Tell(std::vector<std::string>& how, std::string_view what, const std::string& was,
                   const std::string& is) {
    if (was != is) how.push_back(StrCat(what, ": ", is.empty() ? "none" : is, ", was ", was.empty() ? "none" : was));
  }
  static std::string Text(const FrontendAttributes& attributes) {
    std::string out;
    for (const auto& [key, value] : attributes) StrAppend(out, out.empty() ? "" : ",", key, "=", value);
    return out;
  }

  std::vector<std::string> HowDifferent(const Instruction& a, const Instruction& b) const {
    std::vector<std::string> how;
    Tell(how, "shape", a.shape().ToStringWithLayout(), b.shape().ToStringWithLayout());
    if (!(a.any_attrs() == b.any_attrs())) how.push_back("attributes");
    if (a.operand_count() != b.operand_count()) {
      how.push_back(StrCat(b.operand_count(), " operands, were ", a.operand_count()));
    } else {
      for (int64_t k = 0; k < a.operand_count(); ++k)
        if (PartnerOfWas(a.operand(k)) != b.operand(k))
          how.push_back(StrCat("operand ", k, ": %", b.operand(k)->name(), ", was %", a.operand(k)->name()));
    }
    for (size_t k = 0; k < std::min(a.called().size(), b.called().size()); ++k)
      if (a.called(k) && PartnerOf(a.called(k)) != b.called(k))
        how.push_back(StrCat(Callees(b), ": %", b.called(k)->name(), ", was %", a.called(k)->name()));
    if (a.called().size() != b.called().size()) how.push_back("called computations");
    const auto sharding = [](const Instruction& i) { return i.sharding() ? i.sharding()->ToString() : std::string(); };
    Tell(how, "sharding", sharding(a), sharding(b));
    Tell(how, "backend_config", a.backend_config(), b.backend_config());
    Tell(how, "frontend_attributes", Text(a.frontend_attributes()), Text(b.frontend_attributes()));
    bool edges = a.control_predecessors().size() == b.control_predecessors().size();
    for (const Instruction* p : a.control_predecessors())
      edges = edges && std::count(b.control_predecessors().begin(), b.control_predecessors().end(), PartnerOfWas(p));
    if (!edges) how.push_back("control predecessors");
    if (a.IsRoot() != b.IsRoot()) how.push_back(b.IsRoot() ? "is the root" : "is no longer the root");
    return how;
  }

  ComputationDiff Compare(const Computation& c, const Computation& d) const {
    ComputationDiff out{.was = &c, .is = &d};
    const Instruction* place = nullptr;
    for (const Instruction* a : c.instructions()) {
      if (PartnerOfWas(a)) {
        place = PartnerOfWas(a);
        continue;
      }
      out.removed.push_back(a);
      out.removed_after.push_back(place);
    }
    for (const Instruction* b : d.instructions()) {
      const Instruction* a = PartnerOfIs(b);
      if (!a) {
        out.added.push_back(b);
        continue;
      }
      std::vector<std::string> how = HowDifferent(*a, *b);
      if (how.empty())
        ++out.same;
      else
        out.changed.push_back({a, b, std::move(how)});
    }
    return out;
  }

  const Module& was_;
  const Module& is_;
  Fingerprints was_prints_, is_prints_;
  Partners partner_of_was_, partner_of_is_;
  std::vector<std::pair<const Computation*, const Computation*>> pairs_;
  std::deque<std::pair<const Instruction*, const Instruction*>> queue_;
};

std::vector<std::string> DiffHeaders(const Module& was, const Module& is) {
  std::vector<std::string> out;
  const ModuleConfig &a = was.config(), &b = is.config();
  const auto tell = [&out](std::string_view what, const auto& before, const auto& now) {
    if (!(before == now)) out.push_back(StrCat(what, ": ", now, ", was ", before));
  };
  tell("is_scheduled", a.is_scheduled, b.is_scheduled);
  tell("replica_count", a.replica_count, b.replica_count);
  tell("num_partitions", a.num_partitions, b.num_partitions);
  if (!(a.input_output_alias == b.input_output_alias)) out.push_back("input_output_alias");
  if (!(a.buffer_donors == b.buffer_donors)) out.push_back("buffer_donor");
  const EntryLayout before = was.EffectiveEntryLayout(), now = is.EffectiveEntryLayout();
  if (!(before == now)) out.push_back("entry_computation_layout");
  return out;
}

}  // namespace

bool ModuleDiff::equal() const {
  return header.empty() &&
         std::all_of(computations.begin(), computations.end(), [](const ComputationDiff& c) { return c.equal(); });
}

ModuleDiff DiffModules(const Module& was, const Module& is) {
  ModuleDiff diff = Matcher(was, is).Run();
  diff.header = DiffHeaders(was, is);
  return diff;
}

}  // namespace strop::tools
