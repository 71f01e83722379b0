#include "strop/codegen/kernel_frame.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "strop/analysis/combiner.h"

namespace strop {

using V = llvm::Value*;

namespace {

// A task is worth handing to a thread that looks out for it (base/lookout.h), and small enough to even out: about 8 us.
constexpr int64_t kTaskBytes = int64_t{64} << 10;
constexpr int64_t kTaskFlops = int64_t{128} << 10;
constexpr int64_t kMaxTasks = 4096;
// Kernels that read and write so much find little of it in the caches the next time. (Copies on a machine of 32 MiB of
// last cache: 2x16 MiB take as long either way, 2x24 MiB 1.4 times as long through the caches. Where other programs use
// the cache as well, 2x16 MiB take 1.5 times as long; but who reads the result next may find half of it.)
constexpr int64_t kStreamedBytes = int64_t{40} << 20;
constexpr int64_t kStreamedEarlier = int64_t{32} << 20;
// What the last cache still holds arrives late, too: asked for ahead, a layer's normalisation of 2x8 MiB takes 0.86 of
// the time, a logarithm of 2x16 MiB 0.88.
constexpr int64_t kFetchedBytes = int64_t{8} << 20;
constexpr int64_t kLeastStreamedResult = int64_t{4} << 20;
constexpr int kLine = 64;  // buffers begin at one

ElementType LeafType(const Instruction* root, int leaf) {
  return root->shape().IsTuple() ? root->shape().element(leaf).type() : root->shape().type();
}

// Is something in the kernel a sum or a product of floats along an innermost dimension? Lanes share those, so that
// their bits depend on how many there are (elemental_reduce.cc).
bool SumsAcrossLanes(const KernelBody& body) {
  const std::vector<const Instruction*> computed = body.Computed();
  return std::any_of(computed.begin(), computed.end(), [](const Instruction* i) {
    if (i->op() != Op::Reduce) return false;
    const Shape& operand = i->operand(0)->shape();
    const Dims& reduced = i->dimensions();
    const Op combines = RecognizeCombiner(*i->called(0)).op;
    return (IsFloat(operand.type()) || IsComplex(operand.type())) &&
           (combines == Op::Add || combines == Op::Multiply) &&
           std::find(reduced.begin(), reduced.end(), operand.rank() - 1) != reduced.end();
  });
}

}  // namespace

llvm::Function* CreateFunction(VectorBuilder& b, llvm::FunctionType* type, const std::string& name) {
  llvm::Function* function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, b.module());
  function->setDoesNotThrow();
  const std::string bits = std::to_string(8 * b.target().vector_bytes);
  function->addFnAttr("prefer-vector-width", bits);
  function->addFnAttr("min-legal-vector-width", bits);
  function->addFnAttr("no-trapping-math", "true");
  // With it the stack can still be aligned once registers turn out to be too few: vectors that are kept there would
  // lie across two lines of the cache, each read of which takes two cycles.
  function->addFnAttr("frame-pointer", "all");
  return function;
}

KernelFrame::KernelFrame(VectorBuilder& b, const std::string& name, const KernelBody& body,
                         std::span<const int> in_place)
    : b_(b), scopes_(b), body_(body) {
  IrBuilder& ir = b.ir();
  llvm::Type* ptr = b.Ptr();
  llvm::Type* i64 = b.Int(64);
  llvm::Function* function =
      CreateFunction(b, llvm::FunctionType::get(ir.getVoidTy(), {ptr, i64, i64, ptr}, false), name);
  ir.SetInsertPoint(llvm::BasicBlock::Create(b.context(), "entry", function));
  task_begin_ = function->getArg(1);
  task_end_ = function->getArg(2);
  scratch_ = function->getArg(3);
  AddBuffers(name, in_place, [&](size_t k) {
    V slot = ir.CreateConstInBoundsGEP1_64(ptr, function->getArg(0), k);
    auto* pointer = ir.CreateAlignedLoad(ptr, slot, llvm::Align(8));
    pointer->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b.context(), {}));
    return ElementBuilder::Memory{.pointer = pointer, .invariant = true};
  });
}

KernelFrame::KernelFrame(VectorBuilder& b, const KernelBody& body, std::span<const int> in_place,
                         std::span<const ElementBuilder::Memory> buffers)
    : b_(b), scopes_(b), body_(body), whole_(true) {
  AddBuffers(body.kernel->name(), in_place, [&](size_t k) { return buffers[k]; });
  // What one trip of a loop writes here another may read here, if its carries change places: that two buffers differ is
  // true of each time that this code runs.
  const bool moves = std::any_of(buffers.begin(), buffers.end(), [](const ElementBuilder::Memory& memory) {
    return llvm::isa<llvm::PHINode>(memory.pointer);
  });
  for (const ElementBuilder::Memory& output : outputs_)
    if (moves) b.ir().CreateNoAliasScopeDeclaration(output.alias_scope);
}

