#include "strop/cpu/kernels/top_k.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>

#include "strop/cpu/kernels/parallel.h"
#include "strop/cpu/kernels/sort_key.h"

namespace strop::cpu {
namespace {

constexpr int64_t kTaskElements = 1 << 15;

// The k smallest items (descending keys: the largest elements) of one row, sorted, into best[0, k). `best` has room for
// max(2k, 1) items, or for 2n where everything is sorted.
template <class K>
void SelectRow(const KeyMaker<K>& make_key, const K* row, int64_t n, int64_t k,
               typename ItemTraits<K>::Positioned* best) {
  using Traits = ItemTraits<K>;
  if (k > n / 4) {
    for (int64_t i = 0; i < n; ++i) best[i] = Traits::Pack(make_key(row[i]), i);
    SortItems(best, best + n, n, sizeof(K) <= 4 ? 32 : 0, static_cast<int>(sizeof(K)));
    return;
  }
  int64_t held = 0;
  K limit = static_cast<K>(~K{0});  // keys above it cannot be among the best; ties lose to earlier elements once full
  bool full = false;
  for (int64_t i = 0; i < n; ++i) {
    K key = make_key(row[i]);
    if (full && key >= limit) continue;
    best[held++] = Traits::Pack(key, i);
    if (held < 2 * k) continue;
    std::nth_element(best, best + (k - 1), best + held);
    limit = make_key(row[Traits::Position(best[k - 1])]);
    full = true;
    held = k;
  }
  std::sort(best, best + held);
}

template <class K>
bool SelectRows(const KeyMaker<K>& make_key, int64_t begin, int64_t end, int64_t n, int64_t k, const K* input,
                K* values, int32_t* indices) {
  using Traits = ItemTraits<K>;
  using Item = typename Traits::Positioned;
  std::unique_ptr<Item[]> best(new (std::nothrow) Item[k > n / 4 ? 2 * n : 2 * k]);
  if (!best) return false;
  for (int64_t row = begin; row < end; ++row) {
    const K* elements = input + row * n;
    SelectRow(make_key, elements, n, k, best.get());
    for (int64_t j = 0; j < k; ++j) {
      int64_t i = Traits::Position(best[j]);
      values[row * k + j] = elements[i];
      indices[row * k + j] = static_cast<int32_t>(i);
    }
  }
  return true;
}

}  // namespace

Status TopK(ElementType type, int64_t outer, int64_t n, int64_t k, const void* input, void* values, int32_t* indices,
            ThreadPool* pool) {
  if (!HasOrder(type)) return Unimplemented("top-k: elements of type ", Name(type), " have no order");
  if (outer < 0 || k < 0 || k > n || n > INT32_MAX) return InvalidArgument("top-k: k = ", k, " of ", n, " elements");
  if (k == 0 || outer == 0) return OkStatus();
  std::atomic<bool> out_of_memory{false};
  WithKeyType(Bytes(type), [&](auto key) {
    using K = decltype(key);
    const KeyMaker<K> make_key({.type = type, .order = KeyOrder::kTotal, .descending = true});
    ForEachPiece(pool, outer, std::max<int64_t>(1, kTaskElements / n), [&](int64_t begin, int64_t end) {
      bool done =
          SelectRows(make_key, begin, end, n, k, static_cast<const K*>(input), static_cast<K*>(values), indices);
      if (!done) out_of_memory.store(true, std::memory_order_relaxed);
    });
    return 0;
  });
  return out_of_memory.load() ? ResourceExhausted("top-k: no memory for rows of ", n, " elements") : OkStatus();
}

}  // namespace strop::cpu
