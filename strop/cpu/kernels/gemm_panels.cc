#include "strop/cpu/kernels/gemm_panels.h"

#include <algorithm>
#include <type_traits>

#include "strop/base/host_limits.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {
namespace {

constexpr int64_t kLeastProducts = int64_t{1} << 22;  // below, waiting for each other costs more than packing twice
constexpr int64_t kTaskProducts = int64_t{1} << 18;   // of a task, at least
constexpr int64_t kTasks = 32;                        // enough to be even among threads
constexpr int64_t kEvenTasks = 8;
constexpr int64_t kTasksOfProcessor = 8;  // where each reads much from afar
constexpr int64_t kFewOfProcessor = 4;    // the same where it is more than kSteadyBytes
constexpr int64_t kFarPanels = 5;         // of a task, for which reading all of the other operand is worth while
constexpr int64_t kSquaresOfProcessor = 2;
constexpr int64_t kOwnPanels = 2;  // of columns, of a task at least, where nothing is packed for all
constexpr int64_t kFewTasks = 12;
constexpr int64_t kCopyingPanels = 4;       // of rows, at least, while which columns are copied
constexpr int64_t kCopyingOfProcessor = 2;  // tasks, then
constexpr int64_t kRunsOfTask = 4;          // of PanelProblem::row
constexpr int64_t kPieces = 16;             // of what is packed for all, at least where it is large
constexpr int64_t kStripRows = 8;           // of units along k: what the caches hold at distances of pages
constexpr int64_t kBlockUnits = 2048;       // along k
constexpr int64_t kFarBlockUnits = 1024;    // where what all share comes from afar
constexpr int64_t kSquareUnits = 128;       // along k, of a panel that stays in the first-level cache beside the others
constexpr int64_t kMostSquareUnits = 192;   // of one block, and of patches: few columns are multiplied with them
constexpr int64_t kFewSquares = 2;          // panels of rows, that are multiplied sooner than a large B comes
constexpr int64_t kFewSquareUnits = 64;     // along k, for these
constexpr int64_t kMostSteps = 4;           // that a block has whose panels are packed ahead
constexpr int64_t kThirdUnits = 96;         // of numbers in three parts: 64 of them
constexpr int64_t kAheadBytes = 9 << 16;    // of panels, their sums, and what the next ones are packed from
constexpr int64_t kSquareVectors = 1024;  // of the shared operand, by which the second-level cache holds a task's sums
constexpr int64_t kSquareSums = 1 << 18;  // of a task
constexpr int64_t kSquareRowsBytes = 3 << 18;              // of A, read where it lies by all tasks
constexpr int64_t kMostRows = 16;                          // of registers
constexpr int64_t kFewPanels = 64, kFewNarrowPanels = 32;  // of rows
constexpr int64_t kLongRows = 384;                         // terms
constexpr int64_t kFewRows = 128;
constexpr int64_t kFewRowsUnits = 768;        // along k, of columns that are fetched ahead or packed for them
constexpr int64_t kCachedBytes = 1 << 20;     // of A or C, that may still lie in the second-level cache
constexpr int64_t kOwnBytes = 3 << 18;        // a task's panels: most of the second-level cache
constexpr int64_t kNarrowOwnBytes = 9 << 15;  // the same for narrow vectors
constexpr int64_t kNarrowColumnPanels = 16;   // for enough tasks of two
constexpr int64_t kNearBytes = 1 << 21;       // of panels for all: what is more comes from afar, columns of B in bursts
constexpr int64_t kWideNearBytes = 1 << 20;   // the same of wide vectors, which need more of it
constexpr int64_t kSteadyBytes = 1 << 22;     // the same of rows of A, which come more slowly and more often

int64_t FarTasks(int64_t of_processor) {
  static const int64_t cpus = UsableCpus();
  return std::clamp<int64_t>(of_processor * cpus, 2 * of_processor, kTasks);
}

void Fetch(const MemoryRows& memory) { FetchRows<false>(memory.from, memory.stride, memory.rows, memory.row_bytes); }

}  // namespace

template <class T>
Panels<T>::Cut::Cut(int64_t vectors, int64_t most, bool even)
    : vectors(vectors), most(most), count(CeilDiv(vectors, most)), even(even) {}

template <class T>
bool Panels<T>::Suits(const PanelProblem& p) {
  const int64_t products = p.m * p.n * p.k;
  return p.m > 1 && p.n > 1 && products >= kLeastProducts && p.batch * p.outer < 16;
}

