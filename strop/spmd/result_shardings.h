// Which sharding a result gets of which the program says nothing: that of the values it is made of, as far as that is
// plain to see. The partitioner cuts the result accordingly; whole values are the other choice, and never wrong.
//
//   %x = f32[8,4] parameter(0), sharding={devices=[4,1]<=[4]}
//   %t = f32[4,8] transpose(%x)          {devices=[1,4]<=[4]}, so
//   ROOT %r = f32[4,8] exponential(%t)   is returned in four shards as well
#pragma once
#include "strop/ir/module.h"

namespace strop::spmd {

// Fills in shardings of the entry's root where it has none (or unknown ones). For modules of several partitions.
void ChooseResultShardings(Module& module);

}  // namespace strop::spmd
