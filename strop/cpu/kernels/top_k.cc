#include "strop/cpu/kernels/top_k.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "strop/base/isa.h"
#include "strop/cpu/kernels/parallel.h"
#include "strop/cpu/kernels/short_sort.h"
#include "strop/cpu/kernels/sort_items.h"

namespace strop::cpu {
namespace {

constexpr int64_t kTaskElements = 1 << 15;

constexpr int64_t kPiece = 1 << 16;  // of a long row: selected apart, the winners together
constexpr int64_t kGlance = 512;     // elements that are looked at together for any that counts
constexpr int64_t kFirstGlance = 8;  // at first, when many do

// Keys for total order, without branches: the bits of a float, those below the sign turned over if it is set, are an
// integer in its order; all are turned over where the largest come first.
template <class K>
class RankKey {
 public:
  RankKey(ElementType type, bool largest)
      : sign_(IsFloat(type) || IsSigned(type) ? kSign : 0), turn_(IsFloat(type) ? static_cast<K>(kSign - 1) : 0) {
    if (largest) sign_ = static_cast<K>(~sign_);
  }
  K operator()(K bits) const {
    const K negative = static_cast<K>(-static_cast<K>(bits >> (8 * sizeof(K) - 1)));
    return static_cast<K>(bits ^ (negative & turn_) ^ sign_);
  }