template <class T>
Panels<T>::Panels(const PanelProblem& problem, const MicroTable<T>& micro) : p_(problem), micro_(micro) {
  const int64_t bytes = sizeof(T), group = micro.group;
  const int64_t a_panels = CeilDiv(p_.m, micro.mr), b_panels = CeilDiv(p_.n, micro.nr);
  // Rows are dealt out if there are enough of them. Columns go by four panels, a long enough piece of a row of memory.
  // (128 by 3072 by 768 took 1.3 times as long where the columns were packed for all.)
  // Where A is read as it lies and the second-level cache holds it, columns are dealt out if there are enough: nothing
  // is packed for all then, and no line goes from the core that packed it to another.
  const bool squares = micro.step > 1, thirds = micro.quantum > 0;
  // Few rows of f32 are packed sooner than they are read in place for each column, and so are short ones.
  const bool narrow = HasNarrowVectors(micro);
  const bool few_panels = a_panels < (narrow ? kFewNarrowPanels : kFewPanels) && a_panels <= b_panels;
  const bool long_rows = !few_panels && p_.m <= p_.n && p_.k >= kLongRows;
  const bool columns = p_.a_in_place && (group > 1 || long_rows) &&
                       b_panels >= kOwnPanels * (squares ? kFewOfProcessor : kEvenTasks) &&
                       p_.m * micro.Units(p_.k) * bytes <= (squares ? kSquareRowsBytes : kCachedBytes);
  // Narrow tiles go through the panels of A for each column (see below), which are half as large as those of B: what
  // another core has packed comes in time.
  const bool narrow_columns = narrow && p_.a_typed && !p_.a_across && b_panels >= kNarrowColumnPanels &&
                              p_.m <= 2 * p_.n && p_.m * p_.k * bytes <= kSteadyBytes;
  shares_a_ = p_.shared == SharedOperand::A ||
              (p_.shared == SharedOperand::Either && (columns || narrow_columns || few_panels));
  // Of what tasks own, only pairs of bf16 take long to pack.
  in_place_ = p_.a_in_place && (columns || (!shares_a_ && group == 2 && !squares));
  // Columns that few rows are multiplied with are mostly waited for: the next ones are fetched meanwhile, or packed by
  // the tiles that read them first.
  const bool few = shares_a_ && p_.m <= kFewRows;
  packs_ahead_ = thirds && (shares_a_ ? p_.b_in_rows : p_.a_in_rows);
  if (shares_a_ && !in_place_ && p_.b_in_rows && !narrow && !squares && p_.bias == 0)
    packing_ = FetchingKernelsOf(micro).packing;
  // Not into narrow tiles: their blocks along k would be too short to pay for reading and writing the sums again.
  fetches_ = p_.fetches && !narrow && !packing_ && few && HoldsSums<T>(p_.c) && !p_.whole_k;
  if (fetches_ && !in_place_ && p_.bias == 0) fetching_ = FetchingKernelsOf(micro);
  // What all share is read once a task. If that is more than the outer cache has for us, tasks are as large as the
  // second-level cache allows, and shorter along k, which makes them wider; but each processor has some.
  const int64_t for_all = (shares_a_ ? p_.m : p_.n) * micro.Units(p_.k) * bytes;
  const bool far = !narrow && packs_shared() && for_all > kWideNearBytes;
  // Whole squares are multiplied faster than the second-level cache hands over two panels: one of them, a block along
  // k, has to stay in the first.
  const bool patches = p_.shared != SharedOperand::Either;
  // Few rows wait for B, whose rows come the sooner the more of each is read: by wide tasks, a few rows at a time.
  const bool waits = squares && !patches && shares_a_ && p_.b_across && micro.Units(p_.k) * p_.n * bytes > kSteadyBytes;
  const bool waits_only = waits && p_.m <= kFewSquares * micro.mr;
  const int64_t square_units = thirds                                             ? kThirdUnits
                               : waits_only                                       ? kFewSquareUnits
                               : patches || micro.Units(p_.k) <= kMostSquareUnits ? kMostSquareUnits
                                                                                  : kSquareUnits;
  const int64_t k_units = squares                     ? square_units
                          : packing_ || fetches_      ? kFewRowsUnits
                          : far && HoldsSums<T>(p_.c) ? kFarBlockUnits
                                                      : kBlockUnits;
  k_blocks_ = p_.whole_k ? 1 : CeilDiv(p_.k, squares ? k_units / micro.step * micro.Quantum() : k_units * group);
  kb_ = RoundUp(CeilDiv(p_.k, k_blocks_), std::max(4 * group, micro.Quantum()));
  k_blocks_ = CeilDiv(p_.k, kb_);
  k_units_ = micro.Units(p_.k);
  fetches_c_ = p_.batch * p_.outer * p_.m * p_.n * Bytes(p_.c) > kCachedBytes;
  own_ = shares_a_ ? p_.n : p_.m;
  own_width_ = shares_a_ ? micro.nr : micro.mr;
  fetches_own_ = thirds && !packs_ahead_ && p_.fetches && !(shares_a_ ? p_.b_across : p_.a_across) &&
                 own_ * p_.k * static_cast<int64_t>(sizeof(T)) > kCachedBytes;
  shared_width_ = shares_a_ ? micro.mr : micro.nr;
  finds_zeros_ = (!in_place_ || group == 1) && p_.bias == 0 && FindsZeros(micro);
  const int64_t shared = RoundUp(shares_a_ ? p_.m : p_.n, shared_width_);
  // Whole squares would wait for rows of C, which may meet in the same lines of the first-level cache.
  keeps_sums_ = k_blocks_ > 1 && (squares || !HoldsSums<T>(p_.c));
  even_rows_ = !squares && !shares_a_;
  // What is summed at once of a panel of B then stays in the first-level cache, and a task's panels in the second.
  held_units_ = narrow && HoldsSums<T>(p_.c) && p_.bias == 0 ? kSumUnits : micro.Units(kb_);
  // Narrow tiles are done sooner than the second-level cache has handed over a panel of B: if it is that short, it
  // stays in the first-level cache while the panels of A, which are smaller, pass by.
  rows_first_ = shares_a_ && !(narrow && held_units_ <= kSumUnits);
  held_rows_ = shares_a_ ? std::max<int64_t>(kNarrowOwnBytes / (micro.mr * std::min(held_units_, k_units_) * bytes), 1)
                         : a_panels;

  const int64_t vector_bytes = k_units_ * bytes;
  chunk_ = shared;
  if (packs_shared() && shared * vector_bytes > kSharedBytes)
    chunk_ = std::max<int64_t>(kSharedBytes / vector_bytes / (16 * shared_width_), 1) * 16 * shared_width_;
  if (squares && packs_shared()) chunk_ = std::min(chunk_, kSquareVectors);
  chunk_ = std::min(chunk_, shared);
  chunks_ = CeilDiv(shared, chunk_);
  if (!packs_shared())
    batches_ = p_.batch;
  else if (chunks_ == 1)
    batches_ = std::clamp<int64_t>(kSharedBytes / (shared * vector_bytes), 1, p_.batch);
  batch_rounds_ = CeilDiv(p_.batch, batches_);
  if (packs_shared() && !shares_a_ && p_.bias == 0 &&
      batches_ * chunk_ * vector_bytes > (narrow ? kNearBytes : kWideNearBytes))
    fetching_ = FetchingKernelsOf(micro);

  const bool own_across = shares_a_ ? p_.b_across : p_.a_across;
  const int64_t panels = CeilDiv(own_, own_width_);
  const int64_t least = !own_across                         ? 1
                        : few && panels >= 4 * kTasks       ? 8
                        : !packs_shared() || narrow_columns ? kOwnPanels
                        : shares_a_                         ? 4
                                                            : 2;
  const int64_t worth = CeilDiv(kTaskProducts, own_width_ * chunk_ * p_.k);
  const int64_t own_units = std::min(held_units_, micro.Units(kb_));
  int64_t held = std::max<int64_t>((narrow ? kNarrowOwnBytes : kOwnBytes) / (own_width_ * own_units * bytes), 1);
  if (squares) held = std::min(held, std::max<int64_t>(kSquareSums / (own_width_ * chunk_), 1));
  if (packs_ahead_)
    held = std::min(held, std::max<int64_t>(kOwnBytes / (own_width_ * (2 * own_units + chunk_) * bytes), 1));
  if (fetches_own_)
    held = std::min(held, std::max<int64_t>(kAheadBytes / (own_width_ * (own_units + kb_ + chunk_) * bytes), 1));
  const bool small = packs_shared() && for_all <= kWideNearBytes;
  const int64_t tasks = waits_only ? FarTasks(1)
                        : squares  ? FarTasks(small && !waits && !thirds ? kFewOfProcessor : kSquaresOfProcessor)
                        : far && for_all > kSteadyBytes ? FarTasks(kFewOfProcessor)
                        : far ? std::clamp(panels / kFarPanels, FarTasks(kFewOfProcessor), FarTasks(kTasksOfProcessor))
                              : kTasks;
  const int64_t even = CeilDiv(panels * batches_ * p_.outer, tasks);
  const int64_t a_task = std::min(std::max({even, worth, least}), held);
  if (packing_ && a_panels >= kCopyingPanels && held_units_ >= micro.Units(kb_) && HoldsSums<T>(p_.c) &&
      p_.k * p_.n * bytes > kCachedBytes) {
    copies_ = true;
    fetching_ = FetchingKernelsOf(micro);
    DealOut(std::max(a_task, panels / FarTasks(kCopyingOfProcessor)));
    block_columns_ = std::min(a_task, std::max<int64_t>(CeilDiv(per_task_ / micro.nr, 2), 1)) * micro.nr;
  } else {
    DealOut(a_task);
  }
  const bool shared_across = shares_a_ ? p_.a_across : p_.b_across;
  piece_ = std::clamp<int64_t>(chunk_ / shared_width_ * batches_ * k_blocks_ / kPieces, shared_across ? 4 : 1, 16) *
           shared_width_;
  pieces_ = CeilDiv(chunk_, piece_);
  if (p_.bias != 0) {
    int32_t bytes = 0x01010101;
    ones_.assign(micro.Units(kb_), static_cast<T>(bytes));
  }
}

