// From one sharding of a value to another, by the cheapest sequence of moves that is known here.
//
//   {[2 axes x,y],[]} -> {[x],[y]}     all-to-all along y
//   {[x],[]} -> {[],[]}                all-gather along x
//   {[],[]} unreduced x -> {[x],[]}    reduce-scatter along x
//   {[x],[]} -> {[y],[]}               collective-permute, where x and y are of one size
//   {[],[]} -> {[x],[]}                a slice, which moves nothing
//   {[x],[]} -> {[],[]} unreduced x    each device's piece among zeros, which moves nothing either
//
//   {[x],[]} -> {[x,y],[]}, uneven     what lies beyond the own piece from neighbours, then a slice
//   {[x,y],[]} -> {[x],[]}, uneven     the same, then an all-gather along y
//
// Uneven pieces are padded to be of one size. Where most of what an all-gather joined were padding, as of 2 rows in 8
// pieces, the bits of all pieces, each where it belongs, are summed instead, of several dimensions at once.
#pragma once
#include <map>

#include "strop/ir/builder.h"
#include "strop/spmd/mesh.h"

namespace strop::spmd {

struct Move {
  enum class Kind : uint8_t {
    Slice,
    AllGather,
    SumOfPieces,
    AllToAll,
    Permute,
    AllReduce,
    ReduceScatter,
    FirstPart,
    Place,
    Refine,  // uneven pieces into smaller ones
    Coarsen  // and into larger ones
  };
  Kind kind;
  Axes axes;        // along which devices exchange; Permute: none; Refine, Coarsen: that cut it in addition, or no more
  int64_t dim = 0;  // that is gathered, scattered or cut; AllToAll: gathered; SumOfPieces: none
  int64_t dim2 = 0;  // AllToAll: cut
  Spec after;
};

// What leaves each device, in bytes.
double BytesOf(const Mesh& mesh, const Shape& whole, const Spec& before, const Move& move);

std::vector<Move> PlanReshard(const Mesh& mesh, const Shape& whole, const Spec& from, const Spec& to);
double ReshardBytes(const Mesh& mesh, const Shape& whole, const Spec& from, const Spec& to);

// The forms that a value has on the way, the last one included.
using Trail = std::vector<std::pair<Spec, Instruction*>>;

// Makes the instructions of moves.
class Resharder {
 public:
  Resharder(const Mesh& mesh, int64_t replicas) : mesh_(mesh), replicas_(replicas) {}

  // `combiner` is how parts become the value.
  Instruction* Reshard(Builder& b, Instruction* shard, const Shape& whole, const Spec& from, const Spec& to,
                       Op combiner = Op::Add, Trail* trail = nullptr);
  // The device's coordinate along the axes, s32[]. Made once a computation.
  Instruction* Coordinate(Builder& b, const Axes& axes);
  // True on the first device along the axes.
  Instruction* IsFirst(Builder& b, const Axes& axes);
  // shard[.., i, ..] where i, in dimension d of the whole value, is below its size; `fill`, a scalar, elsewhere.
  Instruction* Mask(Builder& b, Instruction* shard, const Shape& whole, const Axes& axes, int64_t d, Instruction* fill);
  // Each device's value goes to others: `ways` are coordinates along the axes, from and to. Who is sent nothing has
  // zeros.
  Instruction* Send(Builder& b, Instruction* value, const Axes& axes,
                    const std::vector<std::pair<int64_t, int64_t>>& ways);
  // All pieces along the axes, joined along dimension d.
  Instruction* Gather(Builder& b, Instruction* value, const Axes& axes, int64_t d);
  const Mesh& mesh() const { return mesh_; }
  int64_t moves() const { return moves_; }

 private:
  Instruction* Emit(Builder& b, Instruction* shard, const Shape& whole, const Spec& before, const Move& move,
                    Op combiner);
  Instruction* Slice(Builder& b, Instruction* shard, const Shape& whole, const Move& move);
  Instruction* AllGather(Builder& b, Instruction* shard, const Shape& whole, const Move& move);
  Instruction* Refine(Builder& b, Instruction* shard, const Shape& whole, const Spec& before, const Move& move);
  Instruction* Coarsen(Builder& b, Instruction* shard, const Shape& whole, const Spec& before, const Move& move);
  // Elements [start, + size) of dimension d.
  static Instruction* Cut(Builder& b, Instruction* value, int64_t d, Instruction* start, int64_t size);
  Instruction* Place(Builder& b, Instruction* piece, int64_t d, int64_t all, const Axes& axes);
  Instruction* SumOfPieces(Builder& b, Instruction* shard, const Shape& whole, const Spec& before, const Move& move);
  Instruction* AllToAll(Builder& b, Instruction* shard, const Shape& whole, const Move& move);
  Instruction* Permute(Builder& b, Instruction* shard, const Spec& before, const Move& move);
  Instruction* FirstPart(Builder& b, Instruction* shard, const Axes& axes);
  // The places of the grid along some axes, listed once: pairs of permutes are made of them.
  struct Line {
    std::vector<int64_t> coordinate;  // by place
    std::vector<int64_t> place;       // by coordinate, where all others are zero
  };
  const Line& LineAlong(const Axes& axes);
  // target[p]: the place to which place p sends, or -1.
  Instruction* Permuted(Builder& b, Instruction* value, const std::vector<int64_t>& target);
  Computation* Combiner(Module& module, Op op, ElementType type);
  Instruction* OwnPlace(Builder& b);

  const Mesh& mesh_;
  const int64_t replicas_;
  int64_t moves_ = 0;
  std::map<std::pair<const Computation*, Axes>, Instruction*> coordinates_;  // looked up only
  std::map<const Computation*, Instruction*> places_;
  std::map<std::pair<Op, ElementType>, Computation*> combiners_;
  std::map<Axes, Line> lines_;  // looked up only
};

}  // namespace strop::spmd
