#include "strop/plan/band.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "strop/plan/band_maker.h"
#include "strop/plan/values.h"

namespace strop {
namespace plan_internal {
namespace {

constexpr int64_t kBlockBytes = int64_t{256} << 10;      // of the values inside: they share the cache with what is read
constexpr int64_t kSummedBlockBytes = int64_t{1} << 20;  // each block reads and writes all the sums
constexpr int64_t kLeastBlock = 8;                       // rows, where a product has as many
constexpr int64_t kTasks = 16;                           // enough to be even among threads
constexpr int64_t kLeastSums = 8;                        // products of a batch that sum along the rows: each is a task

using Widths = std::unordered_map<const Instruction*, int64_t>;

// How many dimensions, from the first on, make the rows; -1: none do.
int64_t LeadingDims(const Shape& shape, int64_t rows) {
  int64_t product = 1, d = 0;
  while (product < rows && d < shape.rank()) product *= shape.dim(d++);
  return product == rows ? d : -1;
}

bool KeepsRows(const Instruction& broadcast, int64_t rows) {
  const Shape &from = broadcast.operand(0)->shape(), &to = broadcast.shape();
  const int64_t from_lead = LeadingDims(from, rows), to_lead = LeadingDims(to, rows);
  if (from_lead < 0 || to_lead < 0) return false;
  int64_t next = 0;  // dimension of the result
  for (int64_t d = 0; d < from.rank(); ++d) {
    const int64_t at = broadcast.dimensions()[static_cast<size_t>(d)];
    if ((d < from_lead) != (at < to_lead)) {
      if (from.dim(d) == 1) continue;
      return false;
    }
    if (d >= from_lead) continue;
    while (next < at && to.dim(next) == 1) ++next;
    if (at != next || from.dim(d) != to.dim(at)) return false;
    ++next;
  }
  return true;
}

// Are the rows of the operand reduced, each by itself?
bool ReducesWithinRows(const Instruction& reduce, int64_t rows, const WidthOf& of) {
  const int64_t inputs = reduce.operand_count() / 2;
  for (int64_t k = 0; k < inputs; ++k) {
    const int64_t lead = LeadingDims(reduce.operand(k)->shape(), rows);
    if (of(*reduce.operand(k)) <= 0 || of(*reduce.operand(inputs + k)) != kOutside || lead < 0) return false;
    for (int64_t d : reduce.dimensions())
      if (d < lead) return false;
  }
  return true;
}

bool TransposesWithinRows(const Instruction& transpose, int64_t rows) {
  const int64_t lead = LeadingDims(transpose.shape(), rows);
  for (int64_t d = 0; d < lead; ++d)
    if (transpose.dimensions()[static_cast<size_t>(d)] != d) return false;
  return lead >= 0 && LeadingDims(transpose.operand(0)->shape(), rows) == lead;
}

// Does the left operand have its dimensions in the order batch, free, contracting?
bool MultipliesRows(const Instruction& dot) {
  const auto& attrs = dot.attrs<DotAttrs>();
  const int64_t rank = dot.operand(0)->shape().rank(), batch = static_cast<int64_t>(attrs.lhs_batch.size()),
                sums = static_cast<int64_t>(attrs.lhs_contracting.size());
  for (int64_t d = 0; d < batch; ++d)
    if (attrs.lhs_batch[static_cast<size_t>(d)] != d) return false;
  for (int64_t d = 0; d < sums; ++d)
    if (attrs.lhs_contracting[static_cast<size_t>(d)] != rank - sums + d) return false;
  return true;
}

bool SumsRows(const Instruction& dot, int64_t rows, const WidthOf& of) {
  if (of(*dot.operand(0)) <= 0 || of(*dot.operand(1)) != kOutside) return false;
  const DotRows summed = SummedRowsOf(dot);
  return summed.rows == rows && rows / summed.of_product >= kLeastSums;
}

int64_t FusionWidth(const Instruction& fusion, int64_t rows, const WidthOf& of) {
  Widths inner;
  const WidthOf inner_of = [&](const Instruction& i) { return inner.at(&i); };
  for (const Instruction* i : fusion.called(0)->PostOrder()) {
    const int64_t width = i->IsParameter() ? of(*fusion.operand(i->parameter_number())) : RowWidth(*i, rows, inner_of);
    if (width == kMixed || width == kSummed) return kMixed;
    inner[i] = width;
  }
  return inner.at(fusion.called(0)->root());
}

}  // namespace

bool PassesOn(Op op) { return op == Op::Reshape || op == Op::Bitcast; }
bool IsRowMajor(const Shape& shape) { return !shape.has_layout() || shape.layout().IsRowMajor(); }

int64_t RowWidth(const Instruction& i, int64_t rows, const WidthOf& of) {
  bool by_rows = false;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const int64_t width = of(*i.operand(k));
    if (width == kMixed || width == kSummed || (width > 0 && !IsRowMajor(i.operand(k)->shape()))) return kMixed;
    by_rows |= width > 0;
  }
  if (!by_rows) return kOutside;
  const Shape& shape = i.shape();
  if (!shape.IsArray() || !shape.IsStatic()) return kMixed;
  if (i.op() == Op::Dot && SumsRows(i, rows, of)) return kSummed;
  if (shape.num_elements() % rows != 0) return kMixed;
  const int64_t width = shape.num_elements() / rows;
  switch (i.op()) {
    case Op::Reshape:
    case Op::Copy: return width;
    case Op::Bitcast: return IsRowMajor(shape) && shape.type() == i.operand(0)->shape().type() ? width : kMixed;
    case Op::Broadcast: return KeepsRows(i, rows) ? width : kMixed;
    case Op::Reduce: return ReducesWithinRows(i, rows, of) ? width : kMixed;
    case Op::Transpose: return TransposesWithinRows(i, rows) ? width : kMixed;
    case Op::Dot: return of(*i.operand(1)) == kOutside && MultipliesRows(i) && RowsOf(i).rows == rows ? width : kMixed;
    case Op::Fusion: return i.attrs<FusionAttrs>().kind == FusionKind::Custom ? kMixed : FusionWidth(i, rows, of);
    default:
      if (!IsElementwise(i.op())) return kMixed;
      for (int64_t k = 0; k < i.operand_count(); ++k)
        if (of(*i.operand(k)) > 0 && !i.operand(k)->shape().SameDims(shape)) return kMixed;
      return width;
  }
}

bool IsLargeOperand(const Instruction& i) {
  constexpr int64_t kLeastOperand = int64_t{1} << 20;  // bytes; less stays in the caches
  return i.shape().IsArray() && i.shape().IsStatic() && IsRowMajor(i.shape()) && i.shape().byte_size() >= kLeastOperand;
}

int64_t RowsOfLoops(const std::vector<const Instruction*>& inside) {
  const std::unordered_set<const Instruction*> members(inside.begin(), inside.end());
  const Shape* smallest = nullptr;
  for (const Instruction* i : inside) {
    if (!i->shape().IsArray() || !i->shape().IsStatic() || i->shape().num_elements() == 0) return 0;
    if (PassesOn(i->op())) continue;
    const Shape& shape = i->shape();
    const auto key = [](const Shape& x) { return std::pair(x.num_elements(), Int64Vector(x.dims())); };
    if (!smallest || key(shape) < key(*smallest)) smallest = &shape;
  }
  if (!smallest) return 0;
  int64_t rows = smallest->num_elements();
  const WidthOf of = [&](const Instruction& o) {
    const bool inner = members.contains(&o);
    if (!inner && !IsLargeOperand(o)) return kOutside;
    if (o.shape().num_elements() % rows != 0) return inner ? kMixed : kOutside;
    return o.shape().num_elements() / rows;
  };
  const auto by_rows = [&](const Instruction* i) {
    return i->shape().num_elements() % rows == 0 && RowWidth(*i, rows, of) != kMixed;
  };
  for (int64_t d = smallest->rank();; rows /= smallest->dim(--d)) {
    if (std::ranges::all_of(inside, by_rows)) return rows;
    if (d == 0) return 0;
  }
}

int64_t ChooseBlock(const Band& band) {
  const bool loops = band.is_of_loops();
  const auto bytes_of_row = [&](const Instruction& m) { return band.widths.at(&m) * Bytes(m.shape().type()); };
  int64_t product_rows = band.summed, row_bytes = loops ? 0 : PlaceValues(band, bytes_of_row).bytes;
  for (const Instruction* m : band.members) {
    if (m->op() == Op::Dot && !band.IsSum(m)) product_rows = std::gcd(product_rows, RowsOf(*m).of_product);
    if (loops) row_bytes += bytes_of_row(*m);
  }
  if (loops) {
    for (const Instruction* o : band.Operands()) row_bytes += o->shape().byte_size() / band.rows;
    product_rows = band.rows;
  }
  const int64_t least = loops ? 1 : kLeastBlock;
  const int64_t most_bytes = band.summed > 0 ? kSummedBlockBytes : kBlockBytes;
  const int64_t most = std::max<int64_t>(most_bytes / std::max<int64_t>(row_bytes, 1), least);
  int64_t block = 0;
  for (int64_t rows = std::min(least, product_rows); rows <= std::min(most, product_rows); ++rows) {
    if (product_rows % rows != 0) continue;
    if (block == 0 || band.rows / rows >= kTasks) block = rows;
  }
  return block;
}

}  // namespace plan_internal