// Cuts tasks of about so many panels, as many for each processor, so that all end at about the same time: rows go
// evenly, columns in whole panels, since a narrower tile takes as long. Rows of images go together if there are enough
// of them.
template <class T>
void Panels<T>::DealOut(int64_t panels_a_task) {
  const int64_t panels = CeilDiv(own_, own_width_);
  unit_ = shares_a_ ? own_width_ : 1;
  blocks_ = EvenTasks(CeilDiv(panels, panels_a_task), batches_ * p_.outer, panels);
  const int64_t runs = own_ / p_.row, most = runs / kRunsOfTask;
  if (!shares_a_ && p_.row > 1 && (most >= kFewTasks || runs >= blocks_)) {
    unit_ = p_.row;
    if (most >= kFewTasks) blocks_ = std::min(blocks_, most);
  }
  per_task_ = CeilDiv(CeilDiv(own_, unit_), blocks_) * unit_;
}

template <class T>
int64_t Panels<T>::shared_bytes() const {
  if (!packs_shared()) return kCarverSlack;
  const int64_t notes = batches_ * k_blocks_ * CeilDiv(chunk_, shared_width_) * static_cast<int64_t>(sizeof(PanelNote));
  return SharedUnits() * static_cast<int64_t>(sizeof(T)) + notes + ReadBeyond() + 2 * kCarverSlack;
}

template <class T>
int64_t Panels<T>::SharedUnits() const {
  const int64_t seeds = p_.bias != 0 && !shares_a_ ? k_blocks_ * RoundUp(chunk_, micro_.nr) : 0;
  return batches_ * (SharedAt(chunk_, 0) + seeds);
}

template <class T>
int64_t Panels<T>::scratch_bytes() const {
  const int64_t own = OwnUnits(), tile = micro_.mr * micro_.nr;
  const int64_t seeds = p_.bias != 0 ? RoundUp(per_task_, micro_.nr) : 0;
  return ((HasNext() ? 2 : 1) * own + tile + KeptSums() + seeds) * static_cast<int64_t>(sizeof(T)) + ReadBeyond() +
         (CeilDiv(per_task_, own_width_) + (in_place_ ? CeilDiv(p_.m, micro_.mr) : 0)) *
             static_cast<int64_t>(sizeof(PanelNote)) +
         p_.repair_bytes + p_.target_bytes_per_row * std::max(per_task_, p_.m) + 9 * kCarverSlack;
}

template <class T>
int64_t Panels<T>::KeptSums() const {
  if (!keeps_sums_) return 0;
  return CeilDiv(per_task_, own_width_) * CeilDiv(chunk_, shared_width_) * micro_.mr * micro_.nr;
}

template <class T>
int64_t Panels<T>::OwnUnits() const {
  if (!packs_own()) return 0;
  const int64_t vectors = copies_ ? block_columns_ : per_task_;
  return OwnAt(vectors, CeilDiv(vectors, own_width_), std::min(held_units_, micro_.Units(kb_)));
}