// Inputs and outputs, with what is known of their overlapping.
void KernelFrame::AddBuffers(const std::string& name, std::span<const int> in_place,
                             const std::function<ElementBuilder::Memory(size_t)>& buffer) {
  llvm::LLVMContext& context = b_.context();
  llvm::MDBuilder md(context);
  llvm::MDNode* domain = md.createAnonymousAliasScopeDomain(name);
  std::vector<llvm::Metadata*> scopes;
  for (size_t r = 0; r < body_.roots.size(); ++r) scopes.push_back(md.createAnonymousAliasScope(domain));
  const auto natural = [](ElementType t) { return std::min(16, Bytes(t)); };
  for (size_t k = 0; k < body_.inputs.size(); ++k) {
    ElementBuilder::Memory memory = buffer(k);
    memory.alignment = natural(body_.inputs[k]->shape().type());
    std::vector<llvm::Metadata*> others;
    for (size_t r = 0; r < scopes.size(); ++r)
      if (r >= in_place.size() || in_place[r] != static_cast<int>(k)) others.push_back(scopes[r]);
    memory.noalias = others.empty() ? nullptr : llvm::MDNode::get(context, others);
    memory.invariant &= others.size() == scopes.size();
    inputs_.push_back(memory);
  }
  for (size_t r = 0; r < body_.roots.size(); ++r) {
    ElementBuilder::Memory memory = buffer(body_.inputs.size() + r);
    std::vector<llvm::Metadata*> others;
    for (size_t k = 0; k < scopes.size(); ++k)
      if (k != r) others.push_back(scopes[k]);
    memory.alias_scope = llvm::MDNode::get(context, {scopes[r]});
    memory.noalias = others.empty() ? nullptr : llvm::MDNode::get(context, others);
    memory.alignment = natural(LeafType(body_.roots[r], body_.root_leaf[r]));
    memory.invariant = false;
    memory.in_place = r < in_place.size() && in_place[r] >= 0;
    outputs_.push_back(memory);
  }
}

void KernelFrame::Bind(ElementalEmitter& e) const {
  for (size_t k = 0; k < inputs_.size(); ++k) e.BindBuffer(body_.inputs[k], inputs_[k]);
}

bool KernelFrame::PaysToStream(const KernelCost& cost, bool earlier) {
  return cost.bytes >= (earlier ? kStreamedEarlier : kStreamedBytes);
}

bool KernelFrame::WritesLargeResult(const Instruction& kernel) {
  if (!kernel.parent() || kernel.parent() != kernel.parent()->module()->entry()) return false;
  const auto ends = [](const Instruction* i) { return i->IsRoot() && i->op() == Op::Tuple; };
  const std::vector<Instruction*> users = kernel.users();
  return kernel.shape().IsArray() && kernel.shape().byte_size() >= kLeastStreamedResult &&
         (users.empty() ? kernel.IsRoot() : std::all_of(users.begin(), users.end(), ends));
}

void KernelFrame::StreamResults(std::span<const int> in_place) {
  if (whole_ || any_address_) return;
  for (size_t r = 0; r < outputs_.size(); ++r) {
    const Shape& root = body_.roots[r]->shape();
    const Shape& shape = root.IsTuple() ? root.element(body_.root_leaf[r]) : root;
    if ((r < in_place.size() && in_place[r] >= 0) || shape.byte_size() < kLeastStreamedResult) continue;
    outputs_[r].streaming = true;
    outputs_[r].alignment = kLine;
    streams_ = true;
  }
}

void KernelFrame::FetchInputs(const KernelCost& cost) {
  if (cost.bytes < kFetchedBytes || b_.target().fast_last_cache) return;
  for (size_t k = 0; k < inputs_.size(); ++k)
    inputs_[k].far = body_.inputs[k]->shape().byte_size() >= kLeastStreamedResult;
}

void KernelFrame::Return() {
  if (whole_) return;
  // What went past the caches keeps no order with what says that the task is done.
  if (streams_) b_.ir().CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
  b_.ir().CreateRetVoid();
}

int64_t KernelFrame::WantedTasks(const KernelCost& cost) {
  return std::clamp<int64_t>(std::max(cost.bytes / kTaskBytes, cost.flops / kTaskFlops), 1, kMaxTasks);
}