using namespace plan_internal;

DotRows RowsOf(const Instruction& dot) {
  const auto& attrs = dot.attrs<DotAttrs>();
  const Shape& lhs = dot.operand(0)->shape();
  DotRows rows{1, 1};
  for (int64_t d = 0; d < lhs.rank(); ++d) {
    const auto is_in = [d](const Dims& dims) { return std::find(dims.begin(), dims.end(), d) != dims.end(); };
    if (is_in(attrs.lhs_contracting)) continue;
    rows.rows *= lhs.dim(d);
    if (!is_in(attrs.lhs_batch)) rows.of_product *= lhs.dim(d);
  }
  return rows;
}

DotRows SummedRowsOf(const Instruction& dot) {
  const auto& attrs = dot.attrs<DotAttrs>();
  const Shape& lhs = dot.operand(0)->shape();
  DotRows summed{1, 1};
  int64_t next = 0;
  for (int64_t d : attrs.lhs_batch) {
    if (d != next++) return {};
    summed.rows *= lhs.dim(d);
  }
  for (int64_t d : attrs.lhs_contracting) {
    if (d != next++) return {};
    summed.rows *= lhs.dim(d);
    summed.of_product *= lhs.dim(d);
  }
  return next < lhs.rank() && summed.rows > 0 ? summed : DotRows{};
}