 private:
  static constexpr K kSign = static_cast<K>(K{1} << (8 * sizeof(K) - 1));
  K sign_, turn_;
};
// Formats of one byte have a table.
template <>
class RankKey<uint8_t> : public TableKeyMaker {
 public:
  RankKey(ElementType type, bool largest)
      : TableKeyMaker({.type = type, .order = KeyOrder::kTotal, .descending = largest}) {}
};

template <class K>
bool AnyBelow(const RankKey<K>& make_key, const K* row, K limit) {
  bool any = false;
  WithVectors([&] {
    K found = 0;
    for (int64_t i = 0; i < kGlance; ++i) found |= static_cast<K>(make_key(row[i]) < limit);
    any = found != 0;
  });
  return any;
}

// Of `count` <= kGlance elements, a multiple of 8: 1 where the key is below the limit, else 0.
template <class K>
void NoteBelow(const RankKey<K>& make_key, const K* row, int64_t count, K limit, uint8_t* below) {
  WithVectors([=, &make_key] {
    // Bytes that are stored could be those of anything that is not a local value.
    const RankKey<K> key = make_key;
    const K highest = limit;
    const int64_t n = count;
    const K* __restrict from = row;
    uint8_t* __restrict to = below;
    for (int64_t i = 0; i < n; ++i) to[i] = key(from[i]) < highest;
  });
}

// A key above which nothing of a long row counts: what any of its pieces has found k elements not above.
template <class K>
using SharedLimit = std::atomic<K>;

// The k smallest items (of descending keys: the largest elements) of row[begin, end), sorted, into best. `best` has
// room for max(2k, 1) items, or for 2(end - begin) where everything is sorted. Returns how many there are, which may be
// fewer if `shared` says that others are not needed.
template <class K>
int64_t Select(const RankKey<K>& make_key, const K* row, int64_t begin, int64_t end, int64_t k,
               typename ItemTraits<K>::Positioned* best, SharedLimit<K>* shared = nullptr) {
  using Traits = ItemTraits<K>;
  const int64_t n = end - begin;
  if (k > n / 4) {
    for (int64_t i = 0; i < n; ++i) best[i] = Traits::Pack(make_key(row[begin + i]), begin + i);
    SortItems<sizeof(K) <= 4 ? 32 : 0>(best, best + n, n, static_cast<int>(sizeof(K)));
    return std::min(k, n);
  }
  constexpr K kHighest = static_cast<K>(~K{0});
  const int64_t most = k + std::min(k, std::max<int64_t>(k / 2, 8));
  int64_t held = 0;
  K limit = kHighest;  // keys from here on are not among the best: of equal ones the earlier wins
  const auto prune = [&] {
    std::nth_element(best, best + (k - 1), best + held);
    held = k;
    limit = std::min(limit, make_key(row[Traits::Position(best[k - 1])]));
    if (!shared) return;
    K known = shared->load(std::memory_order_relaxed);
    while (limit < known && !shared->compare_exchange_weak(known, limit, std::memory_order_relaxed)) continue;
    if (known < limit) limit = static_cast<K>(known + 1);  // the others' may be equal
  };
  const auto take = [&](int64_t i) {
    const K key = make_key(row[i]);
    if (key >= limit) return;
    best[held++] = Traits::Pack(key, i);
    if (held == most) prune();
  };
  int64_t i = begin;
  for (; i < begin + k; ++i) best[held++] = Traits::Pack(make_key(row[i]), i);
  prune();
  uint8_t below[kGlance];
  int64_t glance = kFirstGlance;
  while (i + glance <= end) {
    const bool growing = i - begin < 2 * kGlance;
    if (growing || AnyBelow(make_key, row + i, limit)) {
      NoteBelow(make_key, row + i, glance, limit, below);
      for (int64_t g = 0; g < glance; g += 8) {
        uint64_t eight;
        std::memcpy(&eight, below + g, 8);
        for (; eight != 0; eight &= eight - 1) take(i + g + std::countr_zero(eight) / 8);
      }
      if (growing && held > k) prune();
    }
    i += glance;
    // As much again as was seen: as many count in each.
    while (2 * glance <= std::min(kGlance, i - begin)) glance *= 2;
  }
  for (; i < end; ++i) take(i);
  std::sort(best, best + held);
  return std::min(k, held);
}

template <class K>
void Write(const typename ItemTraits<K>::Positioned* best, int64_t k, const K* row, K* values, int32_t* indices) {
  for (int64_t j = 0; j < k; ++j) {
    const int64_t i = ItemTraits<K>::Position(best[j]);
    values[j] = row[i];
    indices[j] = static_cast<int32_t>(i);
  }
}

template <class K>
bool SelectRows(const RankKey<K>& make_key, int64_t begin, int64_t end, int64_t n, int64_t k, const K* input, K* values,
                int32_t* indices) {
  using Item = typename ItemTraits<K>::Positioned;
  std::unique_ptr<Item[]> best(new (std::nothrow) Item[k > n / 4 ? 2 * n : 2 * k]);
  if (!best) return false;
  for (int64_t row = begin; row < end; ++row) {
    Select(make_key, input + row * n, 0, n, k, best.get());
    Write<K>(best.get(), k, input + row * n, values + row * k, indices + row * k);
  }
  return true;
}

// ---- short rows, of which few are wanted: a row a lane, the best of each kept in order while its elements pass by

// Items are keys before positions, as positive doubles: their bits are in order, and processors without a minimum of
// integers of 64 bits have one of doubles.
typedef double Lanes __attribute__((vector_size(32)));
constexpr int64_t kLanes = 4, kInRegisters = 8, kMostKept = 64;
constexpr int64_t kAtOnce = 128;  // elements of a row
constexpr int kPositionBits = 20;
constexpr uint64_t kLeastItem = uint64_t{1} << 52;  // no subnormals

// Is it sooner than Select() and SortShortRows()?
bool SelectsByLanes(int64_t rows, int64_t n, int64_t k) {
  if (rows < kLanes || k > kMostKept || (k > kInRegisters && n <= kShortLine && 4 * k > n)) return false;
  return n <= 2048 + 64 * k;
}

// Of items[j] for j < n, the kKept smallest of each lane in ascending order, with those that best has so far. The
// others take their places.
template <int kKept>
__attribute__((always_inline)) inline void KeepBest(Lanes* items, int64_t n, Lanes* best) {
  Lanes kept[kKept];
  std::memcpy(kept, best, sizeof(kept));
  for (int64_t j = 0; j < n; ++j) {
    Lanes item = items[j];
    for (Lanes& k : kept) {
      const Lanes low = item < k ? item : k;
      item = item > k ? item : k;  // so written, both are one instruction
      k = low;
    }
    items[j] = item;
  }
  std::memcpy(best, kept, sizeof(kept));
}

// Leaves out items[j] for j < n that are above the limit in all lanes. Returns how many are left.
inline int64_t LeaveOut(Lanes* items, int64_t n, const Lanes& limit) {
  int64_t left = 0;
  for (int64_t j = 0; j < n; ++j) {
    const Lanes item = items[j];
    const auto counts = item < limit;
    items[left] = item;
    left += ((counts[0] | counts[1]) | (counts[2] | counts[3])) & 1;
  }
  return left;
}

// keys[lane][j] for j < n and the positions from `first`, as items.
inline void MakeItems(const uint32_t (*keys)[kAtOnce], int64_t n, int64_t first, Lanes* items) {
  typedef uint32_t Four __attribute__((vector_size(16)));
  typedef uint64_t Wide __attribute__((vector_size(32)));
  for (int64_t j = 0; j < n; j += 4) {
    Four a, b, c, d;
    std::memcpy(&a, keys[0] + j, 16), std::memcpy(&b, keys[1] + j, 16);
    std::memcpy(&c, keys[2] + j, 16), std::memcpy(&d, keys[3] + j, 16);
    const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Four ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7), cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const Four turned[4] = {__builtin_shufflevector(ab, cd, 0, 1, 4, 5), __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                            __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5),
                            __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7)};
    for (int64_t i = 0; i < 4; ++i) {
      const Wide item = (__builtin_convertvector(turned[i], Wide) << kPositionBits) +
                        (kLeastItem + static_cast<uint64_t>(first + j + i));
      std::memcpy(items + j + i, &item, sizeof(item));
    }
  }
}