KernelFrame::Cut KernelFrame::CutIntoTasks(const LoopSpace& space, const KernelCost& cost) {
  Cut cut;
  cut.piece_size = space.row_size;
  const int64_t wanted = WantedTasks(cost);
  if (space.rows < wanted && !space.whole_rows) {
    // Rows are cut, in pieces of whole vectors (several cache lines, so that tasks do not share one). Where an element
    // is a reduction by itself, few make a task, and what they share is a line that is written once.
    const int64_t least = std::max<int64_t>(space.width(), 64);
    const int64_t grain = space.uniform ? 1 : space.period > 0 ? std::lcm(least, space.period) : least;
    const int64_t pieces = (wanted + space.rows - 1) / space.rows;
    const int64_t size = (space.row_size + pieces - 1) / pieces;
    cut.piece_size = std::max(grain, (size + grain - 1) / grain * grain);
    cut.pieces = (space.row_size + cut.piece_size - 1) / cut.piece_size;
    if (cut.pieces == 1) cut.piece_size = space.row_size;
  }
  const int64_t units = space.rows * cut.pieces;
  const int64_t tasks = std::min(wanted, units);
  cut.units_per_task = (units + tasks - 1) / tasks;
  if (cut.pieces == 1)  // whole groups of rows that go together
    cut.units_per_task = (cut.units_per_task + space.together - 1) / space.together * space.together;
  cut.num_tasks = (units + cut.units_per_task - 1) / cut.units_per_task;
  return cut;
}

std::optional<KernelFrame::Cut> KernelFrame::CutEvery(const LoopSpace& space, int64_t elements) {
  Cut cut;
  cut.piece_size = space.row_size;
  if (space.interleaved > 1 || space.step > 1 || space.num_elements() % elements != 0) return std::nullopt;
  cut.num_tasks = space.num_elements() / elements;
  if (elements % space.row_size == 0) {
    cut.units_per_task = elements / space.row_size;
    return cut;
  }
  if (space.period > 0) return std::nullopt;
  // Pieces begin at multiples of the lanes.
  const bool even = space.row_size % elements == 0 && (space.uniform || elements % space.width() == 0);
  if (!even || space.whole_rows) return std::nullopt;
  cut.piece_size = elements;
  cut.pieces = space.row_size / elements;
  return cut;
}

ElementalEmitter& KernelFrame::Emitter(int lanes) {
  const auto [at, fresh] = emitters_.try_emplace(lanes, b_, scopes_, lanes);
  if (fresh) {
    Bind(at->second);
    at->second.NoteSplits(splits_);
    at->second.KeepValues(&kept_values_);
    if (body_.MovesSmallFloats()) at->second.elements().HoldCodes();
  }
  return at->second;
}

void KernelFrame::OneByOne(const char* name, V begin, V end, const ElementFn& body) {
  ElementalEmitter& e = Emitter(1);
  scopes_.Loop(name, begin, end, 1, [&](V i) { body(e, e.indices().Counter(i, scopes_.current(), 0, 1)); });
}

void KernelFrame::AlongRow(int lanes, V begin, V end, bool whole, int64_t multiple, const ElementFn& body,
                           bool backwards) {
  IrBuilder& ir = b_.ir();
  const bool in_place = std::ranges::any_of(outputs_, [](const ElementBuilder::Memory& m) { return m.in_place; });
  if ((whole_ || (!in_place && !interleaves_)) && !whole && lanes > 1 && b_.target().masked_memory) {
    // A short row is one vector, masked; in memory, unless a vector and half of one make it, which cross fewer lines.
    const auto* first = llvm::dyn_cast<llvm::ConstantInt>(begin);
    const auto* last = llvm::dyn_cast<llvm::ConstantInt>(end);
    const int64_t length = first && last ? last->getSExtValue() - first->getSExtValue() : 0;
    if (length > 0 && length < 2 * lanes && (whole_ || 2 * length % lanes != 0)) {
      lanes = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(length)));
      whole = length == lanes;
    }
  }
  ElementalEmitter& e = Emitter(lanes);
  if (lanes == 1) return OneByOne("elements", begin, end, body);
  multiple = std::gcd(multiple, static_cast<int64_t>(lanes));
  V vector_end = end;
  if (!whole) {
    const V length = ir.CreateSub(end, begin);
    vector_end = ir.CreateAdd(begin, ir.CreateAnd(length, b_.I64(-static_cast<int64_t>(lanes))));
  }
  const auto vector = [&](V i) { body(e, e.indices().Counter(i, scopes_.current(), 1, multiple)); };
  scopes_.Loop("vectors", begin, vector_end, lanes, [&](V i) {
    vector(backwards ? ir.CreateSub(ir.CreateAdd(begin, ir.CreateSub(vector_end, b_.I64(lanes))), i) : i);
  });
  if (whole) return;
  if (b_.target().masked_memory && !interleaves_) {
    scopes_.Loop("rest", vector_end, end, lanes, [&](V i) {
      V left = b_.ZExtOrTrunc(ir.CreateSub(end, i), 32);
      const ElementalEmitter::Condition inside{b_.ULt(b_.LaneNumbers(lanes, 32), left), scopes_.current(), true};
      e.WithMask(inside, [&] {
        vector(i);
        return Vals();
      });
    });
  } else {
    RestOfRow(lanes, begin, vector_end, end, multiple, body);
  }
}

