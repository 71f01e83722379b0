#include "strop/cpu/kernels/sort.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "strop/cpu/kernels/parallel.h"
#include "strop/cpu/kernels/partition_sort.h"
#include "strop/cpu/kernels/scratch.h"
#include "strop/cpu/kernels/short_sort.h"
#include "strop/cpu/kernels/sort_items.h"
#include "strop/cpu/kernels/sort_key.h"
#include "strop/cpu/kernels/tied_elements.h"

namespace strop::cpu {
namespace {

constexpr int64_t kPiece = 1 << 14;         // of these, that a task makes keys of, or moves
constexpr int64_t kTaskElements = 1 << 14;  // short lines are grouped to about this many elements a task
constexpr int64_t kMaxBlock = 16;           // neighbouring lines handled together when the stride is not one

Status OutOfMemory(int64_t n) { return ResourceExhausted("sort: no memory to sort lines of ", n, " elements"); }

Status Check(const SortShape& shape, std::span<const SortOperand> operands) {
  if (shape.outer < 0 || shape.n < 0 || shape.inner < 0) return InvalidArgument("sort: negative sizes");
  for (const SortOperand& operand : operands) {
    int64_t b = operand.element_bytes;
    if (b != 1 && b != 2 && b != 4 && b != 8 && b != 16) return InvalidArgument("sort: elements of ", b, " bytes");
  }
  return OkStatus();
}

// ---- blocks of lines ------------------------------------------------------------------------------------------------

// Lines [first, first + count) of one outer index: element r of line b is at base + (r * inner + b) * bytes.
struct Block {
  int64_t outer_index, first, count;
};

struct LineBlocks {
  LineBlocks(const SortShape& shape, int64_t max_block) : shape(shape) {
    width = std::max<int64_t>(1, std::min({shape.inner, kMaxBlock, max_block}));
    per_outer = (shape.inner + width - 1) / width;
    count = shape.outer * per_outer;
  }
  Block at(int64_t i) const {
    int64_t first = i % per_outer * width;
    return {i / per_outer, first, std::min(width, shape.inner - first)};
  }
  SortShape shape;
  int64_t width, per_outer, count;
};

char* BlockBase(const SortShape& shape, const SortOperand& operand, const Block& block) {
  return static_cast<char*>(operand.data) +
         (block.outer_index * shape.n * shape.inner + block.first) * operand.element_bytes;
}

// Calls fn(block) for all blocks, short ones grouped into tasks.
template <class Fn>
void ForEachBlock(ThreadPool* pool, const LineBlocks& blocks, Fn fn) {
  int64_t grain = std::max<int64_t>(1, kTaskElements / std::max<int64_t>(1, blocks.shape.n * blocks.width));
  ForEachPiece(pool, blocks.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fn(blocks.at(i));
  });
}

// Element r of line b of the block becomes the old element order(b, r). `spare` holds n elements of 16 bytes.
template <class Order>
void Permute(const SortShape& shape, const SortOperand& operand, const Block& block, char* spare, ThreadPool* pool,
             Order order) {
  char* base = BlockBase(shape, operand, block);
  auto move = [&](auto element) {
    using T = decltype(element);
    T *data = reinterpret_cast<T*>(base), *line = reinterpret_cast<T*>(spare);
    for (int64_t b = 0; b < block.count; ++b) {
      ForEachPiece(pool, shape.n, kPiece, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) line[r] = data[r * shape.inner + b];
      });
      ForEachPiece(pool, shape.n, kPiece, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) data[r * shape.inner + b] = line[order(b, r)];
      });
    }
  };
  if (operand.element_bytes == 16)
    move(WideItem{});
  else
    WithKeyType(static_cast<int>(operand.element_bytes), move);
}

// ---- by key ---------------------------------------------------------------------------------------------------------

template <class K, class Maker>
class KeySorter {
 public:
  using Traits = ItemTraits<K>;
  using Positioned = typename Traits::Positioned;

