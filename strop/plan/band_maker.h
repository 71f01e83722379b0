// What forms bands: which kernels are in one, and the fusion instruction that takes their place. Of products and what
// follows them (band_former.cc), and of loops that read the same arrays (loop_bands.cc).
#pragma once
#include <functional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "strop/plan/band.h"
#include "strop/plan/plan.h"

namespace strop::plan_internal {

// ---- rows
constexpr int64_t kOutside = 0;  // width of what does not depend on the rows
constexpr int64_t kMixed = -1;   // of what is not computed row by row
constexpr int64_t kSummed = -2;  // of products that sum along the rows
using WidthOf = std::function<int64_t(const Instruction&)>;
// Elements a row of what `i` computes of operands of these widths, or kSummed.
int64_t RowWidth(const Instruction& i, int64_t rows, const WidthOf& of);
// The backend_config of a band of loops, by which it is told from fusions that came with the program.
inline constexpr std::string_view kLoopBand = "band of loops";
// Reshapes, which are no kernels.
bool PassesOn(Op op);
bool IsRowMajor(const Shape& shape);
// The most rows whose values fit, in blocks that no product's batch cuts; 0: too few of them.
int64_t ChooseBlock(const Band& band);

// Is what lies outside of a band of loops so large that reading it again costs? Such arrays are read row by row.
bool IsLargeOperand(const Instruction& i);
// The most rows that all of a band of loops, reshapes included, is computed by; 0: none.
int64_t RowsOfLoops(const std::vector<const Instruction*>& inside);

class BandMaker {
 public:
  BandMaker(Module& module, Computation& computation, const TargetInfo& target, std::vector<FusionLimit>* limits)
      : module_(module), computation_(computation), target_(target), limits_(limits) {}

 protected:
  void Number();
  size_t NumberOf(const Instruction& i) const { return number_[static_cast<size_t>(i.id())]; }
  bool IsMember(const Instruction* i) const { return band_.widths.contains(i); }
  bool Joins(const Instruction& i, const BandTask& task = {}) const {
    return !i.HasControlEdges() && static_cast<bool>(target_.joins_band(i, task));
  }
  // Is a member of the band needed for it? What has a lower number than the first of them is older than all. After many
  // steps the answer is yes: what is that far away stays outside, and large programs are planned in linear time.
  bool NeedsMember(const Instruction& i);
  void Add(const Instruction& i, int64_t width);
  void SortMembers();
  // Does somebody outside read it?
  bool IsSeen(const Instruction* i) const;
  // Reshapes that nobody in the band reads stay outside. What others read is a result, by itself or reshaped.
  void Trim();
  // Writes the fusion, with this backend_config.
  void Outline(std::string_view backend_config);

  Module& module_;
  Computation& computation_;
  const TargetInfo& target_;
  std::vector<FusionLimit>* limits_;
  std::vector<Instruction*> order_;
  std::unordered_set<const Instruction*> taken_;  // bands, and what gives their results
  Band band_;                                     // the one that is being made
  size_t first_ = 0;                              // the lowest number of its members

 private:
  std::vector<const Instruction*> InOrder(const std::function<bool(const Instruction&)>& which) const;
  bool StaysF32(const Instruction& member) const;
  static void ReadAsF32(Computation& fused, int64_t parameter);
  void TellLimits(const Instruction& fusion, const std::vector<Instruction*>& members);

  std::vector<size_t> number_;  // in that order, by id
  std::vector<int64_t> seen_;   // by number: the last search that met it
  int64_t search_ = 0;
  std::vector<const Instruction*> reshaped_results_;  // reshapes of results that others read
};

// The former of each kind, in this order.
void FormProductBands(Module& module, Computation& computation, const TargetInfo& target,
                      std::vector<FusionLimit>* limits);
void FormLoopBands(Module& module, Computation& computation, const TargetInfo& target,
                   std::vector<FusionLimit>* limits);

}  // namespace strop::plan_internal