template <class T>
std::string Panels<T>::ToString() const {
  const char *shared = shares_a_ ? "lhs" : "rhs", *own = shares_a_ ? "columns" : "rows";
  std::string text = StrCat(packs_shared() ? StrCat(shared, " packed for all, ") : "", per_task_, " ", own, " a task");
  if (kb_ < p_.k) StrAppend(text, ", k by ", kb_);
  if (rounds() > 1) StrAppend(text, ", ", rounds(), " rounds");
  if (in_place_) text += ", lhs where it lies";
  if (shares_a_ && !rows_first_) text += ", column by column";
  if (copies_) StrAppend(text, ", ", block_columns_, " of them while others are multiplied");
  if (fetching_ && !copies_) text += shares_a_ ? ", the next columns ahead" : ", the next column ahead";
  StrAppend(text, ", ", micro_.mr, "x", micro_.nr, " in registers");
  if (micro_.step > 1)
    StrAppend(text, ", squares of 16x16 an instruction");
  else if (micro_.group > 1)
    StrAppend(text, ", ", micro_.group, " products an instruction");
  return text;
}

template <class T>
typename Panels<T>::Memory Panels<T>::Carve(void* scratch) const {
  Carver carver(scratch);
  Memory memory;
  memory.own = carver.Take<T>(OwnUnits());
  memory.next = carver.Take<T>(HasNext() ? OwnUnits() : 0);
  memory.tile = carver.Take<T>(micro_.mr * micro_.nr);
  memory.sums = carver.Take<T>(KeptSums());
  memory.seeds = carver.Take<T>(p_.bias != 0 ? RoundUp(per_task_, micro_.nr) : 0);
  memory.notes = carver.Take<PanelNote>(CeilDiv(per_task_, own_width_));
  memory.row_notes = carver.Take<PanelNote>(in_place_ ? CeilDiv(p_.m, micro_.mr) : 0);
  memory.repair = carver.Take<uint8_t>(p_.repair_bytes);
  memory.target = carver.Take<uint8_t>(0);
  return memory;
}

template <class T>
typename Panels<T>::Round Panels<T>::RoundOf(int64_t round) const {
  const int64_t batch = round / chunks_ * batches_, begin = round % chunks_ * chunk_;
  const int64_t shared = shares_a_ ? p_.m : p_.n;
  return {batch, std::min(batches_, p_.batch - batch), begin, std::min(begin + chunk_, shared)};
}

// A packed block may be followed by a vector that means nothing: hence the distance after each.
template <class T>
int64_t Panels<T>::SharedAt(int64_t vector, int64_t k0) const {
  const int64_t panel = vector / shared_width_;
  return vector * k_units_ + micro_.UnitAt(k0) * shared_width_ + (panel * k_blocks_ + k0 / kb_) * micro_.lanes;
}

template <class T>
T* Panels<T>::SharedSeeds(T* panels, int64_t batch, int64_t k0) const {
  return panels + batches_ * SharedAt(chunk_, 0) + (batch * k_blocks_ + k0 / kb_) * RoundUp(chunk_, micro_.nr);
}

template <class T>
PanelNote* Panels<T>::SharedNotes(T* panels, int64_t batch, int64_t k0) const {
  PanelNote* notes = Carver(panels + SharedUnits()).Take<PanelNote>(0);
  return notes + (batch * k_blocks_ + k0 / kb_) * CeilDiv(chunk_, shared_width_);
}

template <class T>
void Panels<T>::Seed(int64_t units, const T* panel, int64_t panel_distance, int64_t count, T* seeds) const {
  for (int64_t j = 0; j < count; j += micro_.nr, panel += panel_distance, seeds += micro_.nr) {
    micro_.kernel[0](units, ones_.data(), panel, micro_.nr, seeds, micro_.nr, false);
    for (int64_t l = 0; l < micro_.nr; ++l) seeds[l] *= static_cast<T>(-p_.bias);
  }
}

// Panels of the vectors that are cut, from `first` on, elements [k0, k0 + kc); that of vector first + v, the panel of
// that number, goes to dst + at(v, panel).
template <class T>
template <class At>
void Panels<T>::Pack(const PanelOperands<T>& operands, bool a, int64_t product, int64_t first, const Cut& cut,
                     int64_t k0, int64_t kc, T* dst, const At& at) const {
  const int64_t strip = (a ? p_.a_across : p_.b_across) ? std::max(kStripRows * micro_.group, micro_.Quantum()) : kc;
  // The next strip, or the next panel, unless it was fetched while the last block was multiplied.
  const bool ahead = p_.fetches && micro_.step == 1 && !(fetches_ && a != shares_a_ && k0 > 0);
  for (int64_t p = 0; p < kc; p += strip) {
    for (int64_t panel = 0; panel < cut.count; ++panel) {
      const int64_t v = cut.First(panel), vectors = cut.Size(panel), width = a ? vectors : cut.most;
      T* to = dst + at(v, panel) + micro_.UnitAt(p) * width;
      if (a)
        operands.PackA(product, first + v, vectors, k0 + p, std::min(strip, kc - p), width, to);
      else
        operands.PackB(product, first + v, vectors, k0 + p, std::min(strip, kc - p), width, to);
      if (!ahead) continue;
      if (p + strip < kc)
        Fetch(operands.Memory(a, product, first + v, vectors, k0 + p + strip, std::min(strip, kc - p - strip)));
      else if (strip == kc && panel + 1 < cut.count)
        Fetch(operands.Memory(a, product, first + v + vectors, cut.Size(panel + 1), k0, kc));
    }
  }
}

