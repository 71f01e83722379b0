// Forms of ops that are cut with less communication than others, before shardings are propagated.
//
//   dynamic-slice at places that are known   -> slice: neighbours know what they need
//   reshape(slice to one element)            -> dynamic-slice: whoever has the element gives it to all
//   slice(pad(x))                            -> pad, with negative edges: what lies between is of uneven size
//   reduce-window(pad(x))                    -> reduce-window with padding
//   what nobody uses                         -> nothing: its sharding is no reason for others
#pragma once
#include "strop/ir/module.h"

namespace strop::spmd {

void GiveForms(Module& module);

}  // namespace strop::spmd
