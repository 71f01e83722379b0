// Carries of loops in regions that change places instead of being copied.
//
// The next value of a carry that is still read while that is computed lies in memory of its own, and is copied at the
// end of each trip. Where that memory holds nothing when a trip begins, the two exchange their addresses instead; and
// so do chains of carries, each of which becomes the next (the last two states of a wave):
//
//   while: body 2                                   while: body 2  rotates b4 b5
//     2: b5 = fusion %relax <- b4 ...          ->     2: b5 = fusion %relax <- b4 ...
//     2: b4 = copy %while <- b5
//
// When the loop has ended its carries are brought back to where the rest of the program expects them.
#include <algorithm>
#include <numeric>
#include <optional>

#include "strop/plan/values.h"

namespace strop::plan_internal {
namespace {

// Smaller carries are in registers, or copied by a few instructions.
constexpr int64_t kLeastRotatedBytes = (1 << 10) + 1;

bool Mentions(const RegionNode& node, int32_t buffer) {
  return std::find(node.args.begin(), node.args.end(), buffer) != node.args.end();
}

// Is there a value in the buffer that is read later?
class Liveness {
 public:
  Liveness(const Region& region, int32_t buffer) : region_(region), buffer_(buffer) {}

  bool BeforeProgram(int32_t program, bool after) const {
    const std::vector<RegionNode>& nodes = region_.programs[static_cast<size_t>(program)];
    return std::accumulate(nodes.rbegin(), nodes.rend(), after,
                           [&](bool live, const RegionNode& node) { return Before(node, live); });
  }
  // Where a trip of the loop begins.
  bool BeforeTrip(const RegionNode& loop, bool after_loop) const {
    bool live = false;
    for (int pass = 0; pass < 2; ++pass)  // what the next trip reads is alive at the end of this one
      live = BeforeProgram(loop.programs[0], after_loop || BeforeProgram(loop.programs[1], live));
    return live;
  }

 private:
  bool Before(const RegionNode& node, bool after) const {
    switch (node.kind) {
      case RegionNodeKind::kKernel: {
        const auto results = node.args.end() - static_cast<int64_t>(node.in_place.size());
        if (std::find(node.args.begin(), results, buffer_) != results) return true;
        return after && std::find(results, node.args.end(), buffer_) == node.args.end();
      }
      case RegionNodeKind::kCopy: return node.args[0] == buffer_ || (after && node.args[1] != buffer_);
      case RegionNodeKind::kWhile: return Mentions(node, buffer_) || BeforeTrip(node, after);
      case RegionNodeKind::kConditional:
        return Mentions(node, buffer_) || std::any_of(node.programs.begin(), node.programs.end(),
                                                      [&](int32_t p) { return BeforeProgram(p, after); });
    }
    return true;
  }

  const Region& region_;
  int32_t buffer_;
};

class RotationFinder {
 public:
  RotationFinder(Region& region, const MayRotate& may_rotate) : region_(region), may_rotate_(may_rotate) {}

  void Run() {
    // A loop whose trips are tasks has no end of a trip.
    for (size_t p = region_.tasks > 1 ? 1 : 0; p < region_.programs.size(); ++p)
      for (RegionNode& node : region_.programs[p])
        if (node.kind == RegionNodeKind::kWhile) Rotate(node);
  }

 private:
  void Rotate(RegionNode& loop) {
    std::vector<RegionNode>& body = region_.programs[static_cast<size_t>(loop.programs[1])];
    while (std::optional<std::vector<int32_t>> chain = Chain(loop, body)) {
      body.erase(std::remove_if(body.begin() + static_cast<int64_t>(Trailing(body)), body.end(),
                                [&](const RegionNode& copy) { return Follow(*chain, copy); }),
                 body.end());
      loop.rotations.push_back(std::move(*chain));
    }
  }

