// Products too small to be cut or packed in panels, of which a task takes many: rows of A by rows of B, of which a few
// at a time are multiplied from where they lie (MultiplySmall). What lies otherwise, or is of another type than the
// sums, is first written down as it should be, a piece at a time.
#include <algorithm>
#include <type_traits>

#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/gemm_blocks.h"
#include "strop/cpu/kernels/rounding.h"

namespace strop::cpu {
namespace {

constexpr int64_t kSmallProducts = 1 << 15;
constexpr int64_t kConvertedProducts = 1 << 13;  // of other types, which larger products multiply in pairs
constexpr int64_t kTaskProducts = 1 << 18;       // of a task
constexpr int64_t kLongDots = 2;                 // vectors; what is shorter is worth turning B
constexpr int64_t kFewestColumns = 4;
constexpr int64_t kRowsForPacking = 48;   // of a task that writes B down
constexpr int64_t kPieceElements = 4096;  // sums that wait for their conversion in the first-level cache

// The sums of so few products are done before packing pays.
constexpr int64_t kFlatElements = 16, kFlatRows = 8;  // along k; of A, at least
bool IsFlat(const GemmProblem& p, int lanes) { return p.k <= kFlatElements && p.m >= kFlatRows && p.n >= lanes; }

template <class T>
class SmallGemm final : public Gemm {
 public:
  static bool Suits(const GemmProblem& p, const MicroTable<T>& micro) {
    const bool typed = Typed(p.a) && Typed(p.b) && HoldsSums<T>(p.c.type);
    const bool dots = AreDots(p, p.m) && p.b.row_stride == 1 && (p.b.col_stride != 1 || p.n == 1);
    if (p.k == 0 || (dots && (HasShortDots(p, micro.lanes) || p.k >= kLongDots * micro.lanes))) return false;
    const int64_t products = p.m * p.n * p.k;
    // Of a few rows, B is converted on its way to the registers.
    if (!typed && std::is_floating_point_v<T> && p.b.col_stride == 1 && p.m <= kFewStripRows) return false;
    if (!typed) {
      const bool few = products <= kConvertedProducts && p.n >= kFewestColumns;
      return (few || IsFlat(p, micro.lanes)) && PackerOf(micro, p.a.type) && PackerOf(micro, p.b.type);
    }
    return p.c.col_stride == 1 &&
           ((products <= kSmallProducts && p.n >= kFewestColumns) || IsFlat(p, micro.lanes) || AreFewShortColumns(p));
  }

  SmallGemm(const GemmProblem& p, const MicroTable<T>& micro) : p_(p), micro_(micro) {
    const int64_t products = p.m * p.n * p.k, bytes = sizeof(T);
    products_a_task_ = std::max<int64_t>(kTaskProducts / products, 1);
    reads_a_ = Typed(p.a), reads_b_ = Typed(p.b) && (p.b.col_stride == 1 || p.n == 1);
    direct_ = HoldsSums<T>(p.c.type) && p.c.col_stride == 1;
    mb_ = p.m;
    // Tasks of rows of a large one.
    if (products > 2 * kTaskProducts)
      mb_ = std::min(
          p.m,
          RoundUp(std::max({CeilDiv(p.m, 16), kTaskProducts / (p.n * p.k), reads_b_ ? int64_t{1} : kRowsForPacking}),
                  kSmallRows));
    down_ = CeilDiv(p.m, mb_);
    num_tasks_ = CeilDiv(p.batch, products_a_task_) * down_;
    piece_ = mb_;
    if (!reads_a_ || !direct_) piece_ = std::min(mb_, RoundUp(CeilDiv(kPieceElements, p.n), kSmallRows));
    if (!reads_a_) scratch_bytes_ += piece_ * p.k * bytes + kCarverSlack;
    if (!reads_b_) scratch_bytes_ += p.k * RoundUp(p.n, micro.lanes) * bytes + kCarverSlack;
    if (!direct_) scratch_bytes_ += piece_ * p.n * bytes + kCarverSlack;
    tiles_ =
        down_ > 1 ? StrCat("nothing packed, ", mb_, " rows a task") : StrCat("small, ", products_a_task_, " a task");
    if (!reads_a_ || !direct_) StrAppend(tiles_, ", converted");
  }

  void Run(const GemmCall& call, int64_t begin, int64_t end, void* scratch) const override {
    for (; begin < end; ++begin) {
      const int64_t first = begin / down_ * products_a_task_, m0 = begin % down_ * mb_;
      for (int64_t i = first; i < std::min(first + products_a_task_, p_.batch); ++i)
        Multiply(call, i, m0, std::min(mb_, p_.m - m0), scratch);
    }
  }

 private:
  static bool Typed(const StridedMatrix& m) { return m.type == ElementTypeOf<T>(); }
  static const uint8_t* At(const void* data, const StridedMatrix& m, int64_t element) {
    return static_cast<const uint8_t*>(data) + element * Bytes(m.type);
  }