BandMemory PlaceValues(const Band& band, const std::function<int64_t(const Instruction&)>& bytes_of) {
  std::unordered_map<const Instruction*, size_t> last;  // member that reads a value
  for (size_t n = 0; n < band.members.size(); ++n)
    for (int64_t k = 0; k < band.members[n]->operand_count(); ++k) last[Band::Source(band.members[n]->operand(k))] = n;
  struct Piece {
    int64_t offset, end;
    size_t last;
  };
  std::vector<Piece> alive;  // by offset
  BandMemory memory;
  for (size_t n = 0; n < band.members.size(); ++n) {
    const Instruction* m = band.members[n];
    if (band.ResultOf(m) >= 0) continue;
    std::erase_if(alive, [n](const Piece& piece) { return piece.last < n; });
    const int64_t bytes = bytes_of(*m);
    int64_t offset = 0;
    size_t at = 0;
    while (at < alive.size() && alive[at].offset < offset + bytes) offset = alive[at++].end;
    alive.insert(alive.begin() + static_cast<std::ptrdiff_t>(at), {offset, offset + bytes, std::max(last[m], n)});
    memory.offsets[m] = offset;
    memory.bytes = std::max(memory.bytes, offset + bytes);
  }
  return memory;
}

const Instruction* Band::Source(const Instruction* value) {
  while (PassesOn(value->op())) value = value->operand(0);
  return value;
}

