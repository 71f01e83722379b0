// Which dimensions of a reshape belong together.
//
//   f32[6,4,1] -> f32[2,3,1,4]   {6} becomes {2,3}, {4} becomes {4}; dimensions of one element belong to none
#pragma once
#include <vector>

#include "strop/ir/module.h"

namespace strop::simplify {

struct ReshapeGroup {
  Dims from, to;  // dimensions of equal product on both sides, as few as possible
};

// Empty for arrays without elements, whose dimensions say nothing.
inline std::vector<ReshapeGroup> ReshapeGroups(const Shape& from, const Shape& to) {
  std::vector<ReshapeGroup> groups;
  if (from.num_elements() == 0) return groups;
  int64_t i = 0, j = 0;
  auto next = [](const Shape& shape, int64_t& d) {
    while (d < shape.rank() && shape.dim(d) == 1) ++d;
    return d < shape.rank();
  };
  while (next(from, i) && next(to, j)) {
    ReshapeGroup group{{i}, {j}};
    int64_t x = from.dim(i++), y = to.dim(j++);
    while (x != y) {
      if (x < y && next(from, i)) {
        group.from.push_back(i);
        x *= from.dim(i++);
      } else if (y < x && next(to, j)) {
        group.to.push_back(j);
        y *= to.dim(j++);
      } else {
        return {};  // not a reshape
      }
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace strop::simplify