  KeySorter(const SortShape& shape, std::span<const SortOperand> operands, const SortKey& key, ThreadPool* pool)
      : shape_(shape),
        operands_(operands),
        key_(operands[key.operand]),
        other_(operands[key.operand == 0 ? operands.size() - 1 : 0]),
        make_key_(key),
        pool_(pool) {}

  Status Run() {
    int64_t n = shape_.n;
    // With few lines, threads share a line; otherwise each takes lines of its own.
    bool long_lines =
        pool_ && pool_->num_threads() > 1 && n >= kLongLine && shape_.outer * shape_.inner < 2 * pool_->num_threads();
    LineBlocks blocks(shape_, long_lines ? 1 : std::max<int64_t>(1, (int64_t{4} << 20) / std::max<int64_t>(n, 1)));
    within_ = long_lines ? pool_ : nullptr;
    ForEachBlock(long_lines ? nullptr : pool_, blocks, [&](const Block& block) {
      if (!SortBlock(block)) out_of_memory_.store(true, std::memory_order_relaxed);
    });
    return out_of_memory_.load() ? OutOfMemory(n) : OkStatus();
  }

 private:
  static constexpr int kPacked = sizeof(K) <= 4 ? 32 : 0;  // where the key begins in a Positioned
  static constexpr int kKeyBytes = static_cast<int>(sizeof(K));

  // Each line of the block: of the items get(make_key, i, r), made of element r of a line, which is at i of the
  // operands, the k-th of all lines, in order, is put(i, k, item). `items` is memory for one line more than the block
  // has.
  template <int kShift, class Item, class Get, class Put>
  void SortLines(const Block& block, Item* items, const Get& get, const Put& put) {
    const int64_t n = shape_.n;
    const auto make_item = [get, make_key = make_key_, inner = shape_.inner](int64_t r) -> Item {
      return get(make_key, r * inner, r);
    };
    if (block.count == 1 && (within_ || IsForPartition<Item>(n, kShift, kKeyBytes, make_item))) {
      const KeysSeen seen = LookAtKeys<K>(n, within_, MakeItem<kShift, Item, decltype(make_item)>{items, make_item});
      PartitionSort<Item, kShift>(8 * kKeyBytes, within_)
          .Sort(items, items + n, n, seen,
                [put, inner = shape_.inner](int64_t r, const Item& item) { put(r * inner, r, item); });
      return;
    }
    ForEach(block,
            [get, make_key = make_key_, items](int64_t i, int64_t k, int64_t r) { items[k] = get(make_key, i, r); });
    for (int64_t b = 0; b < block.count; ++b) SortItems<kShift>(items + b * n, items + n * block.count, n, kKeyBytes);
    ForEach(block, [put, items](int64_t i, int64_t k, int64_t) { put(i, k, items[k]); });
  }

  // Makes the items of a line, and tells their keys.
  template <int kShift, class Item, class Make>
  struct MakeItem {
    K operator()(int64_t r) const { return static_cast<K>(KeyOf(items[r] = make(r), kShift)); }
    K Peek(int64_t r) const { return static_cast<K>(KeyOf(make(r), kShift)); }
    Item* items;
    Make make;
  };

  // fn(i, k, r) for all elements of the block: where the operands hold them, where the keys do, line by line, and where
  // in their line they are. Was any of the results true? (Each task has a copy of fn: what it holds is known not to
  // change as elements are written.)
  template <class Fn>
  bool AnyOf(const Block& block, const Fn& fn) {
    std::atomic<bool> any{false};
    const int64_t n = shape_.n, inner = shape_.inner, count = block.count;
    ForEachPiece(within_, n, within_ ? kPiece : n, [&any, &fn, n, inner, count](int64_t begin, int64_t end) {
      const Fn own = fn;
      bool found = false;
      if (inner == 1)
        WithVectors([own, begin, end, &found] {
          K all = 0;  // as wide as what is looked at
          for (int64_t r = begin; r < end; ++r) all |= static_cast<K>(own(r, r, r));
          found = all != 0;
        });
      else
        for (int64_t r = begin; r < end; ++r)
          for (int64_t b = 0; b < count; ++b) found |= own(r * inner + b, b * n + r, r);
      if (found) any.store(true, std::memory_order_relaxed);
    });
    return any.load(std::memory_order_relaxed);
  }
  template <class Fn>
  void ForEach(const Block& block, const Fn& fn) {
    AnyOf(block, [fn](int64_t i, int64_t k, int64_t r) {
      fn(i, k, r);
      return false;
    });
  }