template <class T>
void Panels<T>::Prepare(const PanelOperands<T>& operands, int64_t number, int64_t begin, int64_t end,
                        void* shared) const {
  const Round round = RoundOf(number);
  T* panels = Carver(shared).Take<T>(0);
  for (int64_t task = begin; task < end; ++task) {
    const int64_t k0 = task % k_blocks_ * kb_, from = task / k_blocks_ % pieces_ * piece_;
    const int64_t batch = task / k_blocks_ / pieces_;
    if (batch >= round.batches || round.begin + from >= round.end) continue;
    const int64_t count = std::min(piece_, round.end - round.begin - from), kc = std::min(kb_, p_.k - k0);
    T* to = panels + batch * SharedAt(chunk_, 0);
    Pack(operands, shares_a_, (round.batch + batch) * p_.outer, round.begin + from, Cut(count, shared_width_, false),
         k0, kc, to, [&](int64_t v, int64_t) { return SharedAt(from + v, k0); });
    for (int64_t v = from; v < from + count && finds_zeros_; v += shared_width_)
      SharedNotes(panels, batch, k0)[v / shared_width_] = {
          ExtentOfPanel(to + SharedAt(v, k0), micro_.Units(kc),
                        shares_a_ ? std::min(shared_width_, from + count - v) : shared_width_)};
    if (p_.bias != 0 && !shares_a_)
      Seed(micro_.Units(kc), to + SharedAt(from, k0), SharedAt(micro_.nr, 0), count,
           SharedSeeds(panels, batch, k0) + from);
  }
}

template <class T>
typename Panels<T>::Part Panels<T>::PartOf(int64_t number, int64_t task) const {
  const Round round = RoundOf(number);
  if (task / blocks_ / p_.outer >= round.batches) return {};
  const int64_t product = round.batch * p_.outer + task / blocks_, block = task % blocks_;
  const int64_t units = CeilDiv(own_, unit_);
  const int64_t first = block * units / blocks_ * unit_, end = std::min((block + 1) * units / blocks_ * unit_, own_);
  const int64_t own = end - first, shared = round.end - round.begin;
  if (shares_a_) return {product, round.begin, shared, first, own};
  return {product, first, own, round.begin, shared};
}

template <class T>
const T* Panels<T>::SharedPanel(const void* shared, int64_t task, int64_t vector) const {
  const T* panels = Carver(const_cast<void*>(shared)).Take<T>(0);
  return panels + task / blocks_ / p_.outer * SharedAt(chunk_, 0) + SharedAt(vector, 0);
}

template <class T>
void Panels<T>::Run(const PanelOperands<T>& operands, int64_t number, int64_t begin, int64_t end, const void* shared,
                    void* scratch) const {
  T* panels = Carver(const_cast<void*>(shared)).Take<T>(0);
  Memory memory = Carve(scratch);
  const KernelScope kernels(micro_);
  for (int64_t task = begin; task < end; ++task) {
    const Part part = PartOf(number, task);
    const int64_t batch = task / blocks_ / p_.outer;
    if (part.rows <= 0) continue;
    // In pieces of columns, each of which knows the next one.
    const int64_t piece = copies_ ? block_columns_ : part.cols;
    const auto columns = [&part = part, piece](int64_t first) {
      Part some = part;
      some.n0 += first, some.cols = std::min(piece, part.cols - first);
      return some;
    };
    for (int64_t first = 0; first < part.cols; first += piece)
      Block(operands, columns(first), first + piece < part.cols ? columns(first + piece) : Part(), panels, batch,
            memory);
  }
}

// What the own columns' next block along k will read, or that of the columns after them. They are copied if this thread
// is sure to multiply by them; otherwise they are asked for, since the next task comes to the same thread as a rule.
template <class T>
PiecesAhead<T> Panels<T>::NextBlock(const PanelOperands<T>& operands, const Part& part, const Part& next, int64_t k0,
                                    T* to) const {
  if (!copies_ && !fetches_) return {};
  const bool along = k0 + kb_ < p_.k;
  int64_t first = part.n0, count = part.cols;
  if (!along && copies_) first = next.n0, count = next.cols;
  if (!along && !copies_) first += count, count = std::min(per_task_, own_ - first);
  k0 = along ? k0 + kb_ : 0;
  const int64_t kc = std::min(kb_, p_.k - k0), nr = micro_.nr;
  if (!copies_ && count > 0)
    return PiecesAhead<T>::Of(operands.Memory(/*a=*/false, part.product, first, count, k0, kc), nr);
  if (!copies_ || count < nr) return {};
  const auto [rows, stride] = operands.RowsOfB(part.product);
  return {rows + k0 * stride + first, stride, count / nr, kc * (count / nr), to, OwnAt(nr, 1, kc)};
}

