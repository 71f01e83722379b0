// What is moved, in which order, from one sharding of a value to another.
#include <algorithm>

#include "strop/spmd/halo.h"
#include "strop/spmd/reshard.h"

namespace strop::spmd {
namespace {

using Kind = Move::Kind;

bool Divides(const Mesh& mesh, const Shape& whole, int64_t d, const Axes& axes) {
  return whole.dim(d) % mesh.SizeOf(axes) == 0;
}

Axes Joined(Axes a, const Axes& b) {
  for (uint8_t axis : b) a.push_back(axis);
  return a;
}

Axes From(const Axes& axes, size_t first) { return Axes(axes.begin() + first, axes.end()); }

size_t Common(const Axes& a, const Axes& b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

// Do numbers of as many bits tell its elements?
bool HasBits(const Shape& whole) { return !IsComplex(whole.type()) && Bits(whole.type()) >= 8; }

// Two devices sum in one exchange in either way, and an all-reduce is what people look for in a program for two.
constexpr int64_t kScatterFrom = 3;

class Planner {
 public:
  Planner(const Mesh& mesh, const Shape& whole, const Spec& from, const Spec& to)
      : mesh_(mesh), whole_(whole), to_(to), now_(from) {}

  std::vector<Move> Run() {
    Slices();
    Places();
    Reductions();
    while (now_.dims != to_.dims) {
      Slices();
      if (now_.dims == to_.dims) break;
      if (!PermuteAll() && !AllToAll() && !Uneven()) Gather();
    }
    for (uint8_t axis : to_.unreduced)
      if (!Contains(now_.unreduced, axis)) {
        now_.unreduced.push_back(axis);
        Push(Kind::FirstPart, Axes{axis}, 0);
      }
    return std::move(moves_);
  }

 private:
  void Push(Kind kind, Axes axes, int64_t dim, int64_t dim2 = 0) {
    moves_.push_back({kind, std::move(axes), dim, dim2, now_});
  }

  // Of dimension d: the axes that it lacks, as far as `usable` says, if what it has is a beginning of what it shall
  // have. Uneven dimensions are cut as a whole or not at all.
  template <class Usable>
  Axes Missing(int64_t d, Usable&& usable) const {
    const Axes &has = now_.dims[d], &wants = to_.dims[d];
    if (!IsPrefix(has, wants)) return {};
    Axes out;
    for (size_t k = has.size(); k < wants.size() && usable(wants[k]); ++k) out.push_back(wants[k]);
    const bool all = has.size() + out.size() == wants.size();
    if (!Divides(mesh_, whole_, d, wants) && !(has.empty() && all)) return {};
    return out;
  }

  void Slices() {
    for (int64_t d = 0; d < whole_.rank(); ++d) {
      Axes missing = Missing(d, [&](uint8_t axis) { return !now_.Uses(axis); });
      if (missing.empty()) continue;
      now_.dims[d] = Joined(now_.dims[d], missing);
      Push(Kind::Slice, std::move(missing), d);
    }
  }

  // What shall be unreduced along axes that cut it is so already, among zeros.
  void Places() {
    for (int64_t d = 0; d < whole_.rank(); ++d) {
      size_t keep = now_.dims[d].size();
      while (keep > 0 && Contains(to_.unreduced, now_.dims[d][keep - 1])) --keep;
      if (keep == now_.dims[d].size() || keep < Common(now_.dims[d], to_.dims[d])) continue;
      if (!Divides(mesh_, whole_, d, now_.dims[d])) continue;
      Axes placed = From(now_.dims[d], keep);
      now_.dims[d].resize(keep);
      now_.unreduced = Joined(now_.unreduced, placed);
      Push(Kind::Place, std::move(placed), d);
    }
  }

  void Reductions() {
    auto pending = [&](uint8_t axis) { return Contains(now_.unreduced, axis) && !Contains(to_.unreduced, axis); };
    auto settle = [&](const Axes& axes) {
      Axes rest;
      for (uint8_t axis : now_.unreduced)
        if (!Contains(axes, axis)) rest.push_back(axis);
      now_.unreduced = std::move(rest);
    };
    for (int64_t d = 0; d < whole_.rank(); ++d) {
      if (!Divides(mesh_, whole_, d, to_.dims[d]) || mesh_.SizeOf(now_.unreduced) < kScatterFrom) continue;
      Axes scattered = Missing(d, pending);
      if (scattered.empty()) continue;
      settle(scattered);
      now_.dims[d] = Joined(now_.dims[d], scattered);
      Push(Kind::ReduceScatter, std::move(scattered), d);
    }
    Axes rest;
    for (uint8_t axis : now_.unreduced)
      if (pending(axis)) rest.push_back(axis);
    if (rest.empty()) return;
    settle(rest);
    Push(Kind::AllReduce, std::move(rest), 0);
    Slices();
  }

  // Tiles of the same shape on other devices.
  bool PermuteAll() {
    for (int64_t d = 0; d < whole_.rank(); ++d)
      if (mesh_.SizeOf(now_.dims[d]) != mesh_.SizeOf(to_.dims[d])) return false;
    if (!now_.unreduced.empty()) return false;
    now_.dims = to_.dims;
    Push(Kind::Permute, {}, 0);
    return true;
  }

  bool AllToAll() {
    for (int64_t i = 0; i < whole_.rank(); ++i) {
      const Axes& has = now_.dims[i];
      const size_t common = Common(has, to_.dims[i]), end = Divides(mesh_, whole_, i, has) ? has.size() : 1;
      for (size_t first = common; first < end; ++first) {
        const Axes moved = From(has, first);
        for (int64_t j = 0; j < whole_.rank(); ++j) {
          if (j == i || !IsPrefix(Joined(now_.dims[j], moved), to_.dims[j])) continue;
          if (!Divides(mesh_, whole_, j, to_.dims[j]) && moved != to_.dims[j]) continue;
          now_.dims[i].resize(first);
          now_.dims[j] = Joined(now_.dims[j], moved);
          Push(Kind::AllToAll, moved, i, j);
          return true;
        }
      }
    }
    return false;
  }

  // Uneven pieces of one size from those of another: neighbours give what lies beyond the own ones, and devices that
  // hold parts of a larger piece join these. Not where that is more than to gather all.
  bool Uneven() {
    for (int64_t d = 0; d < whole_.rank(); ++d) {
      const Axes has = now_.dims[d], &wants = to_.dims[d];
      const bool even = Divides(mesh_, whole_, d, has) && Divides(mesh_, whole_, d, wants);
      if (has == wants || has.empty() || wants.empty() || even || !now_.unreduced.empty()) continue;
      const int64_t pieces = mesh_.SizeOf(has), wanted = mesh_.SizeOf(wants);
      std::vector<Move> moves;
      Spec at = now_;
      auto push = [&](Kind kind, Axes axes, Axes after) {
        at.dims[d] = std::move(after);
        moves.push_back({kind, std::move(axes), d, 0, at});
      };
      if (wanted > pieces && wanted % pieces == 0) {
        const Axes more = Others(wants, has, wanted / pieces, IsPrefix(has, wants));
        if (!more.empty() && Free(more, d)) push(Kind::Refine, more, Joined(has, more));
      } else if (pieces > wanted && pieces % wanted == 0) {
        const Axes fewer = Others(has, wants, pieces / wanted, IsPrefix(wants, has));
        if (fewer.empty() || !Free(wants, d)) continue;
        if (!IsPrefix(wants, has)) push(Kind::Permute, {}, Joined(wants, fewer));
        push(Kind::Coarsen, fewer, wants);
      }
      if (moves.empty() || Bytes(moves) >= GatherBytes(d)) continue;
      for (Move& move : moves) moves_.push_back(std::move(move));
      now_ = moves_.back().after;
      return true;
    }
    return false;
  }

  // Those of `axes` that are not among `but`, of so many devices, the last ones; none if there are no such. `all`: they
  // are what follows `but`.
  Axes Others(const Axes& axes, const Axes& but, int64_t devices, bool all) const {
    if (all) return From(axes, but.size());
    Axes out;
    for (size_t k = axes.size(); k-- > 0 && mesh_.SizeOf(out) < devices;)
      if (!Contains(but, axes[k])) out.insert(out.begin(), axes[k]);
    const bool free = std::none_of(out.begin(), out.end(), [&](uint8_t a) { return !Contains(axes, a); });
    return free && mesh_.SizeOf(out) == devices ? out : Axes{};
  }

  // Does none of them cut another dimension?
  bool Free(const Axes& axes, int64_t d) const {
    for (int64_t k = 0; k < whole_.rank(); ++k)
      if (k != d && Overlap(now_.dims[k], axes)) return false;
    return true;
  }

  double Bytes(const std::vector<Move>& moves) const {
    double bytes = 0;
    const Spec* before = &now_;
    for (const Move& move : moves) {
      bytes += BytesOf(mesh_, whole_, *before, move);
      before = &move.after;
    }
    return bytes;
  }

  double GatherBytes(int64_t d) const {
    Move gather{Kind::AllGather, now_.dims[d], d, 0, now_};
    gather.after.dims[d].clear();
    return BytesOf(mesh_, whole_, now_, gather);
  }

  void Gather() {
    std::vector<Move> gathers;
    const Spec before = now_;
    Axes all;
    double bytes = 0;
    for (int64_t d = 0; d < whole_.rank(); ++d) {
      size_t keep = Common(now_.dims[d], to_.dims[d]);
      // Uneven pieces do not join to larger ones of another size.
      const bool uneven = !Divides(mesh_, whole_, d, now_.dims[d]) || !Divides(mesh_, whole_, d, to_.dims[d]);
      if (now_.dims[d] == to_.dims[d]) continue;
      if (uneven) keep = 0;
      if (keep == now_.dims[d].size()) continue;
      Axes gathered = From(now_.dims[d], keep);
      all = Joined(std::move(all), gathered);
      const Spec from = now_;
      now_.dims[d].resize(keep);
      gathers.push_back({Kind::AllGather, std::move(gathered), d, 0, now_});
      bytes += BytesOf(mesh_, whole_, from, gathers.back());
    }
    const Move sum{Kind::SumOfPieces, std::move(all), 0, 0, now_};
    moves_.push_back(HasBits(whole_) && BytesOf(mesh_, whole_, before, sum) < bytes ? sum : std::move(gathers[0]));
    now_ = moves_.back().after;
  }

  const Mesh& mesh_;
  const Shape& whole_;
  const Spec& to_;
  Spec now_;
  std::vector<Move> moves_;
};

}  // namespace

Span SpanToRefine(const Mesh& mesh, const Shape& whole, const Move& move) {
  const int64_t all = mesh.ShardShape(whole, move.after).dim(move.dim) * mesh.SizeOf(move.axes);
  return {.scale = all, .offset = 0, .size = all};
}

// Piece e of the larger piece c begins `more` * c before piece c * n + e of the small ones.
Span SpanToCoarsen(const Mesh& mesh, const Shape& whole, const Spec& before, const Move& move) {
  const int64_t size = mesh.ShardShape(whole, before).dim(move.dim);
  const int64_t more = size * mesh.SizeOf(move.axes) - mesh.ShardShape(whole, move.after).dim(move.dim);
  const int64_t slack = more * (mesh.SizeOf(move.after.dims[move.dim]) - 1);
  return {.scale = size, .offset = -slack, .size = size + slack};
}

double BytesOf(const Mesh& mesh, const Shape& whole, const Spec& before, const Move& move) {
  const auto bytes = static_cast<double>(mesh.ShardShape(whole, before).byte_size());
  const auto n = static_cast<double>(mesh.SizeOf(move.axes));
  switch (move.kind) {
    case Kind::Slice:
    case Kind::Place:
    case Kind::FirstPart: return 0;
    case Kind::AllGather: return bytes * (n - 1);
    case Kind::SumOfPieces:
      return static_cast<double>(mesh.ShardShape(whole, move.after).byte_size()) * 2 * (n - 1) / n;
    case Kind::AllReduce: return bytes * 2 * (n - 1) / n;
    case Kind::ReduceScatter: return bytes * (n - 1) / n;
    case Kind::AllToAll: {
      Shape padded = mesh.ShardShape(whole, before);
      padded.set_dim(move.dim2, mesh.ShardShape(whole, move.after).dim(move.dim2) * mesh.SizeOf(move.axes));
      return static_cast<double>(padded.byte_size()) * (n - 1) / n;
    }
    case Kind::Permute: return bytes;
    case Kind::Refine:
    case Kind::Coarsen: {
      const bool refines = move.kind == Kind::Refine;
      const auto size = static_cast<double>(std::max<int64_t>(mesh.ShardShape(whole, before).dim(move.dim), 1));
      const Span span = refines ? SpanToRefine(mesh, whole, move) : SpanToCoarsen(mesh, whole, before, move);
      const double sent = ElementsSent(whole.dim(move.dim), mesh.SizeOf(before.dims[move.dim]), span);
      return bytes / size * sent + (refines ? 0 : bytes * (n - 1));
    }
  }
  return 0;
}

std::vector<Move> PlanReshard(const Mesh& mesh, const Shape& whole, const Spec& from, const Spec& to) {
  if (from == to) return {};
  return Planner(mesh, whole, from, to).Run();
}

double ReshardBytes(const Mesh& mesh, const Shape& whole, const Spec& from, const Spec& to) {
  double bytes = 0;
  const Spec* before = &from;
  const std::vector<Move> moves = PlanReshard(mesh, whole, from, to);
  for (const Move& move : moves) {
    bytes += BytesOf(mesh, whole, *before, move);
    before = &move.after;
  }
  return bytes;
}

}  // namespace strop::spmd
