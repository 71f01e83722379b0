#include "strop/spmd/mesh.h"

#include <algorithm>
#include <numeric>

namespace strop::spmd {

bool Contains(const Axes& axes, uint8_t axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

bool Overlap(const Axes& a, const Axes& b) {
  return std::any_of(a.begin(), a.end(), [&](uint8_t axis) { return Contains(b, axis); });
}

bool IsPrefix(const Axes& prefix, const Axes& of) {
  return prefix.size() <= of.size() && std::equal(prefix.begin(), prefix.end(), of.begin());
}

bool Spec::whole() const {
  return unreduced.empty() && std::all_of(dims.begin(), dims.end(), [](const Axes& axes) { return axes.empty(); });
}

bool Spec::Uses(uint8_t axis) const {
  return Contains(unreduced, axis) ||
         std::any_of(dims.begin(), dims.end(), [axis](const Axes& axes) { return Contains(axes, axis); });
}

namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t SmallestPrime(int64_t n) {
  for (int64_t p = 2; p * p <= n; ++p)
    if (n % p == 0) return p;
  return n;
}

bool IsPermutation(const std::vector<int64_t>& list) {
  std::vector<bool> seen(list.size(), false);
  for (int64_t k : list) {
    if (k < 0 || k >= static_cast<int64_t>(list.size()) || seen[k]) return false;
    seen[k] = true;
  }
  return true;
}

// Visits the tilings in a sharding.
template <class F>
void ForEachTiling(const Sharding& sharding, F&& visit) {
  if (sharding.kind == ShardingKind::Tiled) visit(sharding);
  for (const Sharding& element : sharding.elements) ForEachTiling(element, visit);
}

}  // namespace

// The places that a list of devices runs through, as digits: {0,4,1,5,2,6,3,7} is a digit of 4 with stride 1, below it
// one of 2 with stride 4. Nothing if the list is not of that form.
std::optional<std::vector<Mesh::Piece>> Mesh::PiecesOfList(const std::vector<int64_t>& devices) const {
  std::vector<int64_t> list = devices;
  if (!place_of_.empty())
    for (int64_t& device : list) device = place_of_[device];
  if (list.empty() || list[0] != 0) return std::nullopt;
  std::vector<Piece> pieces;  // minor to major
  for (size_t done = 1; done < list.size();) {
    const int64_t stride = list[done];
    if (stride < 1) return std::nullopt;
    size_t count = 2;
    while (done * (count + 1) <= list.size() && list.size() % (done * (count + 1)) == 0 &&
           list[done * count] == static_cast<int64_t>(count) * stride)
      ++count;
    while (list.size() % (done * count) != 0) --count;
    if (count < 2) return std::nullopt;
    for (size_t i = done; i < done * count; ++i)
      if (list[i] != list[i % done] + static_cast<int64_t>(i / done) * stride) return std::nullopt;
    pieces.push_back({static_cast<int64_t>(count), stride});
    done *= count;
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

std::optional<std::vector<Mesh::Piece>> Mesh::PiecesOf(const Sharding& sharding) const {
  if (sharding.num_tiles() != num_devices_) return std::nullopt;
  if (sharding.iota_reshape_dims.empty() || !order_.empty()) {
    const std::vector<int64_t> devices = sharding.TileDevices();
    if (static_cast<int64_t>(devices.size()) != num_devices_ || !IsPermutation(devices)) return std::nullopt;
    return PiecesOfList(devices);
  }
  const std::vector<int64_t>& dims = sharding.iota_reshape_dims;
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  if (strides.empty() || strides[0] * dims[0] != num_devices_) return std::nullopt;
  std::vector<Piece> pieces;
  for (size_t i = 0; i < dims.size(); ++i) {
    const size_t from = sharding.iota_transpose_perm.empty() ? i : sharding.iota_transpose_perm[i];
    if (dims[from] > 1) pieces.push_back({dims[from], strides[from]});
  }
  return pieces;
}

// Adds the strides that the sharding needs, if they fit those that are there.
void Mesh::Collect(const Sharding& sharding, std::vector<int64_t>& strides) {
  std::optional<std::vector<Piece>> pieces = PiecesOf(sharding);
  if (!pieces) return;
  std::vector<int64_t> all = strides;
  for (const Piece& piece : *pieces) {
    all.push_back(piece.stride);
    all.push_back(piece.stride * piece.size);
  }
  // Where a tile dimension ends inside a piece, the piece is cut.
  size_t at = 0;
  int64_t left = pieces->empty() ? 1 : (*pieces)[0].size;
  for (int64_t size : sharding.tile_dims) {
    while (size > 1 && at < pieces->size()) {
      const int64_t taken = std::gcd(size, left);
      if (taken == 1 && left > 1) return;
      size /= taken;
      left /= taken;
      all.push_back((*pieces)[at].stride * left);
      if (left == 1 && ++at < pieces->size()) left = (*pieces)[at].size;
    }
    if (size > 1) return;
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (size_t i = 1; i < all.size(); ++i)
    if (all[i] % all[i - 1] != 0) return;
  strides = std::move(all);
}

Mesh Mesh::Of(const Module& module) {
  Mesh mesh;
  mesh.num_devices_ = module.config().num_partitions;
  std::vector<const Sharding*> stated;
  for (const Computation* c : module.computations())
    for (const Instruction* i : c->instructions())
      if (i->sharding()) ForEachTiling(*i->sharding(), [&](const Sharding& s) { stated.push_back(&s); });
  // The first list that is in no order of digits is the order of the grid.
  for (const Sharding* s : stated) {
    if (!s->iota_reshape_dims.empty() || s->num_tiles() != mesh.num_devices_) continue;
    if (!IsPermutation(s->devices) || mesh.PiecesOfList(s->devices)) continue;
    mesh.order_ = s->devices;
    mesh.place_of_.resize(s->devices.size());
    for (size_t place = 0; place < s->devices.size(); ++place)
      mesh.place_of_[s->devices[place]] = static_cast<int64_t>(place);
    break;
  }
  std::vector<int64_t> strides = {1, mesh.num_devices_};
  if (mesh.num_devices_ == 1) strides.pop_back();
  for (const Sharding* s : stated) mesh.Collect(*s, strides);
  for (size_t i = strides.size(); i-- > 1;) {
    int64_t stride = strides[i];
    for (int64_t size = strides[i] / strides[i - 1]; size > 1;) {
      const int64_t prime = SmallestPrime(size);
      stride /= prime;
      size /= prime;
      mesh.axes_.push_back({prime, stride});
    }
  }
  const FrontendAttributes& attributes = module.config().frontend_attributes;
  if (const auto meshes = attributes.find("xla.sdy.meshes"); meshes != attributes.end()) mesh.ReadNamed(meshes->second);
  return mesh;
}

// Of {mesh = #sdy.mesh<["a"=4, "b"=2]>, ...}: names and sizes, which are those of a grid in row-major order.
void Mesh::ReadNamed(const std::string& meshes) {
  constexpr std::string_view kMesh = " = #sdy.mesh<[";
  for (size_t at = meshes.find(kMesh); at != std::string::npos; at = meshes.find(kMesh, at + 1)) {
    const size_t before = meshes.find_last_of("{, ", at == 0 ? 0 : at - 1);
    const size_t begin = before == std::string::npos ? 0 : before + 1, end = meshes.find(']', at);
    const std::string mesh = begin <= at ? meshes.substr(begin, at - begin) : std::string();
    std::vector<std::pair<std::string, int64_t>> sizes;
    for (size_t k = meshes.find("\"=", at); k < end; k = meshes.find("\"=", k + 1)) {
      const size_t quote = meshes.rfind('"', k - 1);
      sizes.emplace_back(meshes.substr(quote + 1, k - quote - 1),
                         std::max<int64_t>(1, std::strtoll(meshes.c_str() + k + 2, nullptr, 10)));
    }
    int64_t stride = 1;
    for (size_t k = sizes.size(); k-- > 0 && stride <= num_devices_ / sizes[k].second; stride *= sizes[k].second)
      if (std::optional<Axes> axes = AxesOf({sizes[k].second, stride}); axes && !axes->empty())
        named_.push_back({mesh, sizes[k].first, *std::move(axes)});
  }
}

Axes Mesh::Named(std::string_view mesh, std::string_view name) const {
  for (const NamedAxis& axis : named_)
    if (axis.mesh == mesh && axis.name == name) return axis.axes;
  return {};
}

Spec Mesh::OfNamedAxes(Spec spec) const {
  for (Axes& axes : spec.dims) {
    if (named_.empty()) break;
    size_t whole = 0;
    for (bool found = true; found && whole < axes.size();) {
      const Axes rest(axes.begin() + whole, axes.end());
      const auto axis =
          std::find_if(named_.begin(), named_.end(), [&](const NamedAxis& a) { return IsPrefix(a.axes, rest); });
      found = axis != named_.end();
      if (found) whole += axis->axes.size();
    }
    axes.resize(whole);
  }
  return spec;
}

int64_t Mesh::SizeOf(const Axes& axes) const {
  int64_t size = 1;
  for (uint8_t axis : axes) size *= axes_[axis].size;
  return size;
}

std::optional<Axes> Mesh::AxesOf(const Piece& piece) const {
  Axes out;
  int64_t size = 1;
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].stride < piece.stride || axes_[i].stride >= piece.stride * piece.size) continue;
    out.push_back(static_cast<uint8_t>(i));
    size *= axes_[i].size;
  }
  const bool fits = size == piece.size && !out.empty() && axes_[out.back()].stride == piece.stride;
  return fits ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<Spec> Mesh::Read(const Sharding* sharding, const Shape& shape) const {
  if (!shape.IsArray()) return std::nullopt;
  Spec spec(shape.rank());
  if (!sharding || sharding->kind == ShardingKind::Replicated || sharding->kind == ShardingKind::Unknown) return spec;
  if (sharding->kind != ShardingKind::Tiled || !shape.IsStatic()) return std::nullopt;
  const std::vector<int64_t>& tiles = sharding->tile_dims;
  const size_t subgroups = sharding->replicate_on_last_tile_dim ? 1 : sharding->last_tile_dims.size();
  if (tiles.size() != static_cast<size_t>(shape.rank()) + subgroups) return std::nullopt;
  const std::optional<std::vector<Piece>> pieces = PiecesOf(*sharding);
  if (!pieces) return std::nullopt;
  Axes all;
  for (const Piece& piece : *pieces) {
    const std::optional<Axes> axes = AxesOf(piece);
    if (!axes) return std::nullopt;
    for (uint8_t axis : *axes) all.push_back(axis);
  }
  size_t at = 0;
  for (size_t d = 0; d < tiles.size(); ++d) {
    Axes axes;
    while (SizeOf(axes) < tiles[d] && at < all.size()) axes.push_back(all[at++]);
    if (SizeOf(axes) != tiles[d]) return std::nullopt;
    const size_t subgroup = d - static_cast<size_t>(shape.rank());
    if (d < static_cast<size_t>(shape.rank())) {
      spec.dims[d] = std::move(axes);
    } else if (!sharding->replicate_on_last_tile_dim && sharding->last_tile_dims[subgroup] == SubgroupKind::Unreduced) {
      for (uint8_t axis : axes) spec.unreduced.push_back(axis);
    }
  }
  return spec;
}

Sharding Mesh::Write(const Spec& spec) const {
  Sharding out;
  if (spec.whole()) return out;
  out.kind = ShardingKind::Tiled;
  std::vector<int64_t> order;  // axes as the tiles run through them
  for (const Axes& axes : spec.dims) {
    out.tile_dims.push_back(SizeOf(axes));
    order.insert(order.end(), axes.begin(), axes.end());
  }
  if (!spec.unreduced.empty()) {
    out.tile_dims.push_back(SizeOf(spec.unreduced));
    out.last_tile_dims.push_back(SubgroupKind::Unreduced);
    order.insert(order.end(), spec.unreduced.begin(), spec.unreduced.end());
  }
  const size_t used = order.size();
  for (size_t i = 0; i < axes_.size(); ++i)
    if (!spec.Uses(static_cast<uint8_t>(i))) order.push_back(static_cast<int64_t>(i));
  if (used < order.size()) {
    int64_t copies = 1;
    for (size_t i = used; i < order.size(); ++i) copies *= axes_[order[i]].size;
    out.tile_dims.push_back(copies);
    if (out.last_tile_dims.empty()) {
      out.replicate_on_last_tile_dim = true;
    } else {
      out.last_tile_dims.push_back(SubgroupKind::Replicated);
    }
  }
  // Axes that follow each other are one dimension of the iota.
  std::vector<std::pair<int64_t, int64_t>> runs;  // first axis, size
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t size = axes_[order[i]].size;
    if (i > 0 && order[i] == order[i - 1] + 1) {
      runs.back().second *= size;
    } else {
      runs.emplace_back(order[i], size);
    }
  }
  std::vector<size_t> sorted(runs.size()), position(runs.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::sort(sorted.begin(), sorted.end(), [&](size_t a, size_t b) { return runs[a].first < runs[b].first; });
  for (size_t i = 0; i < sorted.size(); ++i) {
    out.iota_reshape_dims.push_back(runs[sorted[i]].second);
    position[sorted[i]] = i;
  }
  if (!std::is_sorted(position.begin(), position.end()))
    out.iota_transpose_perm.assign(position.begin(), position.end());
  if (!order_.empty()) {
    out.devices = out.TileDevices();
    for (int64_t& device : out.devices) device = order_[device];
    out.iota_reshape_dims.clear();
    out.iota_transpose_perm.clear();
  }
  return out;
}

std::string Mesh::Text(const Spec& spec) const { return Write(spec).ToString(); }

Shape Mesh::ShardShape(const Shape& whole, const Spec& spec) const {
  Shape out = whole.WithoutLayout();
  for (int64_t d = 0; d < whole.rank(); ++d)
    if (!spec.dims[d].empty()) out.set_dim(d, CeilDiv(whole.dim(d), SizeOf(spec.dims[d])));
  return out;
}

int64_t Mesh::Coordinate(int64_t place, const Axes& axes) const {
  int64_t out = 0;
  for (uint8_t axis : axes) out = out * axes_[axis].size + place / axes_[axis].stride % axes_[axis].size;
  return out;
}

int64_t Mesh::PlaceAt(int64_t place, const Axes& axes, int64_t coordinate) const {
  for (size_t k = axes.size(); k-- > 0;) {
    const Axis& axis = axes_[axes[k]];
    place += (coordinate % axis.size - place / axis.stride % axis.size) * axis.stride;
    coordinate /= axis.size;
  }
  return place;
}

CollectiveAttrs Mesh::GroupsAlong(const Axes& axes, int64_t replicas) const {
  CollectiveAttrs attrs;
  attrs.channel_id = ChannelId(1);
  attrs.use_global_device_ids = true;
  ReplicaGroups& groups = attrs.replica_groups;
  groups.form = ReplicaGroups::Form::Iota;
  groups.group_size = SizeOf(axes);
  groups.num_groups = replicas * num_devices_ / groups.group_size;
  // Dimensions of the iota: replicas, then the axes, of which those that follow each other and go together are one.
  std::vector<int64_t> sizes, perm, inside;
  std::vector<int64_t> dim_of(axes_.size());
  if (replicas > 1) {
    sizes.push_back(replicas);
    perm.push_back(0);
  }
  auto place_in = [&](size_t i) {
    const auto* found = std::find(axes.begin(), axes.end(), static_cast<uint8_t>(i));
    return found == axes.end() ? -1 : found - axes.begin();
  };
  for (size_t i = 0; i < axes_.size(); ++i) {
    const int64_t here = place_in(i), before = i > 0 ? place_in(i - 1) : -2;
    const bool joins = i > 0 && (here < 0 ? before < 0 : before >= 0 && here == before + 1);
    if (joins) {
      sizes.back() *= axes_[i].size;
    } else {
      sizes.push_back(axes_[i].size);
      if (here < 0) perm.push_back(static_cast<int64_t>(sizes.size()) - 1);
    }
    dim_of[i] = static_cast<int64_t>(sizes.size()) - 1;
  }
  for (uint8_t axis : axes)
    if (inside.empty() || inside.back() != dim_of[axis]) inside.push_back(dim_of[axis]);
  perm.insert(perm.end(), inside.begin(), inside.end());
  if (std::is_sorted(perm.begin(), perm.end())) {
    groups.iota_reshape_dims = {replicas * num_devices_};
  } else {
    groups.iota_reshape_dims = std::move(sizes);
    groups.iota_transpose_perm = std::move(perm);
  }
  if (order_.empty()) return attrs;
  Result<std::vector<std::vector<int64_t>>> lists = groups.Expand();
  groups = {};
  if (!lists.ok()) return attrs;
  for (std::vector<int64_t>& list : *lists)
    for (int64_t& member : list) member = member / num_devices_ * num_devices_ + order_[member % num_devices_];
  groups.lists = *std::move(lists);
  return attrs;
}

}  // namespace strop::spmd