template <class T>
void Panels<T>::Block(const PanelOperands<T>& operands, const Part& part, const Part& next, T* panels, int64_t batch,
                      Memory& memory) const {
  const T *shared = panels + batch * SharedAt(chunk_, 0), *shared_seeds = SharedSeeds(panels, batch, 0);
  const int64_t nr = micro_.nr, group = micro_.group;
  const int64_t own_first = shares_a_ ? part.n0 : part.m0, own_count = shares_a_ ? part.cols : part.rows;
  const Cut own(own_count, own_width_, even_rows_);
  const int64_t theirs = CeilDiv(shares_a_ ? part.rows : part.cols, shared_width_);  // panels
  const StoreTarget c = operands.Target(part.product, part.m0, part.rows, memory.target);
  for (int64_t k0 = 0; k0 < p_.k; k0 += kb_) {
    const int64_t kc = std::min(kb_, p_.k - k0);
    const int64_t held = micro_.step > 1 ? kc : held_units_ * group;
    for (int64_t p = 0; p < kc; p += held) {
      const int64_t some = std::min(held, kc - p), units = micro_.Units(some);
      const PiecesAhead<T> ahead = NextBlock(operands, part, next, k0, memory.next);
      // Panels that are packed while they are multiplied, or were while the block before was.
      const int64_t later = packing_ || (packs_ahead_ && memory.packed) ? own_count / own_width_ : 0;
      if (packs_own() && later < own.count)
        Pack(operands, !shares_a_, part.product, own_first + later * own_width_,
             Cut(own_count - later * own_width_, own_width_, even_rows_), k0 + p, some, memory.own,
             [&](int64_t v, int64_t panel) { return OwnAt(later * own_width_ + v, later + panel, units); });
      const bool packs = packing_ && later > 0 && !memory.packed;
      if (packs)
        Tiles(operands, part, c, {k0, p / group, units, false, 0, 1, true}, shared, nullptr, nullptr, memory, {});
      for (int64_t panel = 0; panel < own.count && finds_zeros_; ++panel)
        memory.notes[panel] = {
            ExtentOfPanel(memory.own + OwnAt(own.First(panel), panel, units), units, shares_a_ ? nr : own.Size(panel))};
      const T* seeds = shares_a_ ? memory.seeds : shared_seeds + k0 / kb_ * RoundUp(chunk_, nr);
      if (p_.bias != 0 && shares_a_) Seed(units, memory.own, OwnAt(nr, 1, units), part.cols, memory.seeds);
      PanelNote* const notes = packs_shared() ? SharedNotes(panels, batch, k0) : memory.row_notes;
      const bool own_zeros = finds_zeros_ && AnyShort({memory.notes, static_cast<size_t>(own.count)}, units);
      if (finds_zeros_ && in_place_) NoteRows(operands, part, (k0 + p) / group, units, own_zeros, notes);
      const bool zeros =
          own_zeros || (finds_zeros_ && AnyShort({notes, static_cast<size_t>(theirs)}, micro_.Units(kc)));
      if (packs_ahead_) {
        memory.packed = Squares(operands, part, c, k0, units, shared, memory);
        if (memory.packed) std::swap(memory.own, memory.next);
        continue;
      }
      if (micro_.step > 1)
        Squares(operands, part, c, k0, units, shared, memory);
      else
        Tiles(operands, part, c, {k0, p / group, units, zeros, packs, CeilDiv(part.rows, micro_.mr)}, shared, notes,
              seeds, memory, ahead);
      memory.packed = ahead.to != nullptr;
      if (memory.packed) std::swap(memory.own, memory.next);
    }
  }
}

// What rows of A that all tasks read where they lie begin and end with; and whether they are finite, if that is asked.
template <class T>
void Panels<T>::NoteRows(const PanelOperands<T>& operands, const Part& part, int64_t unit, int64_t units, bool asked,
                         PanelNote* notes) const {
  const auto [rows, stride] = operands.RowsOfA(part.product);
  const Cut down(part.rows, micro_.mr, even_rows_);
  for (int64_t panel = 0; panel < down.count; ++panel) {
    const T* lines[kMostRows];
    bool finite = asked;
    for (int64_t r = 0; r < down.Size(panel); ++r) {
      lines[r] = rows + (part.m0 + down.First(panel) + r) * stride + unit;
      finite = finite && (!micro_.all_finite || micro_.all_finite(units, lines[r]));
    }
    notes[panel] = {ExtentOfRows(lines, down.Size(panel), units), finite ? Finite::kYes : Finite::kNo};
  }
}

// What the task packs of its own for the next block along k, or the next task for its first one, where vectors lie
// along k: of each one it is a few lines, which no processor sees coming.
template <class T>
MemoryRows Panels<T>::OwnAhead(const PanelOperands<T>& operands, const Part& part, int64_t k0) const {
  if (!fetches_own_) return {};
  const bool along = k0 + kb_ < p_.k;
  int64_t first = shares_a_ ? part.n0 : part.m0, count = shares_a_ ? part.cols : part.rows;
  if (!along) first += count, count = std::min(per_task_, own_ - first);
  if (count <= 0) return {};
  k0 = along ? k0 + kb_ : 0;
  return operands.Memory(!shares_a_, part.product, first, count, k0, std::min(kb_, p_.k - k0));
}

// Whole own panels of the next block along k, which is one of whole steps.
template <class T>
PackAhead Panels<T>::PackedAhead(const PanelOperands<T>& operands, const Part& part, int64_t k0,
                                 const float** first_rows, const Memory& memory) const {
  PackAhead packs;
  if constexpr (std::is_same_v<T, float>) {
    const int64_t next = k0 + kb_, kc = std::min(kb_, p_.k - next), quantum = micro_.Quantum();
    if (!packs_ahead_ || kc <= 0 || kc % quantum != 0 || kc / quantum > kMostSteps) return packs;
    packs.num_steps = kc / quantum;
    packs.to = memory.next, packs.distance = OwnAt(own_width_, 1, micro_.Units(kc));
    if (!shares_a_) {
      const auto [rows, stride] = operands.RowsOfA(part.product);
      packs.rows = rows + part.m0 * stride + next, packs.row_stride = stride;
      packs.count = part.rows / own_width_ * own_width_ * packs.num_steps;
      return packs;
    }
    const auto [rows, stride] = operands.RowsOfB(part.product);
    packs.steps = first_rows, packs.row_stride = stride;
    for (int64_t s = 0; s < packs.num_steps; ++s) first_rows[s] = rows + (next + s * quantum) * stride + part.n0;
    packs.count = part.cols / own_width_ * kc / 2;
  }
  return packs;
}

