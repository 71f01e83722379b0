#include "strop/cpu/kernels/gemm_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "strop/base/host_limits.h"
#include "strop/cpu/kernels/gemm_zeros.h"

namespace strop::cpu {

int64_t EvenTasks(int64_t tasks, int64_t products, int64_t most) {
  constexpr int kMostProcessors = 8;
  static const int64_t processors = std::min(UsableCpus(), kMostProcessors);
  return tasks > 1 && products % processors != 0 ? std::min(RoundUp(tasks, processors), most) : tasks;
}

BlockShape ChooseBlocks(int64_t m, int64_t n, int64_t k, int mr, int nr, int bytes, int64_t batch) {
  // A block of A (mb x kb) and of B (kb x nb) share the L2 cache (1 MB a core on current servers) with room to spare.
  BlockShape block;
  const int64_t kb_max = 1024 / bytes;  // 256 for f32
  block.kb = std::max<int64_t>(1, CeilDiv(k, CeilDiv(std::max<int64_t>(k, 1), kb_max)));
  if (k > block.kb) block.kb = RoundUp(block.kb, 4);  // whole units
  int64_t mb = 144, nb = 512;
  // Enough tasks for many threads, none below about a million multiply-adds: splitting costs packing.
  auto tasks = [&] { return batch * CeilDiv(m, mb) * CeilDiv(n, nb); };
  while (tasks() < 16 && nb > 2 * nr && nb * std::min(m, mb) * k > (int64_t{1} << 21))
    nb = std::max<int64_t>(nb / 2, nr);
  while (tasks() < 16 && mb > 2 * mr && std::min(n, nb) * mb * k > (int64_t{1} << 21))
    mb = std::max<int64_t>(mb / 2, mr);
  // Even blocks, whole tiles.
  block.mb = RoundUp(CeilDiv(m, CeilDiv(m, mb)), mr);
  block.nb = RoundUp(CeilDiv(n, CeilDiv(n, nb)), nr);
  return block;
}

int64_t BlockScratchBytes(const BlockShape& block, int mr, int nr, int bytes) {
  const int64_t panels = mr * block.kb + RoundUp(block.nb, nr) * block.kb;
  const int64_t sums = block.mb * block.nb;  // used if C cannot hold partial sums
  const int64_t notes = CeilDiv(block.nb, nr) * static_cast<int64_t>(sizeof(PanelNote));
  return (panels + sums + mr * nr) * bytes + notes + 5 * kCarverSlack;
}

template <class T>
void RunBlock(const MicroTable<T>& micro, const BlockShape& block, int64_t m0, int64_t rows, int64_t n0, int64_t cols,
              int64_t k, const PackFn<T>& pack_a, const PackFn<T>& pack_b, const StoreTarget& c, void* scratch) {
  const int64_t mr = micro.mr, nr = micro.nr, group = micro.group;
  Carver carver(scratch);
  T* a_panel = carver.Take<T>(mr * block.kb);
  T* b_panels = carver.Take<T>(RoundUp(block.nb, nr) * block.kb);
  T* tile = carver.Take<T>(mr * nr);
  T* sums = carver.Take<T>(block.mb * block.nb);
  PanelNote* notes = carver.Take<PanelNote>(CeilDiv(block.nb, nr));  // of B's panels
  const bool finds_zeros = FindsZeros(micro), keep_sums = k > block.kb && !HoldsSums<T>(c.type);
  if (k == 0) {
    std::memset(tile, 0, mr * nr * sizeof(T));
    for (int64_t i = 0; i < rows; i += mr)
      for (int64_t j = 0; j < cols; j += nr)
        StoreTile<T>(c, m0 + i, n0 + j, std::min(mr, rows - i), std::min(nr, cols - j), tile, nr, false);
    return;
  }
  const EvenPanels panels(rows, mr);
  // As narrow as what is left: the halves of tiles do not depend on their height.
  const auto width_at = [&](int64_t j) { return TileKernelsOf<T>(micro, 1, std::min(nr, cols - j)).width; };
  for (int64_t k0 = 0; k0 < k; k0 += block.kb) {
    const int64_t kc = std::min(block.kb, k - k0), units = CeilDiv(kc, group);
    const int64_t piece = block.pack_rows > 0 ? block.pack_rows : kc;
    for (int64_t p = 0; p < kc; p += piece)
      for (int64_t j = 0; j < cols; j += nr) {
        const int64_t width = width_at(j);
        pack_b(n0 + j, std::min(width, cols - j), k0 + p, std::min(piece, kc - p), width,
               b_panels + j * units + p / group * width);
      }
    for (int64_t j = 0; j < cols && finds_zeros; j += nr)
      notes[j / nr] = {ExtentOfPanel(b_panels + j * units, units, width_at(j))};
    for (int64_t n = 0; n < panels.count; ++n) {
      const int64_t i = panels.First(n), height = panels.First(n + 1) - i;
      pack_a(m0 + i, height, k0, kc, height, a_panel);
      PanelNote note;
      if (finds_zeros) note.extent = ExtentOfPanel(a_panel, units, height);
      const int64_t direct = DirectStride<T>(c, m0 + i, height);
      for (int64_t j = 0; j < cols; j += nr) {
        const T* b = b_panels + j * units;
        const int64_t some = std::min(nr, cols - j);
        const TileKernels<T> tile_kernels = TileKernelsOf<T>(micro, height, some);
        Extent needed{0, static_cast<int32_t>(units)};
        if (finds_zeros)
          needed = NeededOf<T>(micro, {a_panel, units, height, &note}, {b, units, tile_kernels.width, notes + j / nr});
        const auto multiply = [&](T* to, int64_t stride, bool accumulate) {
          if (needed.size() <= 0 && accumulate) return;
          const int64_t from = needed.size() > 0 ? needed.first : 0;  // zeros have to be written
          tile_kernels.kernel(std::max<int64_t>(needed.size(), 1), a_panel + from * height,
                              b + from * tile_kernels.width, tile_kernels.width, to, stride, accumulate);
        };
        if (keep_sums) {
          multiply(sums + i * block.nb + j, block.nb, k0 > 0);
        } else if (direct >= 0 && some == tile_kernels.width) {
          multiply(AddressIn<T>(c, m0 + i, n0 + j), direct, k0 > 0);
        } else {
          multiply(tile, nr, false);
          StoreTile<T>(c, m0 + i, n0 + j, height, some, tile, nr, k0 > 0);
        }
      }
    }
  }
  if (keep_sums) StoreTile<T>(c, m0, n0, rows, cols, sums, block.nb, false);
}

namespace {
constexpr int64_t kMostRepaired = 32;  // rows, and columns, at a time
constexpr int64_t kRepairUnits = 256;  // along k
BlockShape RepairBlock(const MicroTable<float>& f32, int64_t k) {
  return {RoundUp(kMostRepaired, f32.mr), RoundUp(kMostRepaired, f32.nr), std::min(kRepairUnits, k), 8};
}
}  // namespace

int64_t RepairBytes(const MicroTable<float>& f32, int64_t k) {
  return BlockScratchBytes(RepairBlock(f32, k), f32.mr, f32.nr, sizeof(float)) +
         kMostRepaired * kMostRepaired * static_cast<int64_t>(sizeof(float)) + kCarverSlack;
}

void RepairSums(const MicroTable<float>& f32, int64_t rows, int64_t cols, int64_t k, const PackFn<float>& pack_a,
                const PackFn<float>& pack_b, float* sums, int64_t stride, void* memory) {
  Carver carver(memory);
  float* const exact = carver.Take<float>(kMostRepaired * kMostRepaired);
  const StoreTarget target{ElementType::F32, reinterpret_cast<uint8_t*>(exact), kMostRepaired, 1};
  RunBlock<float>(f32, RepairBlock(f32, k), 0, rows, 0, cols, k, pack_a, pack_b, target, carver.Take<uint8_t>(0));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < cols; ++j)
      if (!std::isfinite(sums[r * stride + j])) sums[r * stride + j] = exact[r * kMostRepaired + j];
}

