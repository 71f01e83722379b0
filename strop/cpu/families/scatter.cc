// scatter, in place: the results have the operands' memory, each update is combined into it, in the order of the
// updates.
//
//   for each index vector:  start = indices[...];  if the whole window fits:  out[start + w] = combine(out[start + w],
//   update[w])
//
// Elements of one window are distinct, so vectors run along it, or along its rows if these are far from each other.
// Tasks are pieces of the window (a gradient of an embedding: of its columns): each walks all index vectors, so the
// order of combination is that of the updates for any number of tasks. If the indices are promised to be unique, short
// windows are shared out by index vector instead; if they come in batches, which never meet, by batch. Many sums into
// few places (counts, means of clusters) wait for each other; there, updates go to copies of the result in turns, and
// the copies are added up in the end.
#include <algorithm>

#include "strop/analysis/combiner.h"
#include "strop/codegen/kernel_frame.h"
#include "strop/cpu/kernel_family.h"

namespace strop::cpu {
namespace {

constexpr int64_t kTaskElements = 16 << 10;
constexpr int64_t kPieceBytes = 128;                   // of a window: two lines
constexpr int64_t kMaxPieces = 16;                     // of a window: each walks all indices, and other pages for each
constexpr int64_t kFetchedOperand = int64_t{1} << 20;  // bytes that the near caches do not hold
constexpr int64_t kTargetsAhead = 16, kUpdatesAhead = 8;  // memory answers within that many
constexpr int64_t kFetchedBytes = 4096;                   // of a window; the processor finds out what is behind

constexpr int64_t kTurns = 4;      // an addition to memory takes about as long as so many that do not wait
constexpr int64_t kShortRow = 64;  // elements of a window
constexpr int64_t kFewPlaces = 1024, kShortWindow = 256;  // bytes
constexpr int64_t kLeastUpdates = 64;

// Updates of so few elements are shorter than what a trip of a loop costs: some in one (1.9 cycles each, 3.4 alone).
constexpr int64_t kUpdatesATrip = 4, kFewElements = 4;
constexpr int64_t kFewRows = 8;  // of a window, without a loop

Decision Matches(const Instruction& kernel) {
  if (kernel.op() != Op::Scatter) return Decision::No(kOtherOp);
  for (int64_t k = 0; k < kernel.operand_count(); ++k) {
    const Shape& shape = kernel.operand(k)->shape();
    if (!shape.IsArray() || !shape.IsStatic()) return Decision::No("operand ", k, " is ", shape.ToString());
  }
  return CanInline(*kernel.called(0));
}

// Dimensions of the window that follow each other in memory, in the operand and in the updates, are one.
struct Geometry {
  int64_t inputs = 1;
  Int64Vector batch_dims, window_dims;         // sizes of the updates' dimensions of either kind, in order
  int64_t updates = 1, window = 1;             // how many
  Int64Vector operand_dims, updates_dims;      // sizes
  Int64Vector operand_window, updates_window;  // of each of them, which one of window_dims it is, or -1
  Int64Vector joined, unit;  // of each dimension of the operand: of operand_dims, and how many of its elements
};

Geometry GeometryOf(const Instruction& scatter) {
  const ScatterAttrs& a = scatter.attrs<ScatterAttrs>();
  Geometry g;
  g.inputs = (scatter.operand_count() - 1) / 2;
  const Shape &operand = scatter.operand(0)->shape(), &updates = scatter.operand(g.inputs + 1)->shape();
  std::vector<bool> joins(static_cast<size_t>(updates.rank()));  // the dimension before
  size_t next_window = 0;
  for (int64_t d = 0, before = -1; d < operand.rank(); ++d) {
    const bool in_window = !Contains(a.inserted_window_dims, d) && !Contains(a.input_batching_dims, d);
    const int64_t u = in_window ? a.update_window_dims[next_window++] : -1;
    const bool join = in_window && before >= 0 && u == before + 1 && updates.dim(u) == operand.dim(d);
    before = u;
    if (join) {
      joins[static_cast<size_t>(u)] = true;
      g.operand_dims.back() *= operand.dim(d);
      g.window_dims.back() *= operand.dim(d);
      for (int64_t e = d; e-- > 0 && g.joined[e] == g.joined.back();) g.unit[e] *= operand.dim(d);
    } else {
      g.operand_dims.push_back(operand.dim(d));
      g.operand_window.push_back(in_window ? static_cast<int64_t>(g.window_dims.size()) : -1);
      if (in_window) g.window_dims.push_back(updates.dim(u));
    }
    g.joined.push_back(static_cast<int64_t>(g.operand_dims.size()) - 1);
    g.unit.push_back(1);
  }
  int64_t window = 0;
  for (int64_t d = 0; d < updates.rank(); ++d) {
    const bool in_window = Contains(a.update_window_dims, d);
    (in_window ? g.window : g.updates) *= updates.dim(d);
    if (!in_window) g.batch_dims.push_back(updates.dim(d));
    if (joins[static_cast<size_t>(d)]) {
      g.updates_dims.back() *= updates.dim(d);
    } else {
      g.updates_dims.push_back(updates.dim(d));
      g.updates_window.push_back(in_window ? window++ : -1);
    }
  }
  return g;
}

// Index vectors of one batch, which follow each other, if batches are what the outermost dimension counts; else all.
int64_t UpdatesOfBatch(const Instruction& scatter, const Geometry& g) {
  const ScatterAttrs& a = scatter.attrs<ScatterAttrs>();
  const bool outermost = a.index_vector_dim != 0 && Contains(a.scatter_indices_batching_dims, 0);
  return outermost ? g.updates / g.batch_dims[0] : g.updates;
}

// Where the window of one index vector starts in the operand, and whether it fits.
struct Target {
  std::vector<LaneIndex> starts;
  ElementalEmitter::Condition fits;
};

Target EmitTarget(ElementalEmitter& e, const Instruction& scatter, const Geometry& g, const LaneIndex& update) {
  const ScatterAttrs& a = scatter.attrs<ScatterAttrs>();
  const Shape& operand = scatter.operand(0)->shape();
  const ArrayIndex batch = e.indices().Refactor(ArrayIndex{{update}, {g.updates}}, g.batch_dims);
  Target target;
  target.starts.assign(g.operand_dims.size(), e.indices().Constant(0));
  size_t next_window = 0;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    LaneIndex& start = target.starts[static_cast<size_t>(g.joined[d])];
    int64_t size = 1;
    if (Contains(a.input_batching_dims, d)) {
      const size_t k =
          std::find(a.input_batching_dims.begin(), a.input_batching_dims.end(), d) - a.input_batching_dims.begin();
      const int64_t dim = a.scatter_indices_batching_dims[k];
      start = batch.digits[static_cast<size_t>(dim > a.index_vector_dim ? dim - 1 : dim)];
    } else if (!Contains(a.inserted_window_dims, d)) {
      size = scatter.operand(g.inputs + 1)->shape().dim(a.update_window_dims[next_window++]);
    }
    const auto& map = a.scatter_dims_to_operand_dims;
    if (const auto mapped = std::find(map.begin(), map.end(), d); mapped != map.end()) {
      const LaneIndex index =
          e.EmitIndexComponent(scatter.operand(g.inputs), a.index_vector_dim, batch, mapped - map.begin());
      target.fits = e.Both(target.fits, e.InRange(index, std::max<int64_t>(operand.dim(d) - size + 1, 0)));
      // What joins the dimension before is whole: only 0 fits.
      if (d == 0 || g.joined[d - 1] != g.joined[d]) start = e.indices().Mul(index, g.unit[d]);
    }
  }
  return target;
}

// A window of several dimensions as rows whose elements are neighbours, both in the operand and in the updates: how
// long they are; the whole window if it is none.
int64_t RowOfWindow(const Geometry& g) {
  const int64_t last = static_cast<int64_t>(g.window_dims.size()) - 1;
  const bool rows = last > 0 && g.operand_window.back() == last && g.updates_window.back() == last;
  return rows && g.window_dims.back() > 1 ? g.window_dims.back() : g.window;
}

// The element `at` of the window at a target.
ArrayIndex PlaceOf(ElementalEmitter& e, const Geometry& g, const Target& target, const ArrayIndex& at) {
  const ArrayIndex window = e.indices().Refactor(at, g.window_dims);
  ArrayIndex place{{}, g.operand_dims};
  for (size_t d = 0; d < target.starts.size(); ++d) {
    const LaneIndex& start = target.starts[d];
    const int64_t k = g.operand_window[d];
    place.digits.push_back(k < 0 ? start : e.indices().Add(start, window.digits[static_cast<size_t>(k)]));
  }
  return place;
}

// Where windows are pieces of large operands' rows: targets come in no order, but are known before.
bool PaysToFetch(const Instruction& scatter, const Geometry& g) {
  const Shape& operand = scatter.operand(0)->shape();
  if (g.updates <= kTargetsAhead || operand.byte_size() <= kFetchedOperand || operand.rank() == 0) return false;
  return g.window == 1 || (g.operand_window.back() >= 0 && g.window_dims.back() == g.window);
}

// The element `at` of the window of `update`, in the updates.
ArrayIndex SourceOf(ElementalEmitter& e, const Geometry& g, const LaneIndex& update, const ArrayIndex& at) {
  const ArrayIndex batch = e.indices().Refactor(ArrayIndex{{update}, {g.updates}}, g.batch_dims);
  const ArrayIndex window = e.indices().Refactor(at, g.window_dims);
  ArrayIndex from{{}, g.updates_dims};
  size_t next_batch = 0;
  for (int64_t k : g.updates_window)
    from.digits.push_back(k < 0 ? batch.digits[next_batch++] : window.digits[static_cast<size_t>(k)]);
  return from;
}

// Fetches the elements from `first` on, `count` of them, of windows that are combined some time later: where they go,
// and, sooner needed as they come in order, what they are.
void FetchAhead(ElementalEmitter& e, const KernelFrame& frame, const Instruction& scatter, const Geometry& g, int level,
                llvm::Value* update, llvm::Value* first, int64_t count) {
  VectorBuilder& b = frame.b();
  const ArrayIndex at{{e.indices().Counter(first, level, 0, 1)}, {g.window}};
  const auto later = [&](int64_t by) {
    return e.indices().Counter(b.Binary(llvm::Intrinsic::umin, b.Add(update, b.I64(by)), b.I64(g.updates - 1)), level,
                               0, 1);
  };
  const Target target = EmitTarget(e, scatter, g, later(kTargetsAhead));
  const LaneIndex to = e.indices().Linear(PlaceOf(e, g, target, at));
  const LaneIndex from = e.indices().Linear(SourceOf(e, g, later(kUpdatesAhead), at));
  for (int64_t k = 0; k < g.inputs; ++k) {
    const ElementType type = scatter.operand(k)->shape().type();
    const int some = static_cast<int>(std::min(count, kFetchedBytes / std::max(1, Bytes(type))));
    e.elements().Fetch(frame.output(static_cast<size_t>(k)), type, to.base, some);
    e.elements().Fetch(frame.input(static_cast<size_t>(g.inputs + 1 + k)), type, from.base, some);
  }
}

using Memories = std::vector<ElementBuilder::Memory>;  // of the results, by number

// Combines the elements `at` of the window of `update`.
void EmitUpdate(ElementalEmitter& e, const Memories& results, const Instruction& scatter, const Geometry& g,
                const Target& target, const LaneIndex& update, const ArrayIndex& at) {
  const ArrayIndex to = PlaceOf(e, g, target, at), from = SourceOf(e, g, update, at);
  Vals args;
  for (int64_t k = 0; k < g.inputs; ++k)
    args.push_back(e.Load(results[static_cast<size_t>(k)], scatter.operand(k)->shape().type(), to));
  for (int64_t k = 0; k < g.inputs; ++k) args.push_back(e.Emit(scatter.operand(g.inputs + 1 + k), from));
  const Vals combined = e.Inline(*scatter.called(0), args);
  for (int64_t k = 0; k < g.inputs; ++k) e.Store(results[static_cast<size_t>(k)], combined[static_cast<size_t>(k)], to);
}

// Many sums into few places, so that one waits for the other?
bool TakesTurns(const Instruction& scatter, const Geometry& g) {
  const Shape& operand = scatter.operand(0)->shape();
  const ElementType type = operand.type();
  const bool plain = type == ElementType::F32 || type == ElementType::F64 || (IsInteger(type) && Bits(type) >= 32);
  if (g.inputs != 1 || !plain || RecognizeCombiner(*scatter.called(0)).op != Op::Add) return false;
  return !scatter.attrs<ScatterAttrs>().unique_indices && operand.byte_size() <= kFewPlaces &&
         g.window * Bytes(type) <= kShortWindow && g.updates >= kLeastUpdates;
}

// The copies of a result that takes turns, itself the first; the others hold what changes no sum.
class Turns {
 public:
  using V = llvm::Value*;
  Turns(KernelFrame& frame, const Instruction& scatter, int lanes)
      : frame_(frame), scatter_(scatter), shape_(scatter.operand(0)->shape()), lanes_(lanes) {
    VectorBuilder& b = frame.b();
    IrBuilder& ir = b.ir();
    const uint64_t bytes = static_cast<uint64_t>(shape_.byte_size());
    const auto here = ir.saveIP();
    llvm::BasicBlock& entry = here.getBlock()->getParent()->getEntryBlock();
    ir.SetInsertPoint(&entry, entry.getFirstInsertionPt());
    llvm::AllocaInst* memory = ir.CreateAlloca(llvm::ArrayType::get(b.Int(8), (kTurns - 1) * bytes));
    memory->setAlignment(llvm::Align(kLine));
    ir.restoreIP(here);
    copies_.push_back({frame.output(0)});
    for (uint64_t k = 0; k + 1 < kTurns; ++k)
      copies_.push_back({ElementBuilder::Memory{.pointer = ir.CreateConstInBoundsGEP1_64(b.Int(8), memory, k * bytes),
                                                .alignment = Bytes(shape_.type())}});
    V zero = llvm::Constant::getNullValue(frame.Emitter(1).elements().RegisterType(shape_.type()));
    const Val nothing{IsFloat(shape_.type()) ? b.F(-0.0, zero) : zero, nullptr, shape_.type()};
    AlongResult([&](ElementalEmitter& e, const ArrayIndex& at) {
      for (size_t k = 1; k < copies_.size(); ++k) e.Store(copies_[k][0], nothing, at);
    });
  }
  const Memories& at(int64_t turn) const { return copies_[static_cast<size_t>(turn)]; }
  void AddUp() {
    AlongResult([&](ElementalEmitter& e, const ArrayIndex& at) {
      Val sum = e.Load(copies_[0][0], shape_.type(), at);
      for (size_t k = 1; k < copies_.size(); ++k)
        sum = e.Inline(*scatter_.called(0), {sum, e.Load(copies_[k][0], shape_.type(), at)})[0];
      e.Store(copies_[0][0], sum, at);
    });
  }