// Of whole squares, which are multiplied sooner than anything comes from afar that was not asked for: each tile asks
// for its share of the next shared panel and, before the sums are there, for the rows of C that it writes. True: the
// own panels of the next block along k, those that are whole, are packed meanwhile.
template <class T>
bool Panels<T>::Squares(const PanelOperands<T>& operands, const Part& part, const StoreTarget& c, int64_t k0,
                        int64_t units, const T* shared, const Memory& memory) const {
  const int64_t nr = micro_.nr, mr = micro_.mr;
  const Cut down(part.rows, mr, false), across(part.cols, nr, false);
  const Cut &theirs = shares_a_ ? down : across, &own = shares_a_ ? across : down;
  const bool last = k0 + kb_ >= p_.k, thirds = micro_.quantum > 0;
  const auto [a_rows, a_stride] = in_place_ ? operands.RowsOfA(part.product) : std::pair<const T*, int64_t>();
  const MemoryRows ahead = OwnAhead(operands, part, k0);
  const float* first_rows[kMostSteps];
  PackAhead packs = PackedAhead(operands, part, k0, first_rows, memory);
  const int64_t tiles = theirs.count * own.count, packed = packs.count;
  const auto panel_units = [&](bool columns, int64_t vectors) { return (columns ? nr : vectors) * units; };
  // Numbers in parts are looked at for panels of zeros, which add nothing to what they meet if that is finite.
  const auto note_of = [](const T* x, int64_t n) { return PanelNote{{0, ZerosFrom(x, n) < n ? 1 : 0}}; };
  const auto meets_numbers = [&](const PanelNote& zeros, const T* x, int64_t n, PanelNote& note) {
    if (zeros.extent.size() > 0) return false;
    if (note.finite == Finite::kUnknown) note.finite = micro_.all_finite(n, x) ? Finite::kYes : Finite::kNo;
    return note.finite == Finite::kYes;
  };
  for (int64_t o = 0; o < own.count && thirds; ++o)
    memory.notes[o] = note_of(memory.own + OwnAt(own.First(o), o, units), panel_units(shares_a_, own.Size(o)));
  for (int64_t s = 0; s < theirs.count; ++s) {
    const T* const panel = shared + SharedAt(theirs.First(s), k0);
    const int64_t their_units = panel_units(!shares_a_, theirs.Size(s));
    PanelNote note = thirds ? note_of(panel, their_units) : PanelNote();
    const char* const next = reinterpret_cast<const char*>(panel + SharedAt(shared_width_, 0));
    const int64_t lines = packs_shared() && s + 1 < theirs.count
                              ? shared_width_ * units * static_cast<int64_t>(sizeof(T)) / kLineBytes
                              : 0;
    for (int64_t o = 0; o < own.count; ++o) {
      const int64_t row = shares_a_ ? s : o, column = shares_a_ ? o : s;
      const int64_t i = down.First(row), height = down.Size(row), j = across.First(column), width = across.Size(column);
      const T* const mine = memory.own + OwnAt(own.First(o), o, units);
      const bool whole = width > nr / 2, halves = c.type == ElementType::BF16 && std::is_same_v<T, float> && !thirds;
      T* const sums = keeps_sums_ ? memory.sums + (s * own.count + o) * mr * nr : memory.tile;
      StepTile<T> tile;
      tile.rows = height, tile.units = units;
      tile.a = shares_a_ ? panel : mine, tile.b = shares_a_ ? mine : panel, tile.b_stride = nr;
      if (in_place_) {
        tile.a = a_rows + (part.m0 + i) * a_stride + micro_.UnitAt(k0);
        tile.a_stride = a_stride, tile.a_step = micro_.step;
      }
      if (k0 > 0) tile.before = sums, tile.before_stride = whole ? nr : nr / 2;
      tile.to = sums, tile.stride = whole ? nr : nr / 2;
      tile.next = next + lines * o / own.count * kLineBytes;
      tile.next_lines = lines * (o + 1) / own.count - lines * o / own.count;
      if (last && width == tile.stride && c.col_stride == 1 && !c.rows && (halves || HoldsSums<T>(c.type))) {
        tile.to = c.data + ((part.m0 + i) * c.row_stride + part.n0 + j) * Bytes(c.type);
        tile.stride = c.row_stride;
        tile.halves = halves;
        tile.asks_for_rows = true;
      }
      tile.ends = last;
      const int64_t n = s * own.count + o;
      if (thirds && (meets_numbers(note, mine, panel_units(shares_a_, own.Size(o)), memory.notes[o]) ||
                     meets_numbers(memory.notes[o], panel, their_units, note))) {
        if (k0 > 0 && !last && packed == 0) continue;
        tile.units = 0;
      }
      if (packed > 0) {
        tile.packs = packs;
        tile.packs.first = packed * n / tiles, tile.packs.count = packed * (n + 1) / tiles - tile.packs.first;
      }
      if (ahead.rows > 0) {
        const int64_t first = ahead.rows * n / tiles, end = ahead.rows * (n + 1) / tiles;
        FetchRows<false>(ahead.from + first * ahead.stride, ahead.stride, end - first, ahead.row_bytes);
      }
      if (!micro_.steps[whole](tile))
        operands.Repair({part.product, part.m0 + i, height, part.n0 + j, width}, static_cast<T*>(tile.to), tile.stride,
                        memory.repair);
      if (last && tile.to == sums) StoreTile<T>(c, part.m0 + i, part.n0 + j, height, width, sums, tile.stride, false);
    }
  }
  return packed > 0;
}