  // Where the copies at the end of a body begin.
  static size_t Trailing(const std::vector<RegionNode>& body) {
    size_t begin = body.size();
    while (begin > 0 && body[begin - 1].kind == RegionNodeKind::kCopy) --begin;
    return begin;
  }
  // Is the copy from one of the chain to the one before it?
  static bool Follow(const std::vector<int32_t>& chain, const RegionNode& copy) {
    const auto to = std::find(chain.begin(), chain.end(), copy.args[1]);
    return to != chain.end() && to + 1 != chain.end() && *(to + 1) == copy.args[0];
  }

  // Buffers c0, ..., cn, spare, each of which is copied to the one before it, in this order.
  std::optional<std::vector<int32_t>> Chain(const RegionNode& loop, const std::vector<RegionNode>& body) const {
    const size_t first = Trailing(body);
    for (size_t last = body.size(); last-- > first;) {
      if (!IsSpare(loop, body[last].args[0])) continue;
      std::vector<int32_t> chain{body[last].args[1], body[last].args[0]};
      for (size_t k = last; k-- > first;)
        if (body[k].args[0] == chain.front() && may_rotate_(body[k].args[1]))
          chain.insert(chain.begin(), body[k].args[1]);
      if (MovesTogether(chain, body, first) && !MeetsAnother(loop, chain)) return chain;
    }
    return std::nullopt;
  }

  // All of a size, each of the loop's own once, and no other copy reads or writes them once the first of theirs has
  // run.
  bool MovesTogether(const std::vector<int32_t>& chain, const std::vector<RegionNode>& body, size_t first) const {
    for (size_t k = 0; k < chain.size(); ++k) {
      if (!may_rotate_(chain[k]) || Size(chain[k]) != Size(chain[0]) || Size(chain[k]) < kLeastRotatedBytes ||
          std::count(chain.begin(), chain.end(), chain[k]) > 1)
        return false;
    }
    size_t followed = 0;
    for (size_t k = first; k < body.size(); ++k) {
      if (Follow(chain, body[k])) {
        if (body[k].args[1] != chain[followed]) return false;
        ++followed;
      } else if (followed > 0 &&
                 std::any_of(chain.begin(), chain.end(), [&](int32_t c) { return Mentions(body[k], c); })) {
        return false;
      }
    }
    return followed + 1 == chain.size();
  }

  int64_t Size(int32_t buffer) const { return region_.buffers[static_cast<size_t>(buffer)].size; }

  // The loop's alone, and empty when a trip begins.
  bool IsSpare(const RegionNode& loop, int32_t buffer) const {
    const RegionBuffer& b = region_.buffers[static_cast<size_t>(buffer)];
    if (b.loaded || b.stored || Liveness(region_, buffer).BeforeTrip(loop, false)) return false;
    std::vector<bool> inside(region_.programs.size());
    MarkInside(loop, inside);
    for (size_t p = 0; p < region_.programs.size(); ++p)
      for (const RegionNode& node : region_.programs[p])
        if (!inside[p] && Mentions(node, buffer)) return false;
    return true;
  }
  static bool MeetsAnother(const RegionNode& loop, const std::vector<int32_t>& chain) {
    return std::any_of(loop.rotations.begin(), loop.rotations.end(), [&](const std::vector<int32_t>& other) {
      return std::find_first_of(other.begin(), other.end(), chain.begin(), chain.end()) != other.end();
    });
  }
  void MarkInside(const RegionNode& node, std::vector<bool>& inside) const {
    for (int32_t p : node.programs) {
      inside[static_cast<size_t>(p)] = true;
      for (const RegionNode& inner : region_.programs[static_cast<size_t>(p)]) MarkInside(inner, inside);
    }
  }

  Region& region_;
  const MayRotate& may_rotate_;
};

}  // namespace

void RotateCarries(Region& region, const MayRotate& may_rotate) { RotationFinder(region, may_rotate).Run(); }

}  // namespace strop::plan_internal