template <class K>
void SelectByLanes(const RankKey<K>& make_key, int64_t begin, int64_t end, int64_t n, int64_t k, const K* input,
                   K* values, int32_t* indices) {
  static_assert(sizeof(K) <= 4);
  const RankKey<K> key = make_key;  // nobody else's, so that what is stored cannot change it
  uint32_t keys[kLanes][kAtOnce];
  Lanes items[kAtOnce], best[kMostKept];
  std::memset(keys, 0, sizeof(keys));
  for (int64_t row = begin; row < end; row += kLanes) {
    WithVectors([&] {
      for (Lanes& b : best) b = Lanes{} + std::numeric_limits<double>::max();
      for (int64_t first = 0; first < n; first += kAtOnce) {
        const int64_t count = std::min(kAtOnce, n - first);
        for (int64_t l = 0; l < kLanes; ++l) {
          const K* from = input + std::min(row + l, end - 1) * n + first;
          for (int64_t j = 0; j < count; ++j) keys[l][j] = key(from[j]);
        }
        MakeItems(keys, count, first, items);
        // Most items behind the first ones are not among the best.
        const int64_t left = first > 0 && k > 2 ? LeaveOut(items, count, best[k - 1]) : count;
        switch (std::min(k, kInRegisters)) {
          case 1: KeepBest<1>(items, left, best); break;
          case 2: KeepBest<2>(items, left, best); break;
          case 3: KeepBest<3>(items, left, best); break;
          case 4: KeepBest<4>(items, left, best); break;
          case 5: KeepBest<5>(items, left, best); break;
          case 6: KeepBest<6>(items, left, best); break;
          case 7: KeepBest<7>(items, left, best); break;
          default:
            for (int64_t j = 0; j < k; j += kInRegisters) KeepBest<kInRegisters>(items, left, best + j);
            break;
        }
      }
    });
    for (int64_t l = 0; l < std::min(kLanes, end - row); ++l)
      for (int64_t j = 0; j < k; ++j) {
        const int64_t at = static_cast<int64_t>(std::bit_cast<uint64_t>(static_cast<double>(best[j][l])) &
                                                ((uint64_t{1} << kPositionBits) - 1));
        values[(row + l) * k + j] = input[(row + l) * n + at];
        indices[(row + l) * k + j] = static_cast<int32_t>(at);
      }
  }
}

// A short row that has no others beside it, or elements too wide for items: what is among the best so far is inserted.
constexpr int64_t kMostInserted = 32, kMostInsertedFrom = 256;

// Where SelectByLanes() does not, is it sooner than Select() and SortShortRows()?
bool InsertsSooner(int64_t rows, int64_t n, int64_t k) {
  return n <= kMostInsertedFrom && k <= kMostInserted && (rows < kLanes || n > kShortLine);
}

template <class K>
void SelectByInsertion(const RankKey<K>& make_key, int64_t begin, int64_t end, int64_t n, int64_t k, const K* input,
                       K* values, int32_t* indices) {
  K keys[kMostInsertedFrom], kept[kMostInserted];
  int32_t at[kMostInserted];
  for (int64_t row = begin; row < end; ++row) {
    const K* const from = input + row * n;
    WithVectors([&keys, key = make_key, from, n] {
      for (int64_t j = 0; j < n; ++j) keys[j] = key(from[j]);
    });
    for (int64_t j = 0; j < n; ++j) {
      const K key = keys[j];
      int64_t to = j;
      if (j >= k) {
        to = k - 1;
        if (key >= kept[to]) continue;
      }
      for (; to > 0 && key < kept[to - 1]; --to) kept[to] = kept[to - 1], at[to] = at[to - 1];
      kept[to] = key, at[to] = static_cast<int32_t>(j);
    }
    for (int64_t j = 0; j < k; ++j) values[row * k + j] = from[at[j]], indices[row * k + j] = at[j];
  }
}