bool Band::is_of_loops() const {
  return std::ranges::none_of(members, [](const Instruction* m) { return m->op() == Op::Dot; });
}

std::vector<const Instruction*> Band::Operands() const {
  std::vector<const Instruction*> operands;
  for (const Instruction* m : members)
    for (int64_t k = 0; k < m->operand_count(); ++k) {
      const Instruction* source = m->operand(k);
      while (PassesOn(source->op()) && widths.contains(source)) source = source->operand(0);
      const auto is_known = [source](const auto& known) { return std::ranges::find(known, source) != known.end(); };
      if (!is_known(members) && !is_known(operands)) operands.push_back(source);
    }
  return operands;
}

int Band::ResultOf(const Instruction* member) const {
  const auto at = std::find(results.begin(), results.end(), member);
  return at == results.end() ? -1 : static_cast<int>(at - results.begin());
}

std::optional<Band> Band::Of(const Instruction& fusion) {
  if (fusion.op() != Op::Fusion || fusion.attrs<FusionAttrs>().kind != FusionKind::Custom) return std::nullopt;
  const Computation& inside = *fusion.called(0);
  Band band;
  const auto is_kernel = [&](const Instruction* i) {
    return !i->IsParameter() && !PassesOn(i->op()) && !(i == inside.root() && i->op() == Op::Tuple);
  };
  const std::vector<Instruction*> order = inside.PostOrder();
  const bool loops = fusion.backend_config() == kLoopBand;
  if (loops) {
    std::vector<const Instruction*> computed;
    for (const Instruction* i : order)
      if (is_kernel(i) || PassesOn(i->op())) computed.push_back(i);
    band.rows = RowsOfLoops(computed);
    if (band.rows == 0) return std::nullopt;
  }
  const WidthOf of = [&](const Instruction& i) { return band.widths.at(&i); };
  for (const Instruction* i : order) {
    if (i == inside.root() && i->op() == Op::Tuple) continue;
    int64_t width = kOutside;
    if (!i->IsParameter()) {
      width = RowWidth(*i, std::max<int64_t>(band.rows, 1), of);
      if (i->op() == Op::Dot && width == kOutside) {
        const int64_t rows = RowsOf(*i).rows;
        if (rows == 0 || (band.rows != 0 && rows != band.rows)) return std::nullopt;
        band.rows = rows;
        width = i->shape().num_elements() / rows;
      }
      if (loops && width == kOutside && i->shape().num_elements() % band.rows == 0)
        width = i->shape().num_elements() / band.rows;
      if (width == kSummed) {
        const int64_t summed = SummedRowsOf(*i).of_product;
        if (band.summed != 0 && band.summed != summed) return std::nullopt;
        band.summed = summed;
      } else if (width <= 0) {
        return std::nullopt;
      }
      if (!PassesOn(i->op())) band.members.push_back(i);
    }
    band.widths[i] = width;
  }
  const Instruction* root = inside.root();
  if (root->op() != Op::Tuple) band.results.push_back(root);
  for (int64_t k = 0; root->op() == Op::Tuple && k < root->operand_count(); ++k)
    band.results.push_back(root->operand(k));
  if (!std::all_of(band.results.begin(), band.results.end(), is_kernel)) return std::nullopt;
  for (const Instruction* m : band.members)
    if (band.IsSum(m) && band.ResultOf(m) < 0) return std::nullopt;
  band.block = ChooseBlock(band);
  if (band.block == 0) return std::nullopt;
  return band;
}

namespace plan_internal {

void FormBands(Module& module, Computation& computation, const TargetInfo& target, std::vector<FusionLimit>* limits) {
  if (!target.joins_band) return;
  FormProductBands(module, computation, target, limits);
  FormLoopBands(module, computation, target, limits);
}

}  // namespace plan_internal

}  // namespace strop