// What a row has behind its whole vectors of so many lanes, where no instruction leaves lanes out: one vector that ends
// with the row, if those in front of it may be computed once more; or vectors of half as many lanes, then of a quarter,
// and so on where the length is known, and what these leave, one by one.
void KernelFrame::RestOfRow(int lanes, V row_begin, V begin, V end, int64_t multiple, const ElementFn& body) {
  constexpr int64_t kMostCode = 256;  // of an element: more is long to compile so many times
  constexpr int kLeastInterleaved = 4;
  // Quick code has the same bits.
  if (b_.quick() || SumsAcrossLanes(body_)) return OneByOne("rest", begin, end, body);
  IrBuilder& ir = b_.ir();
  const auto* row = llvm::dyn_cast<llvm::ConstantInt>(row_begin);
  const auto* first = llvm::dyn_cast<llvm::ConstantInt>(begin);
  const auto* last = llvm::dyn_cast<llvm::ConstantInt>(end);
  const bool known = first && last;
  const int64_t length = known ? last->getSExtValue() - first->getSExtValue() : lanes - 1;
  if (repeats_elements_ && known && row && length > (interleaves_ ? 0 : 1)) {
    int narrow = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(length)));
    if (interleaves_) narrow = std::max(narrow, std::min(lanes, kLeastInterleaved));
    const int64_t from = last->getSExtValue() - narrow;
    if (from >= row->getSExtValue()) {
      ElementalEmitter& e = Emitter(narrow);
      return body(e, e.indices().Counter(b_.I64(from), scopes_.current(), 1, std::gcd(from, int64_t{narrow})));
    }
  }
  if (CodeOf(body_) <= kMostCode) {
    const int least = known ? 2 : std::max(2, lanes / 4);
    for (int narrow = lanes / 2; narrow >= least; narrow /= 2) {
      if (length % (2 * narrow) < narrow) continue;  // none is left for it
      ElementalEmitter& e = Emitter(narrow);
      V narrow_end = ir.CreateAdd(begin, ir.CreateAnd(ir.CreateSub(end, begin), b_.I64(-narrow)));
      scopes_.Loop("narrow", begin, narrow_end, narrow, [&](V i) {
        body(e, e.indices().Counter(i, scopes_.current(), 1, std::gcd(multiple, static_cast<int64_t>(narrow))));
      });
      begin = narrow_end;
    }
  }
  OneByOne("rest", begin, end, body);
}

// The same of strips side by side. `rest`: the elements behind the last whole ones; unknown if negative.
void KernelFrame::AlongStrips(const LoopSpace& space, V begin, V end, int64_t rest, int64_t multiple,
                              const ElementFn& body) {
  using Masks = std::vector<ElementalEmitter::Condition>;
  IrBuilder& ir = b_.ir();
  const int width = space.width(), lanes = space.lanes;
  ElementalEmitter& e = Emitter(lanes);
  multiple = std::gcd(multiple, static_cast<int64_t>(width));
  V strips_end = end;
  if (rest != 0) strips_end = ir.CreateAdd(begin, ir.CreateAnd(ir.CreateSub(end, begin), b_.I64(-width)));
  const auto strips = [&](V i, Masks masks, bool last) {
    e.BeginStrips(std::move(masks), last);
    body(e, e.indices().Counter(i, scopes_.current(), 1, multiple));
    e.EndStrips();
  };
  scopes_.Loop("strips", begin, strips_end, width,
               [&](V i) { strips(i, Masks(static_cast<size_t>(space.strips)), false); });
  if (rest == 0) return;
  if (!b_.target().masked_memory) return AlongRow(lanes, strips_end, end, false, multiple, body);
  scopes_.Loop("rest", strips_end, end, width, [&](V i) {
    V left = rest > 0 ? b_.I32(static_cast<int32_t>(rest)) : b_.ZExtOrTrunc(ir.CreateSub(end, i), 32);
    Masks masks;
    for (int first = 0; first < (rest > 0 ? rest : width); first += lanes) {
      V numbers = b_.Add(b_.LaneNumbers(lanes, 32), b_.I32(first));
      const bool full = rest > 0 && first + lanes <= rest;
      masks.push_back(full ? ElementalEmitter::Condition{}
                           : ElementalEmitter::Condition{b_.ULt(numbers, left), scopes_.current(), true});
    }
    strips(i, std::move(masks), true);
  });
}