  bool AnyShared(const Block& block) {
    if (!make_key_.SharesAny()) return false;
    const K* data = reinterpret_cast<const K*>(BlockBase(shape_, key_, block));
    return AnyOf(block,
                 [make_key = make_key_, data](int64_t i, int64_t, int64_t) { return make_key.IsShared(data[i]); });
  }

  // Calls sort() for keys that become elements again, with what shares its key with others set aside meanwhile.
  template <class Sort>
  bool SortTied(const Block& block, const Sort& sort) {
    if constexpr (!std::is_same_v<Maker, KeyMaker<K>>) {
      return SortWithPositions(block);
    } else {
      const int64_t n = shape_.n;
      K* const data = reinterpret_cast<K*>(BlockBase(shape_, key_, block));
      Scratch<K> memory(n * block.count);
      if (!memory.get()) return false;
      std::vector<TiedElements<K, Maker>> tied(block.count, TiedElements<K, Maker>(make_key_));
      for (int64_t b = 0; b < block.count; ++b)
        tied[b].SetAside(data + b, n, shape_.inner, memory.get() + b * n, within_);
      sort();
      for (int64_t b = 0; b < block.count; ++b) tied[b].PutBack(data + b, n, shape_.inner);
      return true;
    }
  }

  // A lone operand, whose keys become elements again, needs no positions.
  bool SortKeysAlone(const Block& block) {
    int64_t n = shape_.n;
    K* data = reinterpret_cast<K*>(BlockBase(shape_, key_, block));
    Scratch<K> memory(n * (block.count + 1));
    K* keys = memory.get();
    if (!keys) return false;
    const auto sort = [&] {
      SortLines<0>(
          block, keys, [data](const auto& make_key, int64_t i, int64_t) { return make_key(data[i]); },
          [make_key = make_key_, data](int64_t i, int64_t, K key) { data[i] = make_key.Invert(key); });
    };
    if (AnyShared(block)) return SortTied(block, sort);
    sort();
    return true;
  }

  // Of two operands, the other one's elements go with the keys in the place of positions: these sorts are stable
  // without them, and nothing is gathered afterwards.
  template <class Other>
  bool SortPairs(const Block& block) {
    int64_t n = shape_.n;
    K* data = reinterpret_cast<K*>(BlockBase(shape_, key_, block));
    Other* others = reinterpret_cast<Other*>(BlockBase(shape_, other_, block));
    Scratch<uint64_t> memory(n * (block.count + 1));
    uint64_t* items = memory.get();
    if (!items) return false;
    const auto sort = [&] {
      SortLines<kPacked>(
          block, items,
          [data, others](const auto& make_key, int64_t i, int64_t) {
            return uint64_t{make_key(data[i])} << kPacked | others[i];
          },
          [make_key = make_key_, data, others](int64_t i, int64_t, uint64_t item) {
            data[i] = make_key.Invert(static_cast<K>(item >> kPacked));
            others[i] = static_cast<Other>(item);
          });
    };
    if (AnyShared(block)) return SortTied(block, sort);
    sort();
    return true;
  }

  bool SortBlock(const Block& block) {
    if (operands_.size() == 1) return SortKeysAlone(block);
    if constexpr (sizeof(K) <= 4) {
      if (operands_.size() == 2 && shape_.n >= LeastOfRadix(sizeof(K))) {
        switch (other_.element_bytes) {
          case 2: return SortPairs<uint16_t>(block);
          case 4: return SortPairs<uint32_t>(block);
          default: break;
        }
      }
    }
    return SortWithPositions(block);
  }

