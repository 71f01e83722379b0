// Products whose operands are packed once each, by all threads together.
//
// One operand, the shared one, is packed into panels as a whole before anything is multiplied. The vectors of the other
// one are dealt out: a task packs its own and multiplies them with every shared panel. So no element is packed twice,
// however fine the tasks, and packing stays a few per cent of the work (in gemm.cc's blocks it is about a sixth). What
// does not fit into kSharedBytes goes in rounds: parts of the shared operand, or of the batch. Where A is read as it
// lies and stays in the cache, it is the shared operand, and nothing is packed for all.
//
// The sum over k runs in the same order whatever the rounds and tasks: blocks of k depend on k alone. Zeros that
// panels begin or end with are left out (gemm_zeros.h).
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/gemm_fetching.h"
#include "strop/cpu/kernels/gemm_zeros.h"
#include "strop/cpu/kernels/memory_rows.h"

namespace strop::cpu {

// A part of the C of a product.
struct StorePart {
  int64_t product, row, rows, col, cols;
};

// What is multiplied. Products are numbered; `outer` consecutive ones share one operand, that of a batch.
template <class T>
class PanelOperands {
 public:
  virtual ~PanelOperands() = default;
  // As PackFn: rows of A, columns of B. The shared operand is asked for by the first product of its batch.
  virtual void PackA(int64_t product, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width,
                     T* dst) const = 0;
  virtual void PackB(int64_t product, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width,
                     T* dst) const = 0;
  // What PackA or PackB of the same vectors and elements reads, if that is rows of memory.
  virtual MemoryRows Memory(bool /*a*/, int64_t /*product*/, int64_t /*first*/, int64_t /*count*/, int64_t /*k0*/,
                            int64_t /*kc*/) const {
    return {};
  }
  // Of A, if PanelProblem::a_in_place or a_in_rows: element 0 of row 0, and the distance of rows in units.
  virtual std::pair<const T*, int64_t> RowsOfA(int64_t /*product*/) const { return {nullptr, 0}; }
  // Of B, if PanelProblem::b_in_rows: element 0 of row 0, and the distance of rows.
  virtual std::pair<const T*, int64_t> RowsOfB(int64_t /*product*/) const { return {nullptr, 0}; }
  // Sums of rows and columns of C that came out as no numbers where they were scaled (GemmIsa::thirds): each of them as
  // f32 has it. `memory` is what PanelProblem::repair_bytes asked for.
  virtual void Repair(const StorePart& /*part*/, T* /*sums*/, int64_t /*stride*/, void* /*memory*/) const {}
  // Where C is; `memory` is what PanelProblem::target_bytes asked for, for the offsets of rows [first, first + count).
  virtual StoreTarget Target(int64_t product, int64_t first_row, int64_t rows, void* memory) const = 0;
};

enum class SharedOperand : uint8_t { Either, A, B };

struct PanelProblem {
  int64_t batch = 1, outer = 1, m = 0, n = 0, k = 0;  // all of them positive
  ElementType c = ElementType::F32;
  bool a_across = false, b_across = false;  // neighbouring vectors, not neighbours along k, lie side by side in memory
  bool a_typed = false;                     // A needs no conversion: it is packed as fast as B
  SharedOperand shared = SharedOperand::Either;
  int64_t target_bytes_per_row = 0;
  int bias = 0;     // that A is packed with (MicroTable::bias)
  int64_t row = 1;  // tasks should not cut such runs of rows of A, which are a multiple of it
  // Rows of A lie as panels of one row would, and may be read where they lie.
  bool a_in_place = false;
  bool a_in_rows = false;  // A is in numbers that are taken apart, and elements along k are neighbours
  bool b_in_rows = false;  // B needs no conversion, and its rows are contiguous
  bool whole_k = false;    // the shared operand is packed in one block along k
  bool fetches = false;    // the operands tell their memory
  int64_t repair_bytes = 0;
};

template <class T>
class Panels {
 public:
  static constexpr int64_t kSharedBytes = int64_t{1} << 24;
  // Is packing once worth a wait of all threads for each other?
  static bool Suits(const PanelProblem& problem);