PackSource PackSourceOf(ElementType type) {
  switch (type) {
    case ElementType::F32: return PackSource::F32;
    case ElementType::F64: return PackSource::F64;
    case ElementType::BF16: return PackSource::BF16;
    case ElementType::F16: return PackSource::F16;
    case ElementType::S2:
    case ElementType::S4:
    case ElementType::S8: return PackSource::S8;
    case ElementType::U2:
    case ElementType::U4:
    case ElementType::U8: return PackSource::U8;
    case ElementType::S16: return PackSource::S16;
    case ElementType::S32:
    case ElementType::U32: return PackSource::S32;
    case ElementType::S64:
    case ElementType::U64: return PackSource::S64;
    default: return PackSource::None;
  }
}

template void RunBlock<float>(const MicroTable<float>&, const BlockShape&, int64_t, int64_t, int64_t, int64_t, int64_t,
                              const PackFn<float>&, const PackFn<float>&, const StoreTarget&, void*);
template void RunBlock<double>(const MicroTable<double>&, const BlockShape&, int64_t, int64_t, int64_t, int64_t,
                               int64_t, const PackFn<double>&, const PackFn<double>&, const StoreTarget&, void*);
template void RunBlock<int32_t>(const MicroTable<int32_t>&, const BlockShape&, int64_t, int64_t, int64_t, int64_t,
                                int64_t, const PackFn<int32_t>&, const PackFn<int32_t>&, const StoreTarget&, void*);
template void RunBlock<int64_t>(const MicroTable<int64_t>&, const BlockShape&, int64_t, int64_t, int64_t, int64_t,
                                int64_t, const PackFn<int64_t>&, const PackFn<int64_t>&, const StoreTarget&, void*);

}  // namespace strop::cpu