  bool SortWithPositions(const Block& block) {
    int64_t n = shape_.n;
    Scratch<Positioned> memory(n * (block.count + 1));
    Scratch<WideItem> line(n);
    Positioned* items = memory.get();
    if (!items || !line.get()) return false;
    const K* data = reinterpret_cast<const K*>(BlockBase(shape_, key_, block));
    SortLines<kPacked>(
        block, items, [data](const auto& make_key, int64_t i, int64_t r) { return Traits::Pack(make_key(data[i]), r); },
        [items](int64_t, int64_t k, const Positioned& item) { items[k] = item; });
    for (const SortOperand& operand : operands_) {
      Permute(shape_, operand, block, reinterpret_cast<char*>(line.get()), within_,
              [&](int64_t b, int64_t r) { return Traits::Position(items[b * n + r]); });
    }
    return true;
  }

  SortShape shape_;
  std::span<const SortOperand> operands_;
  SortOperand key_;
  SortOperand other_;  // of two
  Maker make_key_;
  ThreadPool* pool_;
  ThreadPool* within_ = nullptr;
  std::atomic<bool> out_of_memory_{false};
};

// ---- short lines by key ---------------------------------------------------------------------------------------------

template <class K, class Maker>
class ShortLineSorter {
 public:
  ShortLineSorter(const SortShape& shape, std::span<const SortOperand> operands, const SortKey& key)
      : n_(shape.n), inner_(shape.inner), operands_(operands), key_(operands[key.operand]), make_key_(key) {}

  void Run(int64_t outer, ThreadPool* pool) const {
    const int64_t grain = std::max(kShortLines, kTaskElements / n_ / kShortLines * kShortLines);
    ForEachPiece(pool, outer * inner_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; line += kShortLines) {
        if (end - line > kFewLines<K>)
          Sort<kShortLines>(line, std::min(kShortLines, end - line));
        else
          Sort<kFewLines<K>>(line, end - line);
      }
    });
  }

 private:
  template <int64_t kLines>
  void Sort(int64_t line, int64_t count) const {
    int64_t first[kLines];  // elements of the lines
    for (int64_t l = 0, outer = line / inner_, inner = line % inner_; l < count; ++l) {
      first[l] = outer * n_ * inner_ + inner;
      if (++inner == inner_) inner = 0, ++outer;
    }
    K elements[kShortLine][kLines];
    K* const keys = static_cast<K*>(key_.data);
    ForEach<kLines>(first, count, [keys, to = elements](int64_t i, int64_t r, int64_t l) { to[r][l] = keys[i]; });
    if (count < kLines)
      for (int64_t r = 0; r < n_; ++r) std::fill(elements[r] + count, elements[r] + kLines, K{0});
    if (operands_.size() == 1 && SortShortAlone<kLines>(make_key_, elements, n_)) {
      ForEach<kLines>(first, count, [keys, from = elements](int64_t i, int64_t r, int64_t l) { keys[i] = from[r][l]; });
      return;
    }
    uint8_t positions[kShortLine][kLines];
    ShortOrder<kLines>(make_key_, elements, n_, positions);
    for (const SortOperand& operand : operands_) {
      const auto permute = [&](auto element) {
        using T = decltype(element);
        T* const data = static_cast<T*>(operand.data);
        T old[kShortLine][kLines];
        ForEach<kLines>(first, count, [data, to = old](int64_t i, int64_t r, int64_t l) { to[r][l] = data[i]; });
        ForEach<kLines>(first, count, [data, from = old, at = positions](int64_t i, int64_t r, int64_t l) {
          data[i] = from[at[r][l]][l];
        });
      };
      if (operand.element_bytes == 16)
        permute(WideItem{});
      else
        WithKeyType(static_cast<int>(operand.element_bytes), permute);
    }
  }

  // fn(i, r, l): element r of line l of `count` is at i. (Each call has a copy of fn: what it holds is known not to
  // change as elements are written.)
  template <int64_t kLines, class Fn>
  void ForEach(const int64_t* first, int64_t count, const Fn fn) const {
    const int64_t n = n_, inner = inner_;
    if (count == kLines) {
      for (int64_t r = 0; r < n; ++r)
        for (int64_t l = 0; l < kLines; ++l) fn(first[l] + r * inner, r, l);
    } else {
      for (int64_t r = 0; r < n; ++r)
        for (int64_t l = 0; l < count; ++l) fn(first[l] + r * inner, r, l);
    }
  }

  int64_t n_, inner_;
  std::span<const SortOperand> operands_;
  SortOperand key_;
  Maker make_key_;
};