 private:
  static constexpr uint64_t kLine = 64;
  template <class Fn>
  void AlongResult(Fn&& fn) {
    const int64_t elements = shape_.num_elements();
    frame_.AlongRow(lanes_, frame_.b().I64(0), frame_.b().I64(elements), elements % lanes_ == 0, lanes_,
                    [&](ElementalEmitter& e, const LaneIndex& i) { fn(e, ArrayIndex{{i}, {elements}}); });
  }

  KernelFrame& frame_;
  const Instruction& scatter_;
  const Shape& shape_;
  int lanes_;
  std::vector<Memories> copies_;
};

Result<EmittedKernel> Emit(const KernelSpec& spec, KernelFrame& frame) {
  const Instruction& scatter = *spec.instruction;
  const KernelBody& body = frame.body();
  const Geometry g = GeometryOf(scatter);
  for (int64_t k = 0; k < g.inputs; ++k)
    if (spec.in_place.size() <= static_cast<size_t>(k) || spec.in_place[static_cast<size_t>(k)] != k)
      return Internal("scatter %", scatter.name(), " is not in place");
  VectorBuilder& b = frame.b();
  EmittedKernel emitted;
  const int64_t work = SaturatingMultiply(g.updates, g.window);
  if (work == 0 || scatter.operand(0)->shape().num_elements() == 0) return emitted;
  int lanes = PreferredLanes(body, b.target().vector_bytes);
  const int64_t row = RowOfWindow(g), rows = g.window / row;
  while (lanes > 1 && lanes > row) lanes /= 2;
  // Pieces of the window, or of the updates.
  const bool unique = scatter.attrs<ScatterAttrs>().unique_indices;
  const int64_t apart = unique ? 1 : UpdatesOfBatch(scatter, g);  // of so many, none meets one of the next
  const bool by_update = apart < g.updates && g.window < 1024;
  const int64_t wanted = std::clamp<int64_t>(work / kTaskElements, 1, by_update ? 256 : kMaxPieces);
  const int64_t unit = by_update || rows == 1 ? 1 : row, length = by_update ? g.updates : g.window / unit;
  const int64_t element = std::max(1, Bytes(scatter.operand(0)->shape().type()));
  const int64_t grain = by_update ? apart : (std::max<int64_t>(lanes, kPieceBytes / element) + unit - 1) / unit;
  const int64_t piece = std::max(grain, ((length + wanted - 1) / wanted + grain - 1) / grain * grain);
  emitted.num_tasks = (length + piece - 1) / piece;

  const bool fetches = PaysToFetch(scatter, g);

  LoopScopes& scopes = frame.scopes();
  ElementalEmitter& uniform = frame.Emitter(lanes);
  using V = llvm::Value*;
  scopes.Loop("pieces", frame.task_begin(), frame.task_end(emitted.num_tasks), 1, [&](V n) {
    const bool one_piece = emitted.num_tasks == 1;
    V first = one_piece ? b.I64(0) : b.ir().CreateMul(n, b.I64(piece));
    V last = one_piece ? b.I64(length)
                       : b.Binary(llvm::Intrinsic::smin, b.ir().CreateAdd(first, b.I64(piece)), b.I64(length));
    V update_begin = by_update ? first : b.I64(0), update_end = by_update ? last : b.I64(g.updates);
    // Of rows if there are several, else of elements.
    const int64_t whole_window = rows > 1 ? rows : g.window;
    V window_begin = by_update ? b.I64(0) : first, window_end = by_update ? b.I64(whole_window) : last;
    const auto one = [&](V u, const Memories& results) {
      const LaneIndex update = uniform.indices().Counter(u, scopes.current(), 0, 1);
      if (fetches)
        FetchAhead(uniform, frame, scatter, g, scopes.current(), u, window_begin, by_update ? g.window : piece);
      const Target target = EmitTarget(uniform, scatter, g, update);
      const auto along = [&](const LaneIndex* of_row, int of, V begin, V end, bool whole) {
        frame.AlongRow(of, begin, end, whole, of, [&](ElementalEmitter& e, const LaneIndex& at) {
          const ArrayIndex in_window = of_row ? ArrayIndex{{*of_row, at}, {rows, row}} : ArrayIndex{{at}, {g.window}};
          EmitUpdate(e, results, scatter, g, target, update, in_window);
        });
      };
      const auto along_row = [&](const LaneIndex* of_row) {
        const bool all = by_update || one_piece || of_row;
        if (!all || row % lanes == 0 || row > kShortRow) {
          along(of_row, lanes, of_row ? b.I64(0) : window_begin, of_row ? b.I64(row) : window_end, row % lanes == 0);
          return;
        }
        // Vectors that are shorter and shorter rather than a mask: the next update of the same place waits for what
        // this one stores, and what is stored under a mask goes by way of the cache.
        int64_t at = 0;
        for (int of = lanes; of > 0; of /= 2) {
          const int64_t end = at + (row - at) / of * of;
          if (end > at) along(of_row, of, b.I64(at), b.I64(end), true);
          at = end;
        }
      };
      const auto combine = [&]() -> std::vector<V> {
        if (rows == 1) {
          along_row(nullptr);
        } else if ((by_update || one_piece) && rows <= kFewRows) {
          for (int64_t r = 0; r < rows; ++r) {
            const LaneIndex at = uniform.indices().Constant(r);
            along_row(&at);
          }
        } else {
          scopes.Loop("rows", window_begin, window_end, 1, [&](V r) {
            const LaneIndex at = uniform.indices().Counter(r, scopes.current(), 0, 1);
            along_row(&at);
          });
        }
        return {};
      };
      if (target.fits.value)
        scopes.If(target.fits.value, combine, [] { return std::vector<V>(); });
      else
        combine();
    };
    if (one_piece && TakesTurns(scatter, g)) {
      Turns turns(frame, scatter, PreferredLanes(body, b.target().vector_bytes));
      const int64_t whole = g.updates - g.updates % kTurns;
      scopes.Loop("turns", b.I64(0), b.I64(whole), kTurns, [&](V u) {
        for (int64_t t = 0; t < kTurns; ++t) one(b.Add(u, b.I64(t)), turns.at(t));
      });
      for (int64_t t = 0; whole + t < g.updates; ++t) one(b.I64(whole + t), turns.at(t));
      return turns.AddUp();
    }
    Memories results;
    for (int64_t k = 0; k < g.inputs; ++k) results.push_back(frame.output(static_cast<size_t>(k)));
    V rest = update_begin;
    if (g.window * g.inputs <= kFewElements && g.updates >= kLeastUpdates && !b.quick()) {
      V whole = b.ir().CreateAnd(b.Sub(update_end, update_begin), b.I64(-kUpdatesATrip));
      rest = b.Add(update_begin, whole);
      scopes.Loop("updates", update_begin, rest, kUpdatesATrip, [&](V u) {
        for (int64_t k = 0; k < kUpdatesATrip; ++k) one(b.Add(u, b.I64(k)), results);
      });
    }
    scopes.Loop("rest", rest, update_end, 1, [&](V u) { one(u, results); });
  });
  STROP_TRY(uniform.status());
  STROP_TRY(frame.Emitter(1).status());
  return emitted;
}

}  // namespace

const KernelFamily kScatterFamily = {"scatter", &Matches, &Emit};

}  // namespace strop::cpu
