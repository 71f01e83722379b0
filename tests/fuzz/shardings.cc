#include "tests/fuzz/shardings.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "strop/driver/compile.h"
#include "strop/passes/pipeline.h"
#include "strop/runtime/collectives.h"
#include "strop/runtime/launch.h"
#include "strop/spmd/partitioner.h"
#include "strop/spmd/shards.h"
#include "tests/fuzz/random.h"

namespace strop::fuzz {
namespace {

constexpr int64_t kPartitions[] = {2, 3, 4, 6, 8};

bool NamesDevices(const Module& module) {
  for (const Computation* c : module.computations())
    for (const Instruction* i : c->instructions())
      if (Is(i->op(), kCollective | kAsync | kSideEffect) || i->op() == Op::PartitionId || i->op() == Op::ReplicaId ||
          !i->shape().IsStatic())
        return true;
  return false;
}

// Axes of the devices, in an order of their own; each goes to a dimension or to nobody.
Sharding RandomSharding(const Shape& shape, const std::vector<int64_t>& axes, bool list, Random& random) {
  Sharding out;
  if (shape.rank() == 0) return out;
  out.kind = ShardingKind::Tiled;
  std::vector<std::vector<int64_t>> dims(shape.rank() + 1);
  for (int64_t axis = 0; axis < static_cast<int64_t>(axes.size()); ++axis) {
    const int64_t d = random.Below(shape.rank() + 1);
    int64_t tiles = axes[axis];
    for (int64_t other : dims[d]) tiles *= axes[other];
    const bool fits = d < shape.rank() && (shape.dim(d) % tiles == 0 || (random.Chance(20) && shape.dim(d) >= tiles));
    dims[fits ? d : shape.rank()].push_back(axis);
  }
  bool whole = true;
  for (std::vector<int64_t>& dim : dims) {
    random.Shuffle(dim);
    int64_t tiles = 1;
    for (int64_t axis : dim) tiles *= axes[axis];
    out.tile_dims.push_back(tiles);
    out.iota_transpose_perm.insert(out.iota_transpose_perm.end(), dim.begin(), dim.end());
    whole = whole && (tiles == 1 || &dim == &dims.back());
  }
  if (whole) return {};
  out.iota_reshape_dims = axes;
  if (out.tile_dims.back() == 1) {
    out.tile_dims.pop_back();
  } else {
    out.replicate_on_last_tile_dim = true;
  }
  if (!list) return out;
  out.devices = out.TileDevices();
  const auto n = static_cast<int64_t>(out.devices.size());
  for (int64_t& device : out.devices) device = n - 1 - device;
  out.iota_reshape_dims.clear();
  out.iota_transpose_perm.clear();
  return out;
}

void Constrain(Computation& computation, Instruction* value, Sharding sharding) {
  CustomCallAttrs mark;
  mark.target = "Sharding";
  const std::vector<Use> uses(value->uses().begin(), value->uses().end());
  Instruction* call = computation.Add(Op::CustomCall, value->shape(), {value}, std::move(mark), {}, value->next());
  call->set_sharding(std::move(sharding));
  for (const Use& use : uses) use.user->SetOperand(use.operand_number, call);
  if (computation.root() == value) computation.set_root(call);
}

// Element by element: index of the whole value for an index in a shard; -1 in padding.
template <class F>
void ForEachElement(const Shape& whole, const Shape& shard, const std::vector<int64_t>& tile, F&& visit) {
  const int64_t count = shard.num_elements();
  for (int64_t at = 0; at < count; ++at) {
    int64_t rest = at, index = 0, stride = 1;
    bool inside = true;
    for (int64_t d = shard.rank(); d-- > 0;) {
      const int64_t i = tile[d] * shard.dim(d) + rest % shard.dim(d);
      rest /= shard.dim(d);
      inside = inside && i < whole.dim(d);
      index += i * stride;
      stride *= whole.dim(d);
    }
    visit(at, inside ? index : -1);
  }
}

// Which tile a partition holds, as [dimension].
std::vector<int64_t> TileOf(const spmd::Tiling& tiling, int64_t partition) {
  const auto place = std::find(tiling.devices.begin(), tiling.devices.end(), partition) - tiling.devices.begin();
  int64_t tile = place / tiling.copies;
  std::vector<int64_t> out(tiling.tiles.size());
  for (size_t d = out.size(); d-- > 0;) {
    out[d] = tile % tiling.tiles[d];
    tile /= tiling.tiles[d];
  }
  return out;
}

Result<Buffer> ShardOf(const Literal& whole, const spmd::Tiling& tiling, int64_t partition, Device& device) {
  const Shape shard = spmd::ShardShape(whole.shape(), tiling);
  STROP_ASSIGN(Ref<Storage> storage, Storage::Allocate(device.allocator(), shard.byte_size()));
  auto* bytes = static_cast<uint8_t*>(storage->data());
  const int64_t size = Bytes(shard.type());
  // Padding is what would be seen if it came through.
  std::memset(bytes, shard.type() == ElementType::Pred ? 1 : 0xff, shard.byte_size());
  ForEachElement(whole.shape(), shard, TileOf(tiling, partition), [&](int64_t at, int64_t from) {
    if (from >= 0) std::memcpy(bytes + at * size, whole.bytes().data() + from * size, size);
  });
  return Buffer(std::move(storage), shard, device.ordinal(), MemoryKind::kDevice, Event::Ready());
}

Result<std::vector<Sharding>> Decided(const Module& module, const char* attribute, size_t count) {
  const auto found = module.config().frontend_attributes.find(attribute);
  if (found == module.config().frontend_attributes.end()) return std::vector<Sharding>(count);
  STROP_ASSIGN(Sharding all, ParseSharding(found->second));
  return std::move(all.elements);
}

// What all partitions returned of one leaf.
Result<Literal> Join(const Shape& whole, const Sharding& sharding, const std::vector<Launched>& launched, size_t leaf) {
  const auto partitions = static_cast<int64_t>(launched.size());
  STROP_ASSIGN(spmd::Tiling tiling, spmd::TilingOf(&sharding, whole, partitions));
  STROP_ASSIGN(Literal out, Literal::Zeros(whole));
  std::vector<bool> written(whole.num_elements(), false);
  const int64_t size = Bytes(whole.type());
  const Shape shard = spmd::ShardShape(whole, tiling);
  std::string differs;
  for (int64_t p = 0; p < partitions; ++p) {
    const Buffer& buffer = launched[p].outputs[leaf];
    STROP_TRY(buffer.definition()->Await());
    if (!buffer.shape().SameDims(shard))
      return Internal("result ", leaf, " is ", buffer.shape(), " on each device instead of ", shard);
    STROP_ASSIGN(Ref<Storage> storage, buffer.Acquire());
    const auto* bytes = static_cast<const uint8_t*>(storage->data());
    ForEachElement(whole, shard, TileOf(tiling, p), [&](int64_t at, int64_t to) {
      if (to < 0) return;
      uint8_t* target = out.mutable_bytes().data() + to * size;
      if (written[to] && std::memcmp(target, bytes + at * size, size) != 0)
        differs = StrCat("result ", leaf, " at ", to, " differs between devices");
      written[to] = true;
      std::memcpy(target, bytes + at * size, size);
    });
  }
  if (!differs.empty()) return Internal(differs);
  return out;
}

Result<Literal> Assemble(const Shape& shape, const std::vector<Sharding>& shardings,
                         const std::vector<Launched>& launched, size_t& leaf) {
  if (!shape.IsTuple()) {
    const size_t k = leaf++;
    return shape.IsArray() ? Join(shape, shardings[k], launched, k) : Literal::Token();
  }
  std::vector<Literal> elements;
  for (const Shape& element : shape.elements()) {
    STROP_ASSIGN(Literal literal, Assemble(element, shardings, launched, leaf));
    elements.push_back(std::move(literal));
  }
  return Literal::Tuple(std::move(elements));
}

}  // namespace

std::unique_ptr<Module> WithShardings(const Module& module, uint64_t seed) {
  if (NamesDevices(module)) return nullptr;
  Random random(seed ^ 0x5a5a5a5a);
  std::unique_ptr<Module> out = module.Clone();
  ModuleConfig& config = out->config();
  config.num_partitions = kPartitions[random.Below(std::size(kPartitions))];
  std::vector<int64_t> axes;
  for (int64_t left = config.num_partitions, prime = 2; left > 1; left % prime == 0 ? left /= prime : ++prime)
    if (left % prime == 0) axes.push_back(prime);
  random.Shuffle(axes);
  const bool list = random.Chance(15);
  config.allow_spmd_sharding_propagation_to_parameters = {random.Chance(50)};
  config.allow_spmd_sharding_propagation_to_output = {random.Chance(70)};
  for (Computation* c : out->computations()) {
    const bool entry = c == out->entry();
    // Scalar computations of reductions and the like have nothing to cut; loops and branches do.
    for (Instruction* i : c->PostOrder()) {
      if (!i->shape().IsArray() || i->shape().rank() == 0) continue;
      if (entry && i->IsParameter()) {
        if (random.Chance(60)) i->set_sharding(RandomSharding(i->shape(), axes, list, random));
      } else if (random.Chance(15)) {
        Constrain(*c, i, RandomSharding(i->shape(), axes, list, random));
      }
    }
  }
  const Instruction* root = out->entry()->root();
  if (random.Chance(40) && root->op() == Op::Tuple) {
    Sharding all{.kind = ShardingKind::Tuple};
    for (const Shape& leaf : root->shape().Leaves())
      all.elements.push_back(leaf.IsArray() ? RandomSharding(leaf, axes, list, random) : Sharding{});
    out->entry()->root()->set_sharding(std::move(all));
  }
  return out;
}

Result<std::unique_ptr<Module>> OnOneDevice(const Module& sharded) {
  std::unique_ptr<Module> out = sharded.Clone();
  out->config().num_partitions = 1;
  PassPipeline pipeline("one-device");
  pipeline.Add(PassId::SingleDevice);
  PassContext context;
  STROP_TRY(pipeline.Run(*out, context));
  return out;
}

Result<Literal> RunOnDevices(const Module& sharded, const std::vector<Literal>& arguments, const Backend& backend) {
  const auto partitions = static_cast<int32_t>(sharded.config().num_partitions);
  const Shape result = sharded.entry()->root()->shape().WithoutLayout();
  STROP_ASSIGN(std::unique_ptr<DeviceSet> devices, backend.OpenDevices(partitions, ThreadPool::Default()));
  CompileSettings settings;
  settings.verify_each = true;
  settings.pool = &devices->pool();
  std::unique_ptr<Module> module = sharded.Clone();
  EntryLayout layout = module->EffectiveEntryLayout();
  for (Shape& parameter : layout.parameters) parameter = parameter.WithoutLayout().WithDefaultLayout();
  layout.result = result.WithDefaultLayout();
  module->config().entry_layout = std::move(layout);
  module->config().has_entry_layout = true;
  STROP_ASSIGN(std::shared_ptr<const CompiledProgram> program, Compile(std::move(module), backend, settings));
  STROP_ASSIGN(std::shared_ptr<const Module> compiled, program->module->Get());
  STROP_ASSIGN(std::vector<Sharding> given, Decided(*compiled, spmd::kParameterShardings, arguments.size()));
  STROP_ASSIGN(std::vector<Sharding> returned, Decided(*compiled, spmd::kResultShardings, result.Leaves().size()));
  auto assignment = std::make_shared<DeviceAssignment>();
  assignment->num_replicas = 1;
  assignment->num_partitions = partitions;
  for (int32_t p = 0; p < partitions; ++p) assignment->devices.push_back(p);
  std::shared_ptr<Collectives> collectives = MakeInProcessCollectives();
  std::vector<std::vector<Buffer>> buffers(partitions);
  std::vector<Launched> launched;
  for (int32_t p = 0; p < partitions; ++p) {
    std::vector<Buffer*> inputs;
    for (size_t k = 0; k < arguments.size(); ++k) {
      STROP_ASSIGN(spmd::Tiling tiling, spmd::TilingOf(&given[k], arguments[k].shape(), partitions));
      STROP_ASSIGN(Buffer shard, ShardOf(arguments[k], tiling, p, devices->device(p)));
      buffers[p].push_back(std::move(shard));
    }
    for (Buffer& buffer : buffers[p]) inputs.push_back(&buffer);
    Result<Launched> one = Launch(program->executable, {.inputs = inputs,
                                                        .devices = devices.get(),
                                                        .device = &devices->device(p),
                                                        .assignment = assignment,
                                                        .partition = p,
                                                        .collectives = collectives,
                                                        .mode = LaunchMode::kAsync});
    if (!one.ok()) {
      collectives->Abort(one.status());
      return one.status();
    }
    launched.push_back(*std::move(one));
  }
  for (const Launched& one : launched) STROP_TRY(one.done->Await());
  size_t leaf = 0;
  return Assemble(result, returned, launched, leaf);
}

}  // namespace strop::fuzz