// ---- by function ----------------------------------------------------------------------------------------------------

class FunctionSorter {
 public:
  FunctionSorter(const SortShape& shape, std::span<const SortOperand> operands, SortLess less, void* context,
                 ThreadPool* pool)
      : shape_(shape), operands_(operands), less_(less), context_(context), pool_(pool) {}

  Status Run() {
    // The pieces of a long line are the same with and without threads, since comparators that contradict themselves
    // would otherwise show the difference.
    bool long_lines = shape_.n > kFunctionPiece;
    LineBlocks blocks(shape_, 1);
    within_ = long_lines ? pool_ : nullptr;
    ForEachBlock(long_lines ? nullptr : pool_, blocks, [&](const Block& block) {
      if (!SortLine(block)) out_of_memory_.store(true, std::memory_order_relaxed);
    });
    return out_of_memory_.load() ? OutOfMemory(shape_.n) : OkStatus();
  }

 private:
  static constexpr int64_t kFunctionPiece = 1 << 13;
  static constexpr int64_t kInsertion = 8;
  static constexpr size_t kInlineOperands = 8;

  // Addresses of the two elements to compare, for one thread.
  class Pairs {
   public:
    Pairs(const FunctionSorter& sorter, const Block& block) : sorter_(sorter) {
      size_t n = sorter.operands_.size();
      if (n > kInlineOperands) heap_.resize(3 * n);
      pairs_ = heap_.empty() ? inline_pairs_ : heap_.data();
      base_ = heap_.empty() ? inline_base_ : heap_.data() + 2 * n;
      for (size_t i = 0; i < n; ++i) base_[i] = BlockBase(sorter.shape_, sorter.operands_[i], block);
    }
    bool Less(int64_t a, int64_t b) {
      for (size_t i = 0; i < sorter_.operands_.size(); ++i) {
        int64_t stride = sorter_.shape_.inner * sorter_.operands_[i].element_bytes;
        pairs_[2 * i] = static_cast<const char*>(base_[i]) + a * stride;
        pairs_[2 * i + 1] = static_cast<const char*>(base_[i]) + b * stride;
      }
      return sorter_.less_(pairs_, sorter_.context_);
    }

   private:
    const FunctionSorter& sorter_;
    std::vector<const void*> heap_;
    const void* inline_pairs_[2 * kInlineOperands];
    const void* inline_base_[kInlineOperands];
    const void **pairs_, **base_;
  };

  static void Merge(Pairs& pairs, const int64_t* a, const int64_t* a_end, const int64_t* b, const int64_t* b_end,
                    int64_t* out) {
    while (a != a_end && b != b_end) *out++ = pairs.Less(*b, *a) ? *b++ : *a++;
    out = std::copy(a, a_end, out);
    std::copy(b, b_end, out);
  }

  // Stable merge sort of order[0, n), insertion sort for runs of eight.
  static void SortPiece(Pairs& pairs, int64_t* order, int64_t* spare, int64_t n) {
    for (int64_t begin = 0; begin < n; begin += kInsertion) {
      int64_t end = std::min(n, begin + kInsertion);
      for (int64_t i = begin + 1; i < end; ++i) {
        int64_t moving = order[i], at = i;
        for (; at > begin && pairs.Less(moving, order[at - 1]); --at) order[at] = order[at - 1];
        order[at] = moving;
      }
    }
    int64_t *from = order, *to = spare;
    for (int64_t run = kInsertion; run < n; run *= 2) {
      for (int64_t begin = 0; begin < n; begin += 2 * run) {
        int64_t middle = std::min(n, begin + run), end = std::min(n, begin + 2 * run);
        Merge(pairs, from + begin, from + middle, from + middle, from + end, to + begin);
      }
      std::swap(from, to);
    }
    if (from != order) std::copy(from, from + n, order);
  }