  Panels(const PanelProblem& problem, const MicroTable<T>& micro);
  int64_t rounds() const { return batch_rounds_ * chunks_; }
  int64_t prepare_tasks() const { return packs_shared() ? batches_ * pieces_ * k_blocks_ : 0; }
  int64_t num_tasks() const { return batches_ * p_.outer * blocks_; }
  int64_t shared_bytes() const;
  int64_t scratch_bytes() const;  // per thread, 64-byte aligned
  bool packs_shared() const { return !(in_place_ && shares_a_); }
  // How it is cut, for reports.
  std::string ToString() const;

  // `shared` and `scratch` are 64-byte aligned. All Prepare tasks of a round have to end before its Run tasks begin.
  void Prepare(const PanelOperands<T>& operands, int64_t round, int64_t begin, int64_t end, void* shared) const;
  void Run(const PanelOperands<T>& operands, int64_t round, int64_t begin, int64_t end, const void* shared,
           void* scratch) const;

  int64_t per_task() const { return per_task_; }  // rows or columns
  bool shares_a() const { return shares_a_; }     // and tasks own columns
  // The block of C that a task makes in a round; none of them if `rows` or `cols` is zero.
  struct Part {
    int64_t product, m0, rows, n0, cols;
  };
  Part PartOf(int64_t round, int64_t task) const;
  // For callers that multiply by themselves, with whole_k: the shared panel of `vector`, counted from the part's first.
  const T* SharedPanel(const void* shared, int64_t task, int64_t vector) const;
  // Summed in registers before they are added to what was before: the order in which XLA:CPU sums up to here, too.
  static constexpr int64_t kSumUnits = 512;  // whole steps

