// Long sums with few results on either side: A^T B of matrices that lie in rows, as the counts and sums of a one-hot
// matrix, or the gradient of a small layer. A step along k takes one row of each, where they lie; packing them would be
// most of the work.
#include <algorithm>

#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/gemm_blocks.h"
#include "strop/cpu/kernels/rounding.h"

namespace strop::cpu {
namespace {

constexpr int64_t kLeastProducts = 1 << 15;  // below, nothing is packed in any case
constexpr int64_t kLeastSums = 128;          // elements of k
constexpr int64_t kTaskProducts = 1 << 19;
constexpr int64_t kMostPanels = 8;       // of rows of C, for which B is read again
constexpr int64_t kPieceElements = 512;  // of k, summed in registers before they are added to what was before

template <class T>
class ColumnsGemm final : public Gemm {
 public:
  static bool Suits(const GemmProblem& p, const MicroTable<T>& micro) {
    return micro.runs[0][0] && p.a.type == ElementTypeOf<T>() && p.b.type == ElementTypeOf<T>() &&
           p.a.row_stride == 1 && p.b.col_stride == 1 && p.k >= kLeastSums && p.m * p.n * p.k > kLeastProducts &&
           p.n <= 2 * micro.lanes && p.m <= kMostPanels * micro.mr &&
           p.a.col_stride * static_cast<int64_t>(sizeof(T)) < kSetBytes;
  }

  ColumnsGemm(const GemmProblem& p, const MicroTable<T>& micro) : p_(p), micro_(micro) {
    panels_ = CeilDiv(p.m, micro.mr);
    const int64_t tasks = std::clamp<int64_t>(p.m * p.n * p.k / kTaskProducts, 1, panels_);
    panels_a_task_ = CeilDiv(panels_, tasks);
    down_ = CeilDiv(panels_, panels_a_task_);
    num_tasks_ = p.batch * down_;
    scratch_bytes_ = micro.mr * panels_a_task_ * p.n * static_cast<int64_t>(sizeof(T)) + kCarverSlack;
    tiles_ = StrCat("columns of A by rows of B where they lie, ", CeilDiv(p.m, panels_), "x", p.n, " in registers");
  }

  void Run(const GemmCall& call, int64_t begin, int64_t end, void* scratch) const override {
    for (; begin < end; ++begin) RunTask(call, begin / down_, begin % down_ * panels_a_task_, scratch);
  }

 private:
  // Panels go evenly: the last one is not much lower.
  int64_t FirstRow(int64_t panel) const { return p_.m * std::min(panel, panels_) / panels_; }

  void RunTask(const GemmCall& call, int64_t product, int64_t panel, void* scratch) const {
    const T* a = static_cast<const T*>(call.a) + p_.Offset(p_.a, product);
    const T* b = static_cast<const T*>(call.b) + p_.Offset(p_.b, product);
    const StoreTarget c{p_.c.type, static_cast<uint8_t*>(call.c) + p_.Offset(p_.c, product) * Bytes(p_.c.type),
                        p_.c.row_stride, p_.c.col_stride};
    const int64_t first = FirstRow(panel), rows = FirstRow(panel + panels_a_task_) - first;
    const int64_t direct = DirectStride<T>(c, first, rows), stride = direct >= 0 ? direct : p_.n;
    T* sums = direct >= 0 ? AddressIn<T>(c, first, 0) : Carver(scratch).Take<T>(rows * p_.n);
    for (int64_t k = 0; k < p_.k; k += kPieceElements) {
      const ProductRun run{k * p_.a.col_stride, k * p_.b.row_stride, std::min(kPieceElements, p_.k - k)};
      for (int64_t i = panel; i < std::min(panel + panels_a_task_, panels_); ++i) {
        const int64_t row = FirstRow(i), height = FirstRow(i + 1) - row;
        micro_.runs[height - 1][p_.n > micro_.lanes](&run, 1, a + row, p_.a.col_stride, b, p_.b.row_stride, p_.n,
                                                     sums + (row - first) * stride, stride, k > 0);
      }
    }
    if (direct < 0) StoreTile<T>(c, first, 0, rows, p_.n, sums, stride, false);
  }

  GemmProblem p_;
  const MicroTable<T>& micro_;
  int64_t panels_ = 1, panels_a_task_ = 1, down_ = 1;
};

}  // namespace

template <class T>
std::shared_ptr<const Gemm> MakeColumnsGemm(const GemmProblem& p, const GemmIsa& isa) {
  const MicroTable<T>& micro = MicroOf<T>(isa, p.a.type, p.b.type);
  if (!ColumnsGemm<T>::Suits(p, micro)) return nullptr;
  return std::make_shared<ColumnsGemm<T>>(p, micro);
}
template std::shared_ptr<const Gemm> MakeColumnsGemm<float>(const GemmProblem&, const GemmIsa&);
template std::shared_ptr<const Gemm> MakeColumnsGemm<double>(const GemmProblem&, const GemmIsa&);

}  // namespace strop::cpu