  bool SortLine(const Block& block) {
    int64_t n = shape_.n;
    Scratch<int64_t> memory(2 * n);
    Scratch<WideItem> line(n);
    if (!memory.get() || !line.get()) return false;
    int64_t *order = memory.get(), *spare = order + n;
    for (int64_t i = 0; i < n; ++i) order[i] = i;
    ForEachPiece(within_, n, kFunctionPiece, [&](int64_t begin, int64_t end) {
      Pairs pairs(*this, block);
      SortPiece(pairs, order + begin, spare + begin, end - begin);
    });
    for (int64_t run = kFunctionPiece; run < n; run *= 2) {
      ForEachPiece(within_, n, 2 * run, [&](int64_t begin, int64_t end) {
        Pairs pairs(*this, block);
        int64_t middle = std::min(end, begin + run);
        Merge(pairs, order + begin, order + middle, order + middle, order + end, spare + begin);
      });
      std::swap(order, spare);
    }
    for (const SortOperand& operand : operands_) {
      Permute(shape_, operand, block, reinterpret_cast<char*>(line.get()), within_,
              [&](int64_t, int64_t r) { return order[r]; });
    }
    return true;
  }

  SortShape shape_;
  std::span<const SortOperand> operands_;
  SortLess less_;
  void* context_;
  ThreadPool* pool_;
  ThreadPool* within_ = nullptr;
  std::atomic<bool> out_of_memory_{false};
};

template <class K, class Maker, class ShortMaker>
Status Sort(const SortShape& shape, std::span<const SortOperand> operands, const SortKey& key, ThreadPool* pool) {
  constexpr int64_t kLeastLines = 4;  // fewer leave lanes empty
  if (shape.n > kShortLine || shape.outer * shape.inner < kLeastLines)
    return KeySorter<K, Maker>(shape, operands, key, pool).Run();
  ShortLineSorter<K, ShortMaker>(shape, operands, key).Run(shape.outer, pool);
  return OkStatus();
}

}  // namespace

Status SortByKey(const SortShape& shape, std::span<const SortOperand> operands, const SortKey& key, ThreadPool* pool) {
  STROP_TRY(Check(shape, operands));
  if (!HasOrder(key.type)) return Unimplemented("sort: elements of type ", Name(key.type), " have no order");
  if (key.operand < 0 || key.operand >= static_cast<int64_t>(operands.size()) ||
      operands[key.operand].element_bytes != Bytes(key.type)) {
    return InvalidArgument("sort: operand ", key.operand, " is no key of type ", Name(key.type));
  }
  if (shape.n >= int64_t{1} << 32 && Bytes(key.type) <= 4) {
    return Unimplemented("sort: a dimension of ", shape.n, " elements; the limit is 2^32");
  }
  if (shape.n < 2 || shape.outer == 0 || shape.inner == 0) return OkStatus();
  return WithKeyType(Bytes(key.type), [&](auto k) {
    using K = decltype(k);
    if (!IsFloat(key.type)) return Sort<K, KeyMaker<K>, IntegerKeyMaker<K>>(shape, operands, key, pool);
    if constexpr (sizeof(K) == 1)
      return Sort<K, TableKeyMaker, TableKeyMaker>(shape, operands, key, pool);
    else
      return Sort<K, KeyMaker<K>, KeyMaker<K>>(shape, operands, key, pool);
  });
}

Status SortByFunction(const SortShape& shape, std::span<const SortOperand> operands, SortLess less, void* context,
                      ThreadPool* pool) {
  STROP_TRY(Check(shape, operands));
  if (!less) return InvalidArgument("sort: no comparator");
  if (shape.n < 2 || shape.outer == 0 || shape.inner == 0) return OkStatus();
  return FunctionSorter(shape, operands, less, context, pool).Run();
}

}  // namespace strop::cpu
