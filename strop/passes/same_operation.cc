#include "strop/passes/same_operation.h"

#include <algorithm>

#include "strop/ir/hash.h"
#include "strop/ir/module.h"

namespace strop {
namespace {

bool SameCallees(const Instruction& a, const Instruction& b) {
  return std::equal(a.called().begin(), a.called().end(), b.called().begin(), b.called().end());
}

bool SameSharding(const Instruction& a, const Instruction& b) {
  if (!a.sharding() || !b.sharding()) return a.sharding() == b.sharding();
  return *a.sharding() == *b.sharding();
}

template <class A>
bool SameOnAnyChannel(A a, A b) {
  // A channel that is given, whichever, makes partitions exchange; none makes replicas.
  if ((a.channel_id > 0) == (b.channel_id > 0)) a.channel_id = b.channel_id;
  return a == b;
}

bool SameAttrs(const Instruction& a, const Instruction& b) {
  if (!Is(a.op(), kCollective) || Is(a.op(), kAsync)) return a.any_attrs() == b.any_attrs();
  return a.op() == Op::CollectivePermute ? SameOnAnyChannel(a.attrs<PermuteAttrs>(), b.attrs<PermuteAttrs>())
                                         : SameOnAnyChannel(a.attrs<CollectiveAttrs>(), b.attrs<CollectiveAttrs>());
}

}  // namespace

bool SameOperation(const Instruction& a, const Instruction& b) {
  return a.op() == b.op() && a.shape() == b.shape() && SameAttrs(a, b) && SameCallees(a, b) &&
         a.backend_config() == b.backend_config() && a.frontend_attributes() == b.frontend_attributes() &&
         SameSharding(a, b);
}

uint64_t HashOperation(const Instruction& i) {
  const uint64_t attrs = Is(i.op(), kCollective) ? 0 : HashAttrs(i.any_attrs());  // see SameAttrs
  uint64_t h = HashCombine(static_cast<uint64_t>(i.op()), HashCombine(HashShape(i.shape()), attrs));
  for (const Computation* c : i.called()) h = HashCombine(h, static_cast<uint64_t>(c->id()));
  return h;
}

}  // namespace strop