namespace {

// The digit of the walk, with what is known of it.
LaneIndex AsDigit(LaneIndex i, size_t digit, int64_t low, int64_t high) {
  i = i.Within(low, high);
  i.digit = static_cast<int>(digit);
  i.per = i.scale = 1;
  i.offset_low = i.offset_high = 0;
  return i;
}

}  // namespace

// fn for each region of the rows, under the condition that the row is in it.
void KernelFrame::Regions(const LoopSpace& space, size_t digit, ArrayIndex row, const RegionFn& fn) {
  const size_t digits = space.row_sizes.size();
  if (digit == digits) return fn(row);
  const LaneIndex plain = row.digits[digit];
  const Int64Vector none{};
  const Int64Vector& splits = digit < space.splits.size() ? space.splits[digit] : none;
  const std::function<void(size_t, int64_t)> from = [&](size_t k, int64_t low) {
    const auto region = [&](int64_t high) {
      row.digits[digit] = AsDigit(plain, digit, low, high - 1);
      Regions(space, digit + 1, row, fn);
    };
    if (k == splits.size()) return region(space.row_sizes[digit]);
    using Values = std::vector<V>;
    scopes_.If(
        b_.SLt(plain.base, b_.I64(splits[k])), [&] { return region(splits[k]), Values(); },
        [&] { return from(k + 1, splits[k]), Values(); });
  };
  from(0, 0);
}

// The elements [first, row_end) of a row, a period at a time; then, at its end and in front of each split, what is left
// over, at places that are known as well. A piece of a row has no splits.
void KernelFrame::Periods(const LoopSpace& space, V first, V row_end, bool whole_row, const ElementFn& element) {
  const size_t digit = space.row_sizes.size();
  ElementalEmitter& e = Emitter(space.lanes);
  const auto segment = [&](V begin, V end, int64_t low, int64_t high) {
    const int64_t lanes = space.lanes, rest = low + (high - low) / space.period * space.period;
    const auto vectors = [&](const LaneIndex& from, int64_t count) {
      for (int64_t k = 0; k < count; k += lanes)
        element(e, AsDigit(e.indices().Neighbours(from, k), digit, low, high - 1));
    };
    V periods_end = whole_row ? b_.I64(rest) : b_.Binary(llvm::Intrinsic::smin, end, b_.I64(rest));
    scopes_.Loop("periods", begin, periods_end, space.period, [&](V i) {
      vectors(e.indices().Counter(i, scopes_.current(), 0, std::gcd(low, space.period)), space.period);
    });
    if (rest == high) return;
    const auto leave = [&] {
      const int64_t full = (high - rest) / lanes * lanes, some = high - rest - full;
      vectors(e.indices().Constant(rest), full);
      if (some > 0 && b_.target().masked_memory) {
        const ElementalEmitter::Condition inside{
            b_.ULt(b_.LaneNumbers(space.lanes, 32), b_.I32(static_cast<int32_t>(some))), scopes_.current(), true};
        e.WithMask(inside, [&] {
          vectors(e.indices().Constant(rest + full), 1);
          return Vals();
        });
      } else if (some > 0) {
        const auto at = [&](ElementalEmitter& narrow, const LaneIndex& i) {
          element(narrow, AsDigit(i, digit, low, high - 1));
        };
        // Others compute what is in front of it, unless this is the whole row.
        const int64_t begins = whole_row ? low : rest + full;
        RestOfRow(space.lanes, b_.I64(begins), b_.I64(rest + full), b_.I64(high), std::gcd(rest + full, lanes), at);
      }
      return std::vector<V>();
    };
    if (whole_row) {
      leave();
    } else {
      scopes_.If(b_.ir().CreateICmpEQ(end, b_.I64(high)), leave, [] { return std::vector<V>(); });
    }
  };
  if (!whole_row || digit >= space.splits.size()) return segment(first, row_end, 0, space.row_size);
  Int64Vector ends = space.splits[digit];
  ends.push_back(space.row_size);
  int64_t low = 0;
  for (int64_t high : ends) {
    segment(b_.I64(low), b_.I64(high), low, high);
    low = high;
  }
}