 private:
  // Vectors [begin, end) of the shared operand, in the batches from `batch` on.
  struct Round {
    int64_t batch, batches, begin, end;
  };
  Round RoundOf(int64_t round) const;
  void DealOut(int64_t panels_a_task);
  bool HasNext() const { return copies_ || packs_ahead_; }
  bool packs_own() const { return !in_place_ || shares_a_; }
  struct Memory {
    T* next;               // where the next block's own panels are made
    bool packed = false;   // are the own panels there, but for one that is narrower than a tile?
    PanelNote* notes;      // of the own panels
    PanelNote* row_notes;  // of rows of A that all tasks read where they lie
    T* own;
    T* tile;
    T* sums;
    T* seeds;
    uint8_t* repair;
    void* target;
  };
  Memory Carve(void* scratch) const;
  // Where the own panel of that number, whose first vector is `vector`, begins, in units; where that of the shared
  // operand does at k0.
  int64_t OwnAt(int64_t vector, int64_t panel, int64_t units) const { return vector * units + panel * micro_.lanes; }
  int64_t SharedAt(int64_t vector, int64_t k0) const;
  int64_t OwnUnits() const;     // of a task's panels
  int64_t KeptSums() const;     // of a task, tile by tile, while C does not hold them
  int64_t SharedUnits() const;  // of panels for all, and of their seeds
  // Bytes behind panels of A that kernels may read.
  int64_t ReadBeyond() const { return micro_.step * micro_.step * static_cast<int64_t>(sizeof(T)); }
  // Vectors in panels of up to `most`: as even as they can be, or full ones and a last one.
  struct Cut {
    Cut(int64_t vectors, int64_t most, bool even);
    int64_t First(int64_t panel) const { return even ? vectors * panel / count : panel * most; }
    int64_t Size(int64_t panel) const {
      return panel + 1 < count ? First(panel + 1) - First(panel) : vectors - First(panel);
    }
    int64_t vectors, most, count;
    bool even;
  };
  template <class At>
  void Pack(const PanelOperands<T>& operands, bool a, int64_t product, int64_t first, const Cut& cut, int64_t k0,
            int64_t kc, T* dst, const At& at) const;
  // `next` is the part that this thread computes after it, of the same rows; none if that has no columns.
  void Block(const PanelOperands<T>& operands, const Part& part, const Part& next, T* panels, int64_t batch,
             Memory& memory) const;
  // Of the block along k from k0 on, `units` from the unit `from` on: what the own panels hold. `zeros`: there are
  // panels of which few are needed.
  struct Steps {
    int64_t k0, from, units;
    bool zeros;
    int64_t first_row = 0, end_row = 0;  // panels of rows
    bool packs = false;                  // panels of columns, those that are as wide as tiles
  };
  void Tiles(const PanelOperands<T>& operands, const Part& part, const StoreTarget& c, const Steps& steps,
             const T* shared, PanelNote* notes, const T* seeds, const Memory& memory,
             const PiecesAhead<T>& block_ahead) const;
  // The same of the whole block from k0 on, where kernels take steps.
  bool Squares(const PanelOperands<T>& operands, const Part& part, const StoreTarget& c, int64_t k0, int64_t units,
               const T* shared, const Memory& memory) const;
  PackAhead PackedAhead(const PanelOperands<T>& operands, const Part& part, int64_t k0, const float** first_rows,
                        const Memory& memory) const;
  MemoryRows OwnAhead(const PanelOperands<T>& operands, const Part& part, int64_t k0) const;
  void NoteRows(const PanelOperands<T>& operands, const Part& part, int64_t unit, int64_t units, bool asked,
                PanelNote* notes) const;
  PanelNote* SharedNotes(T* panels, int64_t batch, int64_t k0) const;
  PiecesAhead<T> NextBlock(const PanelOperands<T>& operands, const Part& part, const Part& next, int64_t k0,
                           T* to) const;
  // What the bias of A makes of `count` columns of B, packed from `panel` on, with a minus: where their sums begin.
  void Seed(int64_t units, const T* panel, int64_t panel_distance, int64_t count, T* seeds) const;
  T* SharedSeeds(T* panels, int64_t batch, int64_t k0) const;

  PanelProblem p_;
  const MicroTable<T>& micro_;
  bool shares_a_ = false, in_place_ = false, keeps_sums_ = false, fetches_ = false, fetches_c_ = false;
  bool fetches_own_ = false, packs_ahead_ = false;
  bool finds_zeros_ = false;
  int64_t kb_ = 0, k_blocks_ = 0, k_units_ = 0;
  // They ask for the shared panel of the next column while those of this one are multiplied; null: that is near.
  FetchingKernels<T> fetching_;
  // With them the first panel of rows goes through columns that are packed meanwhile.
  const PackingKernel<T>* packing_ = nullptr;
  // The later blocks of a task's columns are packed while the ones before are multiplied.
  bool copies_ = false;
  int64_t block_columns_ = 0;  // of a task, multiplied together, if they are copied
  bool rows_first_ = false;    // a panel of rows goes through all columns before the next one does
  bool even_rows_ = false;     // panels of a task's rows are as high as each other; otherwise the last one is shorter
  int64_t held_rows_ = 0;   // panels of rows that go through all columns before the next ones do, unless rows are first
  int64_t held_units_ = 0;  // along k, of a block, that all tiles of a task go through before the next ones
  int64_t own_width_ = 0, shared_width_ = 0;  // of panels
  int64_t own_ = 0, per_task_ = 0, blocks_ = 0;
  int64_t unit_ = 1;                                         // of own vectors, that tasks do not cut
  int64_t chunk_ = 0, chunks_ = 1, piece_ = 0, pieces_ = 0;  // of shared vectors
  int64_t batches_ = 1, batch_rounds_ = 1;                   // of a round
  std::vector<T> ones_;                                      // a row of A, if there is a bias
};

}  // namespace strop::cpu
