// scatter, in place: the results have the operands' memory, each update is combined into it, in the order of the
// updates.
//
//   for each index vector:  start = indices[...];  if the whole window fits:  out[start + w] = combine(out[start + w],
//   update[w])
//
// Elements of one window are distinct, so vectors run along it, or along its rows if these are far from each other.
// Tasks are pieces of a long window whose elements have places of their own: each walks all index vectors, so the order
// of combination is that of the updates for any number of tasks. Where windows are short (rows of a gradient of an
// embedding), tasks are parts of the operand instead: each looks through all index vectors for those that fall into its
// part, and combines these in order. If the indices are promised to be unique, short windows are shared out by index
// vector; if they come in batches, which never meet, by batch. Where the elements of a window lie apart (columns of an
// array), all updates of one come before the next one's: what they combine is near. Many sums into few places (counts,
// means of clusters) wait for each other; there, updates go to copies of the result in turns, and the copies are added
// up in the end.
#include <algorithm>

#include "strop/analysis/combiner.h"
#include "strop/codegen/kernel_frame.h"
#include "strop/cpu/families/scatter_geometry.h"
#include "strop/cpu/kernel_family.h"
#include "strop/cpu/kernels/rounding.h"

namespace strop::cpu {
namespace {

using Geometry = ScatterGeometry;

constexpr int64_t kTaskElements = 16 << 10;
constexpr int64_t kPieceBytes = 128;    // of a window: two lines
constexpr int64_t kMaxPieces = 16;      // each walks all indices, and other pages for each
constexpr int64_t kShortWindow = 2048;  // bytes, of which no pieces are made
// Of a window whose updates are worth looking through the indices for, in a cache and far from it; and for how much of
// it one more task looks through them. In bytes.
constexpr int64_t kNearWindow = 96, kFarWindow = 32, kWindowATask = 192;
constexpr int64_t kPlacesATask = 16, kLookedThrough = 512;
// Of a window whose elements lie apart, and updates of each.
constexpr int64_t kLeastElements = 8, kLeastOfElement = 8;
constexpr int64_t kFetchedOperand = int64_t{1} << 20;     // bytes that the near caches do not hold
constexpr int64_t kTargetsAhead = 16, kUpdatesAhead = 8;  // memory answers within that many
constexpr int64_t kFetchedBytes = 4096;                   // of a window; the processor finds out what is behind

constexpr int64_t kTurns = 4;      // an addition to memory takes about as long as so many that do not wait
constexpr int64_t kShortRow = 64;  // elements of a window
constexpr int64_t kFewPlaces = 1024, kTurnsWindow = 256;  // bytes
constexpr int64_t kLeastUpdates = 64;
constexpr int64_t kUpdatesOfPlace = 64;  // 7 % of whose greatest values so far are not foreseen

// Updates of so few elements are shorter than what a trip of a loop costs: some in one (1.9 cycles each, 3.4 alone).
constexpr int64_t kUpdatesATrip = 4, kFewElements = 4;
constexpr int64_t kFewRows = 8;        // of a window, without a loop
constexpr int64_t kLeastOfBatch = 16;  // updates that are worth a loop

Decision Matches(const Instruction& kernel) {
  const bool fused = kernel.op() == Op::Fusion;
  const Instruction& scatter = fused ? *kernel.called(0)->root() : kernel;
  if (scatter.op() != Op::Scatter) return Decision::No(kOtherOp);
  for (int64_t k = 0; k < scatter.operand_count(); ++k) {
    const Instruction& operand = *scatter.operand(k);
    const Shape& shape = operand.shape();
    if (!shape.IsArray() || !shape.IsStatic()) return Decision::No("operand ", k, " is ", shape.ToString());
    if (fused && k <= (scatter.operand_count() - 1) / 2 && !operand.IsParameter())
      return Decision::No("operand ", k, " is computed in the kernel");
  }
  if (fused)
    for (const Instruction* i : kernel.called(0)->instructions())
      if (i != &scatter && !i->IsParameter())
        if (Decision d = CanEmitElement(*i); !d) return d;
  return CanInline(*scatter.called(0));
}

// Index vectors of one batch, which follow each other, if batches are what the outermost dimension counts; else all.
int64_t UpdatesOfBatch(const Instruction& scatter, const Geometry& g) {
  const ScatterAttrs& a = scatter.attrs<ScatterAttrs>();
  const bool outermost = a.index_vector_dim != 0 && Contains(a.scatter_indices_batching_dims, 0);
  return outermost ? g.updates / g.batch_dims[0] : g.updates;
}

// Where the window of an update starts in the operand, and whether it fits. An update is a place in its batch
// dimensions.
struct Target {
  std::vector<LaneIndex> starts;
  ElementalEmitter::Condition fits;
};

Target EmitTarget(ElementalEmitter& e, const Instruction& scatter, const Geometry& g, const ArrayIndex& update) {
  const ScatterAttrs& a = scatter.attrs<ScatterAttrs>();
  const Shape& operand = scatter.operand(0)->shape();
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
      start = update.digits[static_cast<size_t>(dim > a.index_vector_dim ? dim - 1 : dim)];
    } else if (!Contains(a.inserted_window_dims, d)) {
      size = scatter.operand(g.inputs + 1)->shape().dim(a.update_window_dims[next_window++]);
    }
    const auto& map = a.scatter_dims_to_operand_dims;
    if (const auto mapped = std::find(map.begin(), map.end(), d); mapped != map.end()) {
      const LaneIndex index =
          e.EmitIndexComponent(scatter.operand(g.inputs), a.index_vector_dim, update, mapped - map.begin());
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
bool FetchesRows(const Instruction& scatter, const Geometry& g) {
  if (g.updates <= kTargetsAhead || scatter.operand(0)->shape().rank() == 0) return false;
  return g.window == 1 || (g.operand_window.back() >= 0 && g.window_dims.back() == g.window);
}
bool PaysToFetch(const Instruction& scatter, const Geometry& g) {
  return scatter.operand(0)->shape().byte_size() > kFetchedOperand && FetchesRows(scatter, g);
}

// The element `at` of the window of `update`, in the updates.
ArrayIndex SourceOf(ElementalEmitter& e, const Geometry& g, const ArrayIndex& update, const ArrayIndex& at) {
  const ArrayIndex window = e.indices().Refactor(at, g.window_dims);
  ArrayIndex from{{}, g.updates_dims};
  size_t next_batch = 0;
  for (int64_t k : g.updates_window)
    from.digits.push_back(k < 0 ? update.digits[next_batch++] : window.digits[static_cast<size_t>(k)]);
  return from;
}

// Which of the kernel's inputs it is; none: as many as there are.
size_t InputOf(const KernelFrame& frame, const Instruction& operand) {
  const auto& inputs = frame.body().inputs;
  return static_cast<size_t>(std::ranges::find(inputs, &operand) - inputs.begin());
}

// Fetches the elements from `first` on, `count` of them, of windows that are combined some time later: where they go,
// and, sooner needed as they come in order, what they are. `later(n)` is the update that comes n after this one.
void FetchAhead(ElementalEmitter& e, const KernelFrame& frame, const Instruction& scatter, const Geometry& g, int level,
                const std::function<ArrayIndex(int64_t)>& later, llvm::Value* first, int64_t count) {
  const ArrayIndex at{{e.indices().Counter(first, level, 0, 1)}, {g.window}};
  const Target target = EmitTarget(e, scatter, g, later(kTargetsAhead));
  const LaneIndex to = e.indices().Linear(PlaceOf(e, g, target, at));
  const LaneIndex from = e.indices().Linear(SourceOf(e, g, later(kUpdatesAhead), at));
  for (int64_t k = 0; k < g.inputs; ++k) {
    const ElementType type = scatter.operand(k)->shape().type();
    const int some = static_cast<int>(std::min(count, kFetchedBytes / std::max(1, Bytes(type))));
    e.elements().Fetch(frame.output(static_cast<size_t>(k)), type, to.base, some);
    if (const size_t n = InputOf(frame, *scatter.operand(g.inputs + 1 + k)); n < frame.body().inputs.size())
      e.elements().Fetch(frame.input(n), type, from.base, some);
  }
}

using Memories = std::vector<ElementBuilder::Memory>;  // of the results, by number

// Many greatest or least values of single places? Nearly all of them change nothing, so that a branch that is foreseen
// leaves out storing, which the next one of the place waits for: after n of them in any order, 1 / n does.
bool SeldomChanges(const Instruction& scatter, const Geometry& g) {
  const Shape& operand = scatter.operand(0)->shape();
  const ElementType type = operand.type();
  const bool plain = type == ElementType::F32 || type == ElementType::F64 || (IsInteger(type) && Bits(type) >= 32);
  if (g.inputs != 1 || g.window != 1 || !plain || g.updates / kUpdatesOfPlace < operand.num_elements()) return false;
  const Op op = RecognizeCombiner(*scatter.called(0)).op;
  return op == Op::Maximum || op == Op::Minimum;
}

// Is `best` certainly what is left of both, with its very bits (whatever zeros, NaNs)?
llvm::Value* Prevails(VectorBuilder& b, Op op, const Val& best, const Val& other) {
  const bool greatest = op == Op::Maximum;
  if (IsFloat(best.type)) {
    llvm::Value* ahead = greatest ? b.FGt(best.re, other.re) : b.FLt(best.re, other.re);
    return b.Or(ahead, b.IEq(b.AsInt(best.re), b.AsInt(other.re)));
  }
  using P = llvm::CmpInst;
  if (IsSigned(best.type)) return b.ICmp(greatest ? P::ICMP_SGE : P::ICMP_SLE, best.re, other.re);
  return b.ICmp(greatest ? P::ICMP_UGE : P::ICMP_ULE, best.re, other.re);
}

// Combines the elements `at` of the window of `update`.
void EmitUpdate(ElementalEmitter& e, LoopScopes& scopes, const Memories& results, const Instruction& scatter,
                const Geometry& g, const Target& target, const ArrayIndex& update, const ArrayIndex& at) {
  const ArrayIndex to = PlaceOf(e, g, target, at), from = SourceOf(e, g, update, at);
  Vals args;
  for (int64_t k = 0; k < g.inputs; ++k)
    args.push_back(e.Load(results[static_cast<size_t>(k)], scatter.operand(k)->shape().type(), to));
  for (int64_t k = 0; k < g.inputs; ++k) args.push_back(e.Emit(scatter.operand(g.inputs + 1 + k), from));
  const auto combine = [&] {
    const Vals combined = e.Inline(*scatter.called(0), args);
    for (int64_t k = 0; k < g.inputs; ++k)
      e.Store(results[static_cast<size_t>(k)], combined[static_cast<size_t>(k)], to);
    return std::vector<llvm::Value*>();
  };
  const auto nothing = [] { return std::vector<llvm::Value*>(); };
  if (SeldomChanges(scatter, g))
    scopes.If(Prevails(e.elements().b(), RecognizeCombiner(*scatter.called(0)).op, args[0], args[1]), nothing, combine);
  else
    combine();
}

// Many sums into few places, so that one waits for the other?
bool TakesTurns(const Instruction& scatter, const Geometry& g) {
  const Shape& operand = scatter.operand(0)->shape();
  const ElementType type = operand.type();
  const bool plain = type == ElementType::F32 || type == ElementType::F64 || (IsInteger(type) && Bits(type) >= 32);
  if (g.inputs != 1 || !plain || RecognizeCombiner(*scatter.called(0)).op != Op::Add) return false;
  return !scatter.attrs<ScatterAttrs>().unique_indices && operand.byte_size() <= kFewPlaces &&
         g.window * Bytes(type) <= kTurnsWindow && g.updates >= kLeastUpdates;
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

// Has each element of the window places of its own, where no other one's updates go? So it is where all windows begin
// at the same place along their dimensions: at the operand's begin, since no index is for that dimension or no other
// fits.
bool ElementsKeepApart(const Instruction& scatter, const Geometry& g) {
  const ScatterAttrs& a = scatter.attrs<ScatterAttrs>();
  const Shape &operand = scatter.operand(0)->shape(), &updates = scatter.operand(g.inputs + 1)->shape();
  size_t next_window = 0;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (Contains(a.inserted_window_dims, d) || Contains(a.input_batching_dims, d)) continue;
    const int64_t size = updates.dim(a.update_window_dims[next_window++]);
    if (Contains(a.scatter_dims_to_operand_dims, d) && size < operand.dim(d)) return false;
  }
  return true;
}

// What tasks share: the window, the updates, or the operand along its outermost dimension.
enum class Share : uint8_t { kWindow, kUpdates, kPlaces };

class ScatterEmitter {
 public:
  ScatterEmitter(const Instruction& scatter, KernelFrame& frame)
      : scatter_(scatter),
        frame_(frame),
        b_(frame.b()),
        scopes_(frame.scopes()),
        g_(ScatterGeometryOf(scatter)),
        lanes_(PreferredLanes(frame.body(), b_.target().vector_bytes)),
        row_(RowOfWindow(g_)),
        rows_(g_.window / row_),
        keep_apart_(ElementsKeepApart(scatter, g_)),
        takes_turns_(TakesTurns(scatter, g_)),
        by_element_(keep_apart_ && !takes_turns_ && !g_.operand_window.empty() && g_.operand_window.back() < 0 &&
                    g_.window >= kLeastElements && g_.updates >= kLeastOfElement),
        uniform_(frame.Emitter(FittingLanes())),
        fetches_(PaysToFetch(scatter, g_)) {
    Cut();
    for (int64_t k = 0; k < g_.inputs; ++k) results_.push_back(frame.output(static_cast<size_t>(k)));
  }

  Result<EmittedKernel> Emit() {
    scopes_.Loop("pieces", frame_.task_begin(), frame_.task_end(num_tasks_), 1, [&](V n) { Task(n); });
    STROP_TRY(uniform_.status());
    STROP_TRY(frame_.Emitter(1).status());
    EmittedKernel emitted;
    emitted.num_tasks = num_tasks_;
    return emitted;
  }

 private:
  using V = llvm::Value*;
  using LaterFn = std::function<ArrayIndex(int64_t)>;
  // Of the window, rows if it has several, else elements.
  struct Part {
    V begin, end;
    bool whole;
  };

  int FittingLanes() {
    if (by_element_) lanes_ = 1;
    while (lanes_ > 1 && lanes_ > row_) lanes_ /= 2;
    return lanes_;
  }
  bool one_task() const { return num_tasks_ == 1; }

  // Chooses what tasks share, and how many there are.
  void Cut() {
    const Shape& operand = scatter_.operand(0)->shape();
    const bool unique = scatter_.attrs<ScatterAttrs>().unique_indices;
    const int64_t apart = unique ? 1 : UpdatesOfBatch(scatter_, g_);  // of so many, none meets one of the next
    const int64_t work = SaturatingMultiply(g_.updates, g_.window);
    const int64_t element = std::max(1, Bytes(operand.type())), bytes = g_.window * element;
    const int64_t least = operand.byte_size() > kFetchedOperand ? kFarWindow : kNearWindow;
    int64_t wanted = frame_.whole() ? 1 : std::max<int64_t>(work / kTaskElements, 1);
    if (by_element_) {
      share_ = Share::kWindow;
      length_ = g_.window, piece_ = 1;
      wanted = std::min(wanted, kMaxPieces);
    } else if (apart < g_.updates && g_.window < 1024) {
      share_ = Share::kUpdates;
      length_ = g_.updates, piece_ = apart;
      if (apart >= kLeastOfBatch && !takes_turns_) of_batch_ = apart;
      wanted = std::min<int64_t>(wanted, 256);
    } else if (!g_.operand_window.empty() && g_.operand_window[0] < 0 && bytes >= least &&
               (bytes <= kShortWindow || !keep_apart_) && g_.updates >= kLeastUpdates && !takes_turns_) {
      share_ = Share::kPlaces;
      length_ = g_.operand_dims[0], piece_ = kPlacesATask;
      wanted = std::min(wanted, std::clamp<int64_t>(bytes / kWindowATask, 2, kMaxPieces));
    } else {
      share_ = Share::kWindow;
      const int64_t unit = rows_ == 1 ? 1 : row_;
      length_ = g_.window / unit;
      piece_ = CeilDiv(std::max<int64_t>(lanes_, kPieceBytes / element), unit);
      wanted = keep_apart_ ? std::min(wanted, kMaxPieces) : 1;
    }
    piece_ = std::max(piece_, RoundUp(CeilDiv(length_, wanted), piece_));
    num_tasks_ = CeilDiv(length_, piece_);
  }

  void Task(V n) {
    V first = one_task() ? b_.I64(0) : b_.ir().CreateMul(n, b_.I64(piece_));
    V last = one_task() ? b_.I64(length_)
                        : b_.Binary(llvm::Intrinsic::smin, b_.ir().CreateAdd(first, b_.I64(piece_)), b_.I64(length_));
    const Part window{b_.I64(0), b_.I64(rows_ > 1 ? rows_ : g_.window), true};
    if (by_element_)
      scopes_.Loop("elements", first, last, 1, [&](V at) { Updates(b_.I64(0), b_.I64(g_.updates), {at, at, false}); });
    else if (one_task() && takes_turns_)
      InTurns(window);
    else if (of_batch_ > 0)
      Batches(n, window);
    else if (share_ == Share::kUpdates)
      Updates(first, last, window);
    else if (share_ == Share::kPlaces && !one_task())
      UpdatesOfPlaces(first, last, window);
    else
      Updates(b_.I64(0), b_.I64(g_.updates), one_task() ? window : Part{first, last, false});
  }

  void InTurns(const Part& window) {
    Turns turns(frame_, scatter_, PreferredLanes(frame_.body(), b_.target().vector_bytes));
    const int64_t whole = g_.updates - g_.updates % kTurns;
    scopes_.Loop("turns", b_.I64(0), b_.I64(whole), kTurns, [&](V u) {
      for (int64_t t = 0; t < kTurns; ++t) Update(b_.Add(u, b_.I64(t)), turns.at(t), window);
    });
    for (int64_t t = 0; whole + t < g_.updates; ++t) Update(b_.I64(whole + t), turns.at(t), window);
    turns.AddUp();
  }

  // Batch by batch, so that nothing of an update's place is divided to find out which batch it is of.
  void Batches(V n, const Part& window) {
    const int64_t of_task = piece_ / of_batch_;
    V first = one_task() ? b_.I64(0) : b_.ir().CreateMul(n, b_.I64(of_task)), end = b_.Add(first, b_.I64(of_task));
    V last = one_task() ? b_.I64(batches()) : b_.Binary(llvm::Intrinsic::smin, end, b_.I64(batches()));
    scopes_.Loop("batches", first, last, 1, [&](V batch) {
      batch_ = uniform_.indices().Counter(batch, scopes_.current(), 0, 1);
      Updates(b_.I64(0), b_.I64(of_batch_), window);
    });
  }
  int64_t batches() const { return g_.updates / of_batch_; }

  // Where among the updates the one is that is number u of all, or of the batch, if those are shared out.
  ArrayIndex UpdateAt(V u) {
    IndexBuilder& indices = uniform_.indices();
    ArrayIndex number{{indices.Counter(u, scopes_.current(), 0, 1)}, {g_.updates}};
    if (of_batch_ > 0) number = {{batch_, number.digits[0]}, {batches(), of_batch_}};
    return indices.Refactor(number, g_.batch_dims);
  }

  void Updates(V begin, V end, const Part& window) {
    V rest = begin;
    if (g_.window * g_.inputs <= kFewElements && g_.updates >= kLeastUpdates && !b_.quick()) {
      V whole = b_.ir().CreateAnd(b_.Sub(end, begin), b_.I64(-kUpdatesATrip));
      rest = b_.Add(begin, whole);
      scopes_.Loop("updates", begin, rest, kUpdatesATrip, [&](V u) {
        for (int64_t k = 0; k < kUpdatesATrip; ++k) Update(b_.Add(u, b_.I64(k)), results_, window);
      });
    }
    scopes_.Loop("rest", rest, end, 1, [&](V u) { Update(u, results_, window); });
  }

  // Those that begin in [first, last) of the outermost dimension: found without a branch, some at a time, since which
  // they are cannot be predicted.
  void UpdatesOfPlaces(V first, V last, const Part& window) {
    IrBuilder& ir = b_.ir();
    const auto here = ir.saveIP();
    llvm::BasicBlock& entry = here.getBlock()->getParent()->getEntryBlock();
    ir.SetInsertPoint(&entry, entry.getFirstInsertionPt());
    V found = ir.CreateAlloca(llvm::ArrayType::get(b_.Int(64), kLookedThrough));
    ir.restoreIP(here);
    const auto slot = [&](V n) { return ir.CreateInBoundsGEP(b_.Int(64), found, n); };
    V size = b_.Sub(last, first);
    scopes_.Loop("some", b_.I64(0), b_.I64(g_.updates), kLookedThrough, [&](V from) {
      V to = b_.Binary(llvm::Intrinsic::smin, b_.Add(from, b_.I64(kLookedThrough)), b_.I64(g_.updates));
      const V none = b_.I64(0);
      V count = scopes_.Loop("find", from, to, 1, std::span<const V>(&none, 1), [&](V u, std::span<const V> carried) {
        const ArrayIndex update = UpdateAt(u);
        V start = uniform_.indices().Materialize(EmitTarget(uniform_, scatter_, g_, update).starts[0]);
        ir.CreateStore(u, slot(carried[0]));
        V inside = ir.CreateICmpULT(b_.Sub(start, first), size);
        return std::vector<V>{b_.Add(carried[0], ir.CreateZExt(inside, b_.Int(64)))};
      })[0];
      scopes_.Loop("found", none, count, 1, [&](V n) {
        const auto load = [&](V at) { return ir.CreateLoad(b_.Int(64), slot(at)); };
        Update(load(n), results_, window, [&](int64_t by) {
          return UpdateAt(load(b_.Binary(llvm::Intrinsic::umin, b_.Add(n, b_.I64(by)), b_.Sub(count, b_.I64(1)))));
        });
      });
    });
  }

  // Combines a part of the window of update u, if all of the window fits.
  void Update(V u, const Memories& results, const Part& window, const LaterFn& later = nullptr) {
    const ArrayIndex update = UpdateAt(u);
    const int64_t last = (of_batch_ > 0 ? of_batch_ : g_.updates) - 1;
    const auto next = [&](int64_t by) {
      return UpdateAt(b_.Binary(llvm::Intrinsic::umin, b_.Add(u, b_.I64(by)), b_.I64(last)));
    };
    if (fetches_ || (later && FetchesRows(scatter_, g_)))
      FetchAhead(uniform_, frame_, scatter_, g_, scopes_.current(), later ? later : LaterFn(next), window.begin,
                 window.whole ? g_.window : piece_);
    const Target target = EmitTarget(uniform_, scatter_, g_, update);
    const Place place{results, target, update};
    const auto combine = [&]() -> std::vector<V> {
      if (by_element_) {
        const LaneIndex at = uniform_.indices().Counter(window.begin, scopes_.current(), 0, 1);
        EmitUpdate(uniform_, scopes_, results, scatter_, g_, target, update, ArrayIndex{{at}, {g_.window}});
      } else if (rows_ == 1) {
        AlongRow(place, nullptr, window);
      } else if (window.whole && rows_ <= kFewRows) {
        for (int64_t r = 0; r < rows_; ++r) {
          const LaneIndex at = uniform_.indices().Constant(r);
          AlongRow(place, &at, window);
        }
      } else {
        scopes_.Loop("rows", window.begin, window.end, 1, [&](V r) {
          const LaneIndex at = uniform_.indices().Counter(r, scopes_.current(), 0, 1);
          AlongRow(place, &at, window);
        });
      }
      return {};
    };
    if (target.fits.value)
      scopes_.If(target.fits.value, combine, [] { return std::vector<V>(); });
    else
      combine();
  }

  struct Place {
    const Memories& results;
    const Target& target;
    const ArrayIndex& update;
  };

  // One row of the window; without `of_row`, the part of the only one.
  void AlongRow(const Place& place, const LaneIndex* of_row, const Part& part) {
    const bool all = part.whole || of_row;
    if (!all || row_ % lanes_ == 0 || row_ > kShortRow) {
      Vectors(place, of_row, lanes_, of_row ? b_.I64(0) : part.begin, of_row ? b_.I64(row_) : part.end,
              row_ % lanes_ == 0);
      return;
    }
    // Vectors that are shorter and shorter rather than a mask: the next update of the same place waits for what this
    // one stores, and what is stored under a mask goes by way of the cache.
    int64_t at = 0;
    for (int of = lanes_; of > 0; of /= 2) {
      const int64_t end = at + (row_ - at) / of * of;
      if (end > at) Vectors(place, of_row, of, b_.I64(at), b_.I64(end), true);
      at = end;
    }
  }

  void Vectors(const Place& place, const LaneIndex* of_row, int lanes, V begin, V end, bool whole) {
    frame_.AlongRow(lanes, begin, end, whole, lanes, [&](ElementalEmitter& e, const LaneIndex& at) {
      const ArrayIndex in_window = of_row ? ArrayIndex{{*of_row, at}, {rows_, row_}} : ArrayIndex{{at}, {g_.window}};
      EmitUpdate(e, scopes_, place.results, scatter_, g_, place.target, place.update, in_window);
    });
  }

  const Instruction& scatter_;
  KernelFrame& frame_;
  VectorBuilder& b_;
  LoopScopes& scopes_;
  const Geometry g_;
  int lanes_;
  const int64_t row_, rows_;  // elements of a row of the window, and how many rows
  const bool keep_apart_;     // the elements of the window, see above
  const bool takes_turns_;
  const bool by_element_;  // element by element of the window, each of all updates
  ElementalEmitter& uniform_;
  const bool fetches_;
  Memories results_;
  Share share_ = Share::kWindow;
  int64_t length_ = 0, piece_ = 0, num_tasks_ = 1;  // of what tasks share: all, and of a task
  int64_t of_batch_ = 0;                            // updates, if those are shared by batch
  LaneIndex batch_;                                 // that updates are of
};

Result<EmittedKernel> Emit(const KernelSpec& spec, KernelFrame& frame) {
  const Instruction& scatter = *frame.body().roots[0];
  const int64_t inputs = (scatter.operand_count() - 1) / 2;
  for (int64_t k = 0; k < inputs; ++k) {
    const int64_t from = static_cast<size_t>(k) < spec.in_place.size() ? spec.in_place[static_cast<size_t>(k)] : -1;
    if (from < 0 || InputOf(frame, *scatter.operand(k)) != static_cast<size_t>(from))
      return Internal("scatter %", scatter.name(), " is not in place");
  }
  if (scatter.operand(0)->shape().num_elements() == 0 || scatter.operand(inputs + 1)->shape().num_elements() == 0)
    return EmittedKernel();
  return ScatterEmitter(scatter, frame).Emit();
}

}  // namespace

const KernelFamily kScatterFamily = {"scatter", &Matches, &Emit};

}  // namespace strop::cpu