// The elements [first, row_end) of a row, in segments between the splits. Of a piece of a row, most are empty.
void KernelFrame::Segments(const LoopSpace& space, V first, V row_end, bool whole_row, const ElementFn& element) {
  const size_t digit = space.row_sizes.size();
  const int64_t size = space.row_size;
  if (space.period > 0) return Periods(space, first, row_end, whole_row, element);
  const auto walk = [&](V begin, V end, int64_t low, int64_t high, bool whole, int64_t multiple) {
    const auto at_digit = [&](ElementalEmitter& e, const LaneIndex& i) {
      element(e, AsDigit(i, digit, low, high - 1));
    };
    // Only the last piece of a row has elements behind its whole strips.
    const bool known = whole_row || low + size == high;
    if (space.strips > 1)
      AlongStrips(space, begin, end, known ? (high - low) % space.width() : -1, multiple, at_digit);
    else
      AlongRow(space.lanes, begin, end, whole, multiple, at_digit, space.backwards);
  };
  if (digit >= space.splits.size() || space.splits[digit].empty())
    return walk(first, row_end, 0, size, size % space.width() == 0, space.width());
  Int64Vector ends = space.splits[digit];
  ends.push_back(size);
  int64_t low = 0;
  for (int64_t high : ends) {
    V begin = b_.I64(low), end = b_.I64(high);
    if (!whole_row) {
      begin = b_.Binary(llvm::Intrinsic::smax, begin, first);
      end = b_.Binary(llvm::Intrinsic::smax, begin, b_.Binary(llvm::Intrinsic::smin, end, row_end));
    }
    // Pieces of rows begin at multiples of the lanes.
    walk(begin, end, low, high, whole_row && (high - low) % space.width() == 0, low == 0 ? space.width() : low);
    low = high;
  }
}

void KernelFrame::KeepRows(std::vector<KeptRow> rows) {
  if (!whole_) kept_rows_ = std::move(rows);
}

// Computes the reductions of the row that leave behind what is kept.
void KernelFrame::FillRows(const LoopSpace& space, const ArrayIndex& row) {
  ElementalEmitter& e = Emitter(space.lanes);
  ArrayIndex first = row, of_reduce = row;
  first.digits.back() = e.indices().Constant(0);
  of_reduce.digits.pop_back();
  of_reduce.sizes.pop_back();
  const LaneIndex begin = e.indices().Linear(first);
  kept_values_.clear();
  for (const KeptRow& kept : kept_rows_) {
    const int64_t bytes = Bytes(kept.value->shape().type());
    // Where all rows would begin if this one lay where it is kept.
    V pointer = scopes_.At(begin.level, [&] {
      V back = b_.ir().CreateMul(begin.base, b_.I64(-bytes));
      return b_.ir().CreateGEP(b_.Int(8), scratch_, b_.ir().CreateAdd(back, b_.I64(kept.offset)));
    });
    kept_values_[kept.value] = {.memory = {.pointer = pointer, .alignment = static_cast<int>(bytes)}};
  }
  // Reductions of the same row will ask for it by its number.
  const int64_t rows =
      std::accumulate(of_reduce.sizes.begin(), of_reduce.sizes.end(), int64_t{1}, std::multiplies<int64_t>());
  const ArrayIndex number = e.indices().Refactor(of_reduce, std::span(&rows, 1));
  for (const KeptRow& kept : kept_rows_) {
    e.Provide(kept.reduce, number, e.EmitAll(kept.reduce, of_reduce));
    kept_values_[kept.value].filled = true;
  }
}

// The elements of rows that are behind their last points: where they are long code, a vector that ends with the row.
void KernelFrame::BehindPoints(const LoopSpace& space, std::span<const ArrayIndex> rows, V row_end, bool whole_row,
                               const RunFn& run) {
  constexpr int64_t kLongCode = 32;
  if (space.rest == 0) return;
  if (repeats_elements_ && whole_row && !b_.quick() && CodeOf(body_) >= kLongCode &&
      space.row_elements() >= space.lanes) {
    ElementalEmitter& e = Emitter(space.lanes);
    for (ArrayIndex at : rows) {
      at.sizes.back() = space.row_elements();
      const int64_t first = space.row_elements() - space.lanes;
      at.digits.back() = e.indices().Neighbours(e.indices().Constant(first), 0).Within(first, space.row_elements() - 1);
      run(e, at);
    }
    return;
  }
  ElementalEmitter& e = Emitter(1);
  const auto all = [&] {
    for (ArrayIndex at : rows) {
      at.sizes.back() = space.row_elements();
      for (int64_t k = space.row_size * space.step; k < space.row_elements(); ++k) {
        at.digits.back() = e.indices().Constant(k);
        run(e, at);
      }
    }
    return std::vector<V>();
  };
  if (whole_row) {
    all();
  } else {
    scopes_.If(b_.ir().CreateICmpEQ(row_end, b_.I64(space.row_size)), all, [] { return std::vector<V>(); });
  }
}