  void Multiply(const GemmCall& call, int64_t product, int64_t m0, int64_t rows, void* scratch) const {
    Carver carver(scratch);
    const uint8_t* const a_at = At(call.a, p_.a, p_.Offset(p_.a, product));
    const uint8_t* const b_at = At(call.b, p_.b, p_.Offset(p_.b, product));
    const T* b = reinterpret_cast<const T*>(b_at);
    int64_t b_stride = p_.b.row_stride;
    if (!reads_b_) {
      b_stride = RoundUp(p_.n, micro_.lanes);
      T* const packed = carver.Take<T>(p_.k * b_stride);
      b = packed;
      PackStrided<T>(micro_, p_.b.type, b_at, 0, p_.b.col_stride, p_.b.row_stride, p_.n, p_.k, b_stride, packed);
    }
    T* const converted = reads_a_ ? nullptr : carver.Take<T>(piece_ * p_.k);
    T* const sums = direct_ ? nullptr : carver.Take<T>(piece_ * p_.n);
    const int64_t c_at = p_.Offset(p_.c, product);
    const StoreTarget c{p_.c.type, const_cast<uint8_t*>(At(call.c, p_.c, c_at)), p_.c.row_stride, p_.c.col_stride};
    for (const int64_t end = m0 + rows; m0 < end; m0 += piece_)
      MultiplyRows(At(a_at, p_.a, m0 * p_.a.row_stride), std::min(piece_, end - m0), b, b_stride, c, m0, converted,
                   sums);
  }

  void MultiplyRows(const uint8_t* a_at, int64_t rows, const T* b, int64_t b_stride, const StoreTarget& c, int64_t m0,
                    T* converted, T* sums) const {
    const T* a = reinterpret_cast<const T*>(a_at);
    int64_t a_row = p_.a.row_stride, a_k = p_.a.col_stride;
    if (converted) {
      a = converted;
      // As memory lies: columns one after the other, or rows.
      const bool across = p_.a.row_stride == 1 && p_.a.col_stride != 1;
      a_row = across ? 1 : p_.k, a_k = across ? rows : 1;
      if (across)
        PackStrided<T>(micro_, p_.a.type, a_at, 0, 1, p_.a.col_stride, rows, p_.k, rows, converted);
      else if (p_.a.col_stride == 1 && p_.a.row_stride == p_.k)  // one long row
        PackStrided<T>(micro_, p_.a.type, a_at, 0, 1, 0, rows * p_.k, 1, rows * p_.k, converted);
      else
        PackStrided<T>(micro_, p_.a.type, a_at, 0, p_.a.col_stride, p_.a.row_stride, p_.k, rows, p_.k, converted);
    }
    if (direct_)
      return MultiplySmall<T>(micro_, rows, p_.n, p_.k, a, a_row, a_k, b, b_stride, AddressIn<T>(c, m0, 0),
                              p_.c.row_stride);
    MultiplySmall<T>(micro_, rows, p_.n, p_.k, a, a_row, a_k, b, b_stride, sums, p_.n);
    if (p_.c.col_stride == 1 && p_.c.row_stride == p_.n) {  // one long row is stored as vectors
      StoreTile<T>({c.type, c.data + m0 * p_.n * Bytes(c.type), rows * p_.n, 1}, 0, 0, 1, rows * p_.n, sums,
                   rows * p_.n, false);
    } else {
      StoreTile<T>(c, m0, 0, rows, p_.n, sums, p_.n, false);
    }
  }

  const GemmProblem p_;
  const MicroTable<T>& micro_;
  bool reads_a_ = true, reads_b_ = true, direct_ = true;  // and written where they lie
  int64_t products_a_task_ = 1, mb_ = 1, down_ = 1;
  int64_t piece_ = 1;  // rows that are converted at a time
};

}  // namespace

bool AreFewShortColumns(const GemmProblem& p) {
  constexpr int64_t kShortSums = 32;
  const bool same = p.a.type == p.b.type && p.a.type == p.c.type;
  return p.n > 1 && p.n <= kDotRows && p.m > p.n && p.k < kShortSums && p.c.col_stride == 1 && same &&
         (p.a.type == ElementType::F32 || p.a.type == ElementType::F64);
}

template <class T>
std::shared_ptr<const Gemm> MakeSmallGemm(const GemmProblem& p, const GemmIsa& isa) {
  const MicroTable<T>& micro = MicroOf<T>(isa);
  if (!SmallGemm<T>::Suits(p, micro)) return nullptr;
  return std::make_shared<SmallGemm<T>>(p, micro);
}
template std::shared_ptr<const Gemm> MakeSmallGemm<float>(const GemmProblem&, const GemmIsa&);
template std::shared_ptr<const Gemm> MakeSmallGemm<double>(const GemmProblem&, const GemmIsa&);
template std::shared_ptr<const Gemm> MakeSmallGemm<int32_t>(const GemmProblem&, const GemmIsa&);
template std::shared_ptr<const Gemm> MakeSmallGemm<int64_t>(const GemmProblem&, const GemmIsa&);

}  // namespace strop::cpu
