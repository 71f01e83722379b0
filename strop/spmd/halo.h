// What a device needs of its neighbours' pieces of a dimension that is cut.
//
//   f32[8] in four pieces, each device wants one element more on either side:
//     [2c - 1, 2c + 3)   ->   the last of c-1, all of its own, the first of c+1: two permutes of one element
#pragma once
#include <utility>
#include <vector>

#include "strop/spmd/reshard.h"

namespace strop::spmd {

// The device with coordinate c along the axes that cut a dimension needs elements [scale * c + offset, + size) of it.
struct Span {
  int64_t scale = 0, offset = 0, size = 0;
  bool around = false;    // beyond the end it goes on at the beginning
  bool mirrored = false;  // device c needs what lies about device n-1-c
};

struct Halo {
  struct Piece {
    int64_t begin = 0, end = 0;                     // of the sender's piece
    std::vector<std::pair<int64_t, int64_t>> ways;  // coordinates: from, to
    bool own = false;
  };
  int64_t first = 0;          // the first one's sender is so many further than c
  std::vector<Piece> pieces;  // as they are joined
  int64_t low = 0, high = 0;  // elements that nobody has
  // Of what is joined and padded, the device with coordinate c needs [scale * c + offset, + size).
  int64_t scale = 0, offset = 0;
  bool leaves = false;  // some device needs elements below zero or beyond the end
};

// What a device asks its neighbours for, where uneven pieces become smaller, or larger, ones.
Span SpanToRefine(const Mesh& mesh, const Shape& whole, const Move& move);
Span SpanToCoarsen(const Mesh& mesh, const Shape& whole, const Spec& before, const Move& move);

// A dimension of `whole` elements in n pieces.
Halo PlanHalo(int64_t whole, int64_t n, const Span& span);
// Elements that leave a device, on average; more than any other way costs where too many neighbours would be asked.
double ElementsSent(int64_t whole, int64_t n, const Span& span);

// What the span says, of a value whose dimension d has `whole` elements and is cut along the axes; elsewhere `fill`, a
// scalar, or, where that is null, anything. `is_whole`: the "shard" has all elements; the span does not go around.
Instruction* TakeSpan(Builder& b, Resharder& resharder, Instruction* shard, int64_t whole, int64_t d, const Axes& axes,
                      const Span& span, Instruction* fill, bool is_whole = false);

}  // namespace strop::spmd