// Other short rows: sorted, a row a lane.
template <class K>
void SortShortRows(const RankKey<K>& make_key, int64_t begin, int64_t end, int64_t n, int64_t k, const K* input,
                   K* values, int32_t* indices) {
  K elements[kShortLine][kShortLines];
  uint8_t order[kShortLine][kShortLines];
  for (int64_t row = begin; row < end; row += kShortLines) {
    const int64_t last = std::min(kShortLines, end - row) - 1;
    const K* const from = input + row * n;
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < kShortLines; ++l) elements[j][l] = from[std::min(l, last) * n + j];
    ShortOrder<kShortLines>(make_key, elements, n, order);
    for (int64_t l = 0; l <= last; ++l)
      for (int64_t j = 0; j < k; ++j) {
        const int64_t at = order[j][l];
        values[(row + l) * k + j] = from[l * n + at];
        indices[(row + l) * k + j] = static_cast<int32_t>(at);
      }
  }
}

// One row, its pieces in parallel: what is among the best of all is among the best of its piece.
template <class K>
bool SelectLongRow(const RankKey<K>& make_key, int64_t n, int64_t k, const K* row, K* values, int32_t* indices,
                   ThreadPool* pool) {
  using Item = typename ItemTraits<K>::Positioned;
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  // The last piece may be so short that it is sorted whole: fewer than 4k items, and as many to spare.
  std::unique_ptr<Item[]> best(new (std::nothrow) Item[(pieces - 1) * 2 * k + 8 * k]);
  if (!best) return false;
  std::vector<int64_t> held(pieces);
  SharedLimit<K> shared{static_cast<K>(~K{0})};
  ForEachTask(pool, pieces, [&](int64_t p) {
    held[p] = Select(make_key, row, p * kPiece, std::min(n, (p + 1) * kPiece), k, best.get() + p * 2 * k, &shared);
  });
  int64_t all = 0;
  for (int64_t p = 0; p < pieces; ++p)
    for (int64_t j = 0; j < held[p]; ++j) best[all++] = best[p * 2 * k + j];
  std::partial_sort(best.get(), best.get() + k, best.get() + all);
  Write<K>(best.get(), k, row, values, indices);
  return true;
}

}  // namespace

Status TopK(ElementType type, bool largest, int64_t outer, int64_t n, int64_t k, const void* input, void* values,
            int32_t* indices, ThreadPool* pool) {
  if (!HasOrder(type)) return Unimplemented("top-k: elements of type ", Name(type), " have no order");
  if (outer < 0 || k < 0 || k > n || n > INT32_MAX) return InvalidArgument("top-k: k = ", k, " of ", n, " elements");
  if (k == 0 || outer == 0) return OkStatus();
  std::atomic<bool> out_of_memory{false};
  WithKeyType(Bytes(type), [&](auto key) {
    using K = decltype(key);
    const RankKey<K> make_key(type, largest);
    const K* elements = static_cast<const K*>(input);
    if (n >= 2 * kPiece && k <= kPiece / 16) {
      for (int64_t row = 0; row < outer; ++row)
        if (!SelectLongRow(make_key, n, k, elements + row * n, static_cast<K*>(values) + row * k, indices + row * k,
                           pool))
          out_of_memory = true;
      return 0;
    }
    ForEachPiece(pool, outer, std::max<int64_t>(1, kTaskElements / n), [&](int64_t begin, int64_t end) {
      if constexpr (sizeof(K) <= 4) {
        if (SelectsByLanes(outer, n, k))
          return SelectByLanes(make_key, begin, end, n, k, elements, static_cast<K*>(values), indices);
      }
      if (InsertsSooner(outer, n, k))
        return SelectByInsertion(make_key, begin, end, n, k, elements, static_cast<K*>(values), indices);
      if (n <= kShortLine && outer >= kLanes)
        return SortShortRows(make_key, begin, end, n, k, elements, static_cast<K*>(values), indices);
      if (!SelectRows(make_key, begin, end, n, k, elements, static_cast<K*>(values), indices))
        out_of_memory.store(true, std::memory_order_relaxed);
    });
    return 0;
  });
  return out_of_memory.load() ? ResourceExhausted("top-k: no memory for rows of ", n, " elements") : OkStatus();
}

}  // namespace strop::cpu