// `count` neighbours among the rows, or pieces of rows, from number `unit` on: each of them at a point before the next.
void KernelFrame::Rows(const LoopSpace& space, const Cut& cut, V unit, int64_t count, const RunFn& run) {
  IndexBuilder& indices = Emitter(space.lanes).indices();
  const int64_t units = space.rows * cut.pieces;
  const LaneIndex counter = indices.Counter(unit, scopes_.current(), 0, 1);
  Int64Vector sizes = space.row_sizes;
  sizes.push_back(cut.pieces);
  std::vector<ArrayIndex> rows;
  for (int64_t k = 0; k < count; ++k) {
    ArrayIndex at;
    at.sizes = {units};
    at.digits.push_back(indices.Add(counter, indices.Constant(k)).Within(k, units - count + k));
    rows.push_back(indices.Refactor(at, sizes));
  }
  const LaneIndex first = indices.Mul(rows[0].digits.back(), cut.piece_size);
  V row_end = b_.I64(space.row_size);
  if (cut.pieces > 1)
    row_end = b_.Binary(llvm::Intrinsic::smin, b_.ir().CreateAdd(first.base, b_.I64(cut.piece_size)), row_end);
  const auto walk = [&](std::span<const ArrayIndex> in_regions) {
    if (!kept_rows_.empty()) FillRows(space, in_regions[0]);
    const auto element = [&](ElementalEmitter& e, const LaneIndex& i) {
      e.InWalk({.rows = count, .size = space.row_size, .picks = space.picks, .along = i});
      for (ArrayIndex position : in_regions) {
        position.digits.back() = i;
        run(e, position);
      }
      e.InWalk({});
    };
    if (!space.uniform) {
      Segments(space, first.base, row_end, cut.pieces == 1, element);
      return BehindPoints(space, in_regions, row_end, cut.pieces == 1, run);
    }
    ElementalEmitter& e = Emitter(space.lanes);
    scopes_.Loop("elements", first.base, row_end, 1, [&](V i) {
      element(e, e.indices().Counter(i, scopes_.current(), 0, 1).Within(0, space.row_size - 1));
    });
  };
  std::vector<ArrayIndex> in_regions;
  const std::function<void()> further = [&] {
    if (in_regions.size() == rows.size()) return walk(in_regions);
    ArrayIndex row = rows[in_regions.size()];
    row.sizes.back() = space.row_size;
    Regions(space, 0, row, [&](const ArrayIndex& in_region) {
      in_regions.push_back(in_region);
      further();
      in_regions.pop_back();
    });
  };
  further();
}

Status KernelFrame::Walk(const LoopSpace& space, const Cut& cut, const PointFn& point) {
  IrBuilder& ir = b_.ir();
  Status status;
  const int64_t units = space.rows * cut.pieces;
  const auto run = [&](ElementalEmitter& e, const ArrayIndex& at) {
    if (status.ok()) status = point(e, at);
    if (status.ok()) status = e.status();
  };
  interleaves_ = space.step > 1;
  Emitter(space.lanes).ReduceRowsInStrips(space.uniform ? space.strips : 1);
  V begin = task_begin(), end = task_end(cut.num_tasks);
  if (cut.num_tasks == 1 || whole_) {  // known bounds: a small kernel is a single loop, or none
    begin = b_.I64(0);
    end = b_.I64(units);
  } else if (cut.units_per_task > 1) {
    begin = ir.CreateMul(begin, b_.I64(cut.units_per_task));
    end = b_.Binary(llvm::Intrinsic::smin, ir.CreateMul(end, b_.I64(cut.units_per_task)), b_.I64(units));
  }
  if (const int64_t together = space.together; together > 1 && cut.pieces == 1) {
    V rest = ir.CreateAdd(begin, ir.CreateAnd(ir.CreateSub(end, begin), b_.I64(-together)));
    scopes_.Loop("rows_together", begin, rest, together, [&](V unit) { Rows(space, cut, unit, together, run); });
    if (units % together == 0) return status;  // and so are the rows of each task
    begin = rest;
  }
  scopes_.Loop("rows", begin, end, 1, [&](V unit) { Rows(space, cut, unit, 1, run); });
  return status;
}

