// Custom calls on shards: those whose owner cuts them, those that work on each element of a batch by itself, and
// callbacks that are made once a device with what it has.
#pragma once
#include "strop/spmd/call_owners.h"
#include "strop/spmd/rule.h"
#include "strop/spmd/values.h"

namespace strop::spmd {

// What the program says of the call (xla.sdy.sharding_rule), or, of a call on batches, what follows from their number.
// Empty: nothing. `owners` may be null; then the program's word counts.
Rule RuleOfCall(const Instruction& call, const CallOwners* owners);
// Shardy's text "#sdy.op_sharding_rule<([i, jk], [k])->([i]) {i=8, j=4, k=2} reduction={k}>". Empty if it is none, or
// does not fit the call.
Rule RuleOfText(std::string_view text, const Instruction& call);
// Leading dimensions that shards of the call may be cut along; 0: none.
int64_t BatchDims(const Instruction& call, const CallOwners* owners);

// Is it made on each device, with what that has?
bool IsMadeOnShards(const Instruction& call);
void MakeOnShards(Instruction& call, Values& values);
// Layout constraints of a call get the shapes of its operands.
void ResizeConstraints(Instruction& call, std::span<Instruction* const> operands);

// Instead of the call, what its owner makes of it. `rule` is that of the whole call.
Status CutByOwner(Instruction& call, const Rule& rule, const CallOwners& owners, Values& values);

}  // namespace strop::spmd