template <class T>
void Panels<T>::Tiles(const PanelOperands<T>& operands, const Part& part, const StoreTarget& c, const Steps& steps,
                      const T* shared, PanelNote* notes, const T* seeds, const Memory& memory,
                      const PiecesAhead<T>& block_ahead) const {
  const int64_t nr = micro_.nr, group = micro_.group;
  const auto [product, m0, rows, n0, cols] = part;
  const Cut down(rows, micro_.mr, even_rows_), across(cols, nr, false);
  const bool biased = p_.bias != 0, adds = steps.k0 + steps.from > 0;
  const auto [a_rows, a_stride] = in_place_ ? operands.RowsOfA(product) : std::pair<const T*, int64_t>();
  const auto [b_rows, b_stride] = steps.packs ? operands.RowsOfB(product) : std::pair<const T*, int64_t>();
  int64_t tiles = 0;
  const int64_t all_tiles = (steps.end_row - steps.first_row) * across.count;
  if (all_tiles <= 0 && block_ahead.to) block_ahead.Finish(nr);  // the only panel of rows has packed its columns
  // Are there tiles enough to take a piece seldom?
  const bool seldom =
      block_ahead.count > 0 && block_ahead.count * fetching_.units_a_piece[1] <= all_tiles * steps.units;
  const auto needed = [&](int64_t row, int64_t column, const T* a, const T* b) {
    const int64_t height = down.Size(row), block = micro_.Units(std::min(kb_, p_.k - steps.k0));
    const int64_t panel = shares_a_ ? row : column;  // of the shared ones, which begin before `steps` do
    const T* const begin = shared + SharedAt(panel * shared_width_, steps.k0);
    if (shares_a_)
      return NeededOf<T>(micro_, {b, steps.units, nr, memory.notes + column}, {begin, block, height, notes + panel},
                         steps.from);
    return NeededOf<T>(micro_, {a, steps.units, height, memory.notes + row}, {begin, block, nr, notes + panel},
                       steps.from);
  };
  const auto tile = [&](int64_t row, int64_t column) {
    const int64_t i = down.First(row), height = down.Size(row), j = across.First(column), width = across.Size(column);
    const T* a =
        shares_a_ ? shared + SharedAt(i, steps.k0) + steps.from * height : memory.own + OwnAt(i, row, steps.units);
    const T* b =
        shares_a_ ? memory.own + OwnAt(j, column, steps.units) : shared + SharedAt(j, steps.k0) + steps.from * nr;
    const auto [kernel, indirect, tile_width] = TileKernelsOf<T>(micro_, height, width);
    // A narrow tile begins at seeds of the full width.
    const bool fits = width == tile_width && (width == nr || !biased);
    const int64_t direct = fits ? DirectStride<T>(c, m0 + i, height) : -1;
    T* to = memory.tile;
    int64_t stride = nr, done = 0;
    if (keeps_sums_) {
      to = memory.sums + (row * across.count + column) * micro_.mr * nr;
    } else if (direct >= 0) {
      to = AddressIn<T>(c, m0 + i, n0 + j), stride = direct;
      if (fetches_c_) FetchRows<true>(to, stride, height, width);
    } else if (c.col_stride == 1 && !c.rows) {
      const int64_t bytes = Bytes(c.type);
      FetchRows<true>(c.data + ((m0 + i) * c.row_stride + n0 + j) * bytes, c.row_stride * bytes, height, width * bytes);
    }
    bool accumulate = adds && to != memory.tile;
    if (biased && accumulate) {
      for (int64_t r = 0; r < height; ++r) AddTerms(to + r * stride, seeds + j, width);
    } else if (biased) {
      micro_.seeded[height - 1](std::min(kSumUnits, steps.units), a, b, nr, seeds + j, to, stride);
      done = kSumUnits, accumulate = true;
    }
    const auto multiply = [&, indirect = indirect, kernel = kernel](int64_t from, int64_t units) {
      if (!in_place_) return kernel(units, a + from * height, b + from * nr, nr, to, stride, accumulate);
      const T* lines[kMostRows];
      for (int64_t r = 0; r < height; ++r)
        lines[r] = a_rows + (m0 + i + r) * a_stride + steps.k0 / group + steps.from + from;
      indirect(1, units, lines, b + from * nr, nr, to, stride, accumulate);
    };
    if (steps.zeros) {
      const Extent some = needed(row, column, a, b);
      for (; done < steps.units; done += kSumUnits, accumulate = true) {
        int64_t from = std::max<int64_t>(done, some.first);
        int64_t units = std::min<int64_t>({done + kSumUnits, steps.units, some.end}) - from;
        if (units <= 0 && accumulate) continue;
        if (units <= 0) from = done, units = 1;  // zeros, which have to be written
        multiply(from, units);
      }
    }
    // Each tile takes its share of what the next block reads; or the first ones ask for what the next column's will.
    PiecesAhead<T> ahead;
    if (block_ahead.count > 0) {
      ahead = block_ahead.Part(tiles, all_tiles, nr);
    } else if (fetching_ && !shares_a_ && column + 1 < across.count) {
      const int64_t some = steps.units / fetching_.units_a_piece[0], first = row * some;
      ahead = {b + SharedAt(nr, 0) + first * nr, 0, steps.units, std::min(some, steps.units - first)};
    }
    for (; done < steps.units; done += kSumUnits, accumulate = true) {
      const int64_t units = std::min(kSumUnits, steps.units - done);
      const T *a_at = a + done * height, *b_at = b + done * nr;
      if (steps.packs && width == nr)
        packing_[height - 1](units, a_at, b_rows + (steps.k0 + steps.from + done) * b_stride + n0 + j, b_stride,
                             const_cast<T*>(b_at), to, stride, accumulate);
      else if (fetching_ && ahead.count > 0 && width == nr)
        fetching_.ahead[ahead.to != nullptr][seldom][height - 1](units, a_at, b_at, nr, to, stride, accumulate, ahead);
      else
        multiply(done, units);
    }
    if (to == memory.tile)
      StoreTile<T>(c, m0 + i, n0 + j, height, width, to, nr, adds);
    else if (keeps_sums_ && steps.k0 + steps.from * group + steps.units * group >= p_.k)
      StoreTile<T>(c, m0 + i, n0 + j, height, width, to, nr, false);
    if (ahead.to || !fetching_) ahead.Finish(nr);
    ++tiles;
  };
  if (rows_first_) {
    for (int64_t row = steps.first_row; row < steps.end_row; ++row)
      for (int64_t column = 0; column < across.count; ++column) tile(row, column);
  } else {
    for (int64_t first = steps.first_row; first < steps.end_row; first += held_rows_)
      for (int64_t column = 0; column < across.count; ++column)
        for (int64_t row = first; row < std::min(first + held_rows_, steps.end_row); ++row) tile(row, column);
  }
}

template class Panels<float>;
template class Panels<double>;
template class Panels<int32_t>;
template class Panels<int64_t>;

}  // namespace strop::cpu
