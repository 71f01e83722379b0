#include "strop/cpu/kernels/sort_key.h"

#include <atomic>

namespace strop::cpu {

TableKeyMaker::Table::Table(const SortKey& key) {
  std::array<std::pair<double, double>, 256> place;  // order, then total order among equals
  std::array<bool, 256> last = {};
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (int code = 0; code < 256; ++code) {
    if (!IsFloat(key.type)) {
      place[code] = {IsSigned(key.type) ? static_cast<int8_t>(code) : code, 0.0};
      continue;
    }
    const uint64_t bits = static_cast<uint64_t>(code) & ((uint64_t{1} << Bits(key.type)) - 1);
    const double value = DecodeFloat(key.type, bits);
    bool negative = FormatOf(key.type).has_sign && (bits >> (Bits(key.type) - 1));
    if (std::isnan(value) && !FormatOf(key.type).has_negative_zero) negative = false;  // the code of -0 is the NaN
    if (key.order == KeyOrder::kTotal) {
      const double sign = negative ? -1 : 1;
      place[code] = std::isnan(value) ? std::pair{sign * kInf, sign * static_cast<double>(1 + (bits & 0x7f))}
                                      : std::pair{value, std::signbit(value) && value == 0 ? -0.5 : 0.0};
    } else {
      place[code] = std::isnan(value) ? std::pair{kInf, 1.0} : std::pair{value + 0.0, 0.0};
      last[code] = std::isnan(value) && key.order == KeyOrder::kIeee;
    }
  }
  const auto before = [&](int a, int b) {
    if (last[a] || last[b]) return !last[a] && last[b];
    return key.descending ? place[b] < place[a] : place[a] < place[b];
  };
  std::array<int, 256> in_order;
  for (int i = 0; i < 256; ++i) in_order[i] = i;
  std::stable_sort(in_order.begin(), in_order.end(), before);
  int rank = -1;
  for (int i = 0; i < 256; ++i) {
    const int code = in_order[i];
    if (i == 0 || before(in_order[i - 1], code))
      codes[++rank] = static_cast<uint8_t>(code);
    else
      shares_any = shared[code] = shared[codes[rank]] = true;
    keys[code] = static_cast<uint8_t>(rank);
  }
}

const TableKeyMaker::Table& TableKeyMaker::TableOf(const SortKey& key) {
  static std::atomic<const Table*> tables[kNumElementTypes][3][2];
  std::atomic<const Table*>& table =
      tables[static_cast<size_t>(key.type)][static_cast<size_t>(key.order)][key.descending];
  const Table* found = table.load(std::memory_order_acquire);
  if (found) return *found;
  const Table* made = new Table(key);
  if (table.compare_exchange_strong(found, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *found;
}

}  // namespace strop::cpu