namespace {

using OutputFn = std::function<const ElementBuilder::Memory&(size_t root)>;

// Of each root all elements of the last digit, stored interleaved.
Status EmitInterleaved(ElementalEmitter& e, const KernelBody& body, const LoopSpace& space, const ArrayIndex& at,
                       const OutputFn& output) {
  std::vector<Vals> parts(body.roots.size());
  std::vector<ArrayIndex> places;
  for (int64_t d = 0; d < space.interleaved; ++d) {
    ArrayIndex& part = places.emplace_back(at);
    part.digits.push_back(e.indices().Constant(d));
    part.sizes.push_back(space.interleaved);
  }
  for (size_t r = 0; r < body.roots.size(); ++r) {
    if (body.roots[r]->op() == Op::Reduce && body.roots[r]->shape().IsArray()) {
      parts[r] = e.ReduceParts(*body.roots[r], places);
      continue;
    }
    for (const ArrayIndex& part : places)
      parts[r].push_back(e.EmitAll(body.roots[r], part)[static_cast<size_t>(body.root_leaf[r])]);
  }
  STROP_TRY(e.status());
  for (size_t r = 0; r < body.roots.size(); ++r)
    e.StoreInterleaved(output(r), parts[r], e.indices().Mul(e.indices().Linear(at), space.interleaved));
  return OkStatus();
}

// At a point of a row all elements from there on to the next point.
Status EmitPoint(ElementalEmitter& e, const KernelBody& body, const LoopSpace& space, const ArrayIndex& at,
                 const OutputFn& output) {
  std::vector<Vals> parts(body.roots.size());
  std::vector<ArrayIndex> places(static_cast<size_t>(space.step), at);
  for (int64_t d = 0; d < space.step; ++d) {
    ArrayIndex& place = places[static_cast<size_t>(d)];
    place.digits.back() = e.indices().Shift(e.indices().Mul(at.digits.back(), space.step), d);
    place.sizes.back() = space.row_elements();
  }
  for (size_t r = 0; r < body.roots.size(); ++r)
    for (const ArrayIndex& place : places)
      parts[r].push_back(e.EmitAll(body.roots[r], place)[static_cast<size_t>(body.root_leaf[r])]);
  STROP_TRY(e.status());
  for (size_t r = 0; r < body.roots.size(); ++r) e.StoreInterleaved(output(r), parts[r], e.indices().Linear(places[0]));
  return OkStatus();
}

// The strips that the emitter has begun: the reductions of all of them in one loop.
Status EmitStrips(ElementalEmitter& e, const KernelBody& body, const ArrayIndex& at, const OutputFn& output) {
  const std::vector<ArrayIndex> strips = e.StripsAt(at);
  for (auto root = body.roots.begin(); root != body.roots.end(); ++root)
    if ((*root)->op() == Op::Reduce && std::find(body.roots.begin(), root, *root) == root)
      e.ReduceStrips(**root, strips);
  std::vector<Vals> values(strips.size());
  for (size_t s = 0; s < strips.size(); ++s)
    for (size_t r = 0; r < body.roots.size(); ++r)
      values[s].push_back(e.EmitStrip(s, body.roots[r], strips[s])[static_cast<size_t>(body.root_leaf[r])]);
  STROP_TRY(e.status());
  for (size_t s = 0; s < strips.size(); ++s)
    for (size_t r = 0; r < body.roots.size(); ++r) e.StoreStrip(s, output(r), values[s][r], strips[s]);
  return OkStatus();
}

}  // namespace

// All values before the first store: a result may share its buffer with an operand.
Status EmitRoots(ElementalEmitter& e, const KernelFrame& frame, const KernelBody& body, const LoopSpace& space,
                 const ArrayIndex& at, std::span<const size_t> outputs) {
  const auto output = [&](size_t r) -> const ElementBuilder::Memory& {
    return frame.output(outputs.empty() ? r : outputs[r]);
  };
  if (space.interleaved > 1) return EmitInterleaved(e, body, space, at, output);
  if (space.step > 1 && at.sizes.back() == space.row_size) return EmitPoint(e, body, space, at, output);
  if (e.strips() > 0) return EmitStrips(e, body, at, output);
  Vals values;
  for (size_t r = 0; r < body.roots.size(); ++r)
    values.push_back(e.EmitAll(body.roots[r], at)[static_cast<size_t>(body.root_leaf[r])]);
  STROP_TRY(e.status());
  for (size_t r = 0; r < body.roots.size(); ++r) e.Store(output(r), values[r], at);
  return OkStatus();
}

}  // namespace strop
