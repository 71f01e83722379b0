// Convolution of few features a group, where a product of matrices would spend its time on laying out patches: all that
// is multiplied with one weight lies side by side in a planar copy of the image, so lanes run along the positions, rows
// of sums are output features, and each weight is read once for a whole line of positions. A task copies its part of an
// image, with the rows that the window reaches over, makes planes of the output in the cache, and stores them in the
// output's own order.
#include <algorithm>
#include <cstring>

#include "strop/cpu/kernels/accumulator_type.h"
#include "strop/cpu/kernels/conv_planes.h"
#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {
namespace {

constexpr int64_t kTaskBytes = 256 << 10;  // of planes
constexpr int64_t kTaskFlops = 4 << 20;    // tasks of more are cut further
constexpr int64_t kEnoughTasks = 32;
constexpr int64_t kSumTerms = 256;  // in registers before they are added to what was before
constexpr int64_t kPieceFeatures = 16;
constexpr int64_t kNeighbours = 64;          // features that are read together where they lie side by side
constexpr int64_t kSharedWeights = 1 << 12;  // of a block of groups: fewer are packed sooner than threads meet

// Without dimensions of one element, so that the first is one that can be cut.
ConvProblem WithoutPoints(ConvProblem p) {
  for (size_t d = p.spatial.size(); d-- > 0;) {
    const ConvSpatialDim& s = p.spatial[d];
    if (p.spatial.size() > 1 && s.input == 1 && s.kernel == 1 && s.output == 1 && s.pad_low == 0)
      p.spatial.erase(p.spatial.begin() + static_cast<ptrdiff_t>(d));
  }
  return p;
}

template <class T>
class PlanarConv final : public Conv {
 public:
  PlanarConv(const ConvProblem& p, const GemmIsa& isa) : p_(p), taps_(p), micro_(MicroOf<T>(isa)) {
    rank_ = static_cast<int>(p.spatial.size());
    groups_ = std::max(p.feature_groups, p.batch_groups);
    features_ = p.out_features / groups_;
    // Groups whose features share cache lines go together, and a few lines.
    if (p.feature_groups > 1 && (p.input_feature_stride == 1 || p.output_feature_stride == 1))
      together_ = std::clamp<int64_t>(kNeighbours / std::min(p.in_features, features_), 1, groups_);
    group_blocks_ = CeilDiv(groups_, together_);
    k_ = p.in_features * taps_.count;
    const int64_t out0 = p.spatial[0].output;
    rows_ = out0;
    Lay();
    // Of the bytes for a row and for what the window reaches over, as many rows as the cache holds.
    const auto bytes = [&] { return (together_ * p.in_features * planes_.size() + ResultSize()) * kSize; };
    while (rows_ > 1 && bytes() > kTaskBytes && rows_ > Reach()) rows_ = CeilDiv(rows_, 2), Lay();
    const auto tasks = [&] { return group_blocks_ * p.batch * CeilDiv(out0, rows_); };
    while (rows_ > std::max<int64_t>(1, 4 * Reach()) && tasks() < kEnoughTasks && TaskFlops() > kTaskFlops)
      rows_ = CeilDiv(rows_, 2), Lay();
    rows_ = CeilDiv(out0, CeilDiv(out0, rows_));
    Lay();
    chunks_ = CeilDiv(out0, rows_);
    num_tasks_ = tasks();
    // In the order in which the implicit product adds (conv_indirect.cc): taps, and features within. Of many features
    // in pieces, whose lines stay in the cache from tap to tap.
    for (int64_t piece = 0; piece < p.in_features; piece += kPieceFeatures)
      for (int64_t tap = 0; tap < taps_.count; ++tap)
        for (int64_t f = piece; f < std::min(p.in_features, piece + kPieceFeatures); ++f) terms_.push_back({tap, f});
    for (const Term& term : terms_) {
      int64_t at = term.in_feature * planes_.size();
      for (int d = 0; d < rank_; ++d) at += planes_.ShiftOffset(d, taps_.index[term.tap * rank_ + d]);
      offsets_.push_back(at);
    }
    fetches_ = rank_ == 2 && p.batch_groups == 1 && p.input_feature_stride == 1 && p.output_feature_stride == 1 &&
               p.input_type == ElementTypeOf<T>() && p.output_type == ElementTypeOf<T>() &&
               together_ * std::min(p.in_features, features_) >= kPieceFeatures;
    if (num_tasks_ > group_blocks_ && WeightElements() >= kSharedWeights) {
      panels_of_group_ = CeilDiv(features_, down_);
      prepare_tasks_ = groups_ * panels_of_group_;
      shared_bytes_ = groups_ * features_ * k_ * kSize;
    }
    scratch_bytes_ = 5 * kCarverSlack + (PlaneElements() + WeightElements() + ResultSize() + RowElements()) * kSize +
                     planes_.temporary(together_ * p.in_features) * kSize;
    tiles_ = StrCat("planes of ", together_ * p.in_features, " features, ", rows_, " of ", out0, " rows a task, ",
                    down_, "x", across_ * micro_.lanes, " in registers");
  }

  // Multiplications of garbage for one that counts, with all rows of an image in a task.
  double Waste() const {
    double outputs = 1;
    for (const ConvSpatialDim& d : p_.spatial) outputs *= static_cast<double>(d.output);
    return static_cast<double>(line_pitch_ * Lines()) * chunks_ / outputs;
  }

  // Of weights that all tasks share, a panel each.
  void Prepare(const ConvCall& call, int64_t begin, int64_t end) const override {
    for (; begin < end; ++begin) {
      const int64_t group = begin / panels_of_group_, first = begin % panels_of_group_ * down_;
      PackPanelOf(static_cast<const uint8_t*>(call.kernel), group, first,
                  static_cast<T*>(call.shared) + (group * features_ + first) * k_);
    }
  }

  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    Carver carver(scratch);
    T* planes = carver.Take<T>(PlaneElements());
    T* own = carver.Take<T>(prepare_tasks_ > 0 ? 0 : WeightElements());
    T* results = carver.Take<T>(ResultSize());
    T* row = carver.Take<T>(RowElements());
    T* temporary = carver.Take<T>(planes_.temporary(together_ * p_.in_features));
    int64_t packed = -1;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t chunk = task % chunks_, image = task / chunks_ % p_.batch, block = task / chunks_ / p_.batch;
      const int64_t group = block * together_, groups = std::min(together_, groups_ - group);
      const int64_t first = chunk * rows_, rows = std::min(rows_, p_.spatial[0].output - first);
      const bool shared = prepare_tasks_ > 0;
      if (!shared && packed != block) PackWeights(static_cast<const uint8_t*>(call.kernel), group, groups, own);
      packed = block;
      const T* weights = shared ? static_cast<const T*>(call.shared) + group * features_ * k_ : own;
      int64_t base = image * p_.input_batch_stride;
      base += p_.batch_groups > 1 ? group * p_.batch * p_.input_batch_stride
                                  : group * p_.in_features * p_.input_feature_stride;
      planes_.Copy(micro_, p_.input_type, call.input, base, p_.input_feature_stride, groups * p_.in_features, first,
                   rows, planes, temporary);
      // What is read behind the last plane meets no position.
      for (int64_t g = 0; g < groups; ++g)
        Multiply(planes + g * p_.in_features * planes_.size(), weights + g * features_ * k_,
                 results + g * features_ * ResultPitch(),
                 [&](int64_t part, int64_t parts) { Fetch(call, task, g * parts + part, groups * parts); });
      Store(results, groups * features_, first, rows, static_cast<uint8_t*>(call.output),
            image * p_.output_batch_stride + group * features_ * p_.output_feature_stride, row);
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(T);

  // The planes of a task of rows_ rows, and the lines in which positions are neighbours: as many dimensions together,
  // and as many vectors in registers, as take the least time.
  void Lay() {
    std::vector<Planes::Dim> dims;
    for (int d = 0; d < rank_; ++d) {
      const ConvSpatialDim& s = p_.spatial[d];
      Planes::Dim dim{s.input, s.input_stride, -s.pad_low, s.stride, d == 0 ? rows_ : s.output, {}};
      for (int64_t w = 0; w < s.kernel; ++w)
        dim.shifts.push_back((s.reversal ? s.kernel - 1 - w : w) * s.window_dilation);
      dims.push_back(std::move(dim));
    }
    planes_ = Planes(std::move(dims));
    // Of wide vectors the sums of as many features as there are rows fill the registers; of narrow ones there are
    // better shapes.
    const int64_t most = CeilDiv(features_, CeilDiv(features_, kPlanarRows));
    const int64_t fewest = HasNarrowVectors(micro_) ? 1 : most;
    int64_t least = INT64_MAX;
    for (int m = rank_ - 1; m >= 0; --m) {
      int64_t lines = 1, line = 1;
      for (int d = 0; d < rank_; ++d) {
        if (d < m)
          lines *= Rows(d);
        else
          line += (Rows(d) - 1) * planes_.pitch(d);
      }
      for (int64_t down = most; down >= fewest; --down)
        for (int64_t v = 1; v <= kPlanarVectors && micro_.planar[down - 1][v - 1]; ++v) {
          const int64_t cycles = features_ / down * Cycles(down, v) + Cycles(features_ % down, v);
          const int64_t cost = lines * CeilDiv(line, v * micro_.lanes) * cycles;
          if (cost > least) continue;
          least = cost, merged_ = m, line_ = line, down_ = down, across_ = v;
        }
    }
    line_pitch_ = RoundUp(line_, across_ * micro_.lanes);
  }
  // For a term: multiplications, or loads of which those of vectors mostly cross a border, or waiting for the sums.
  int64_t Cycles(int64_t down, int64_t vectors) const {
    const int64_t waits = HasNarrowVectors(micro_) ? 8 : 0;
    return down > 0 ? std::max({down * vectors, down + 2 * vectors, waits}) + 1 : 0;
  }
  int64_t Rows(int d) const { return d == 0 ? rows_ : p_.spatial[d].output; }
  int64_t Lines() const {
    int64_t lines = 1;
    for (int d = 0; d < merged_; ++d) lines *= Rows(d);
    return lines;
  }
  // Rows that the window reaches over.
  int64_t Reach() const {
    const ConvSpatialDim& s = p_.spatial[0];
    return CeilDiv((s.kernel - 1) * s.window_dilation, s.stride);
  }
  int64_t TaskFlops() const { return 2 * Lines() * line_ * k_ * features_ * together_; }
  int64_t PlaneElements() const {
    return together_ * p_.in_features * planes_.size() + (kPlanarVectors + 1) * micro_.lanes;
  }
  int64_t WeightElements() const { return together_ * features_ * k_; }
  int64_t ResultPitch() const { return Lines() * line_pitch_; }
  int64_t ResultSize() const { return together_ * features_ * ResultPitch(); }
  int64_t RowElements() const { return together_ * features_ * p_.spatial[rank_ - 1].output; }

  // A panel for each block of features: [term][feature].
  void PackWeights(const uint8_t* kernel, int64_t group, int64_t groups, T* to) const {
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t f = 0; f < features_; f += down_) PackPanelOf(kernel, group + g, f, to + (g * features_ + f) * k_);
  }
  void PackPanelOf(const uint8_t* kernel, int64_t group, int64_t first, T* to) const {
    const int64_t height = std::min(down_, features_ - first);
    const int64_t base = (group * features_ + first) * p_.kernel_out_stride;
    const bool own = p_.kernel_type == ElementTypeOf<T>();
    for (const Term& term : terms_) {
      int64_t from = base + taps_.kernel_offset[term.tap] + term.in_feature * p_.kernel_in_stride;
      for (int64_t r = 0; r < height; ++r, from += p_.kernel_out_stride)
        *to++ = own ? reinterpret_cast<const T*>(kernel)[from] : LoadAs<T>(p_.kernel_type, kernel, from);
    }
  }

  template <class Fetch>
  void Multiply(const T* planes, const T* weights, T* results, const Fetch& fetch) const {
    const int64_t lines = Lines(), pitch = ResultPitch(), width = across_ * micro_.lanes;
    const int64_t columns = CeilDiv(line_, width);
    for (int64_t line = 0; line < lines; ++line) {
      int64_t rest = line, at = 0;
      for (int d = merged_; d-- > 0; rest /= Rows(d)) at += rest % Rows(d) * planes_.pitch(d);
      for (int64_t j = 0; j < line_; j += width) {
        for (int64_t f = 0; f < features_; f += down_) {
          const int64_t height = std::min(down_, features_ - f);
          for (int64_t k = 0; k < k_; k += kSumTerms)
            micro_.planar[height - 1][across_ - 1](std::min(kSumTerms, k_ - k), weights + f * k_ + k * height,
                                                   planes + at + j, offsets_.data() + k,
                                                   results + f * pitch + line * line_pitch_ + j, pitch, k > 0);
        }
        fetch(line * columns + j / width, lines * columns);
      }
    }
  }

  // Asks for the `part`th of `parts` of what the next task copies and of where this one stores, while it multiplies:
  // pieces of pixels are too far apart for the processor to see them coming.
  void Fetch(const ConvCall& call, int64_t task, int64_t part, int64_t parts) const {
    if (!fetches_) return;
    const ConvSpatialDim &s = p_.spatial[0], &line = p_.spatial[1];
    const int64_t first = task % chunks_ * rows_, group = task / chunks_ / p_.batch * together_;
    FetchPixels<true>(static_cast<T*>(call.output) + task / chunks_ % p_.batch * p_.output_batch_stride +
                          group * features_ + first * s.output_stride,
                      s.output_stride, std::min(rows_, s.output - first), line.output_stride, line.output,
                      std::min(together_, groups_ - group) * features_, part, parts);
    if (++task < num_tasks_) FetchInput(call, task, part, parts);
  }
  void FetchInput(const ConvCall& call, int64_t task, int64_t part, int64_t parts) const {
    const ConvSpatialDim &s = p_.spatial[0], &line = p_.spatial[1];
    const int64_t first = task % chunks_ * rows_, group = task / chunks_ / p_.batch * together_;
    const int64_t last = std::min(first + rows_, s.output) - 1, reach = (s.kernel - 1) * s.window_dilation;
    const int64_t low = std::max<int64_t>(first * s.stride - s.pad_low, 0);
    const int64_t rows = std::min(last * s.stride - s.pad_low + reach + 1, s.input) - low;
    if (rows > 0)
      FetchPixels<false>(static_cast<const T*>(call.input) + task / chunks_ % p_.batch * p_.input_batch_stride +
                             group * p_.in_features + low * s.input_stride,
                         s.input_stride, rows, line.input_stride, line.input,
                         std::min(together_, groups_ - group) * p_.in_features, part, parts);
  }
  template <bool kWrite, class P>
  static void FetchPixels(P* from, int64_t row_stride, int64_t rows, int64_t stride, int64_t width, int64_t features,
                          int64_t part, int64_t parts) {
    const int64_t pixels = rows * width;
    for (int64_t n = pixels * part / parts; n < pixels * (part + 1) / parts; ++n)
      FetchRows<kWrite>(from + n / width * row_stride + n % width * stride, 0, 1, features);
  }

  // Where the `line`th line of positions of a task of `rows` rows from `first` on lies: in results, and in the output.
  void LineAt(int64_t line, int64_t first, int64_t rows, int64_t& from, int64_t& to) const {
    int64_t lines = 1;
    if (rank_ == 1) to += first * p_.spatial[0].output_stride;
    for (int d = rank_ - 1; d-- > 0;) {
      const int64_t n = d == 0 ? rows : p_.spatial[d].output, at = line % n;
      line /= n;
      to += (at + (d == 0 ? first : 0)) * p_.spatial[d].output_stride;
      if (d >= merged_) {
        from += at * planes_.pitch(d);
      } else {
        from += at * lines * line_pitch_;
        lines *= Rows(d);
      }
    }
  }

  // Rows [first, first + rows) of `features` features, from planes to the output.
  void Store(const T* results, int64_t features, int64_t first, int64_t rows, uint8_t* output, int64_t base,
             T* row) const {
    const ConvSpatialDim& last = p_.spatial[rank_ - 1];
    const int64_t pitch = ResultPitch(), width = rank_ == 1 ? rows : last.output;
    int64_t outer = rank_ == 1 ? 1 : rows;
    for (int d = 1; d < rank_ - 1; ++d) outer *= p_.spatial[d].output;
    if (last.output_stride == 1 && HoldsSums<T>(p_.output_type)) {
      StorePlanes(results, features, first, rows, outer, width, reinterpret_cast<T*>(output) + base);
      return;
    }
    const PackPanel<T> pack = PackerOf(micro_, ElementTypeOf<T>());
    for (int64_t line = 0; line < outer; ++line) {
      int64_t from = 0, to = base;
      LineAt(line, first, rows, from, to);
      uint8_t* data = output + to * Bytes(p_.output_type);
      if (p_.output_feature_stride == 1 && features > 1) {
        const bool dense = last.output_stride == features;
        // Whole vectors of features write nothing beyond them.
        if (dense && HoldsSums<T>(p_.output_type) && features > 8 && features % micro_.lanes == 0) {
          pack(results + from, pitch, 1, features, width, features, reinterpret_cast<T*>(data));
          continue;
        }
        pack(results + from, pitch, 1, features, width, features, row);
        StoreTile<T>({p_.output_type, data, last.output_stride, 1}, 0, 0, dense ? 1 : width,
                     dense ? width * features : features, row, features, false);
      } else {
        StoreTile<T>({p_.output_type, data, p_.output_feature_stride, last.output_stride}, 0, 0, features, width,
                     results + from, pitch, false);
      }
    }
  }

  // The same where positions are neighbours: a feature's lines together, which mostly are neighbours, too.
  void StorePlanes(const T* results, int64_t features, int64_t first, int64_t rows, int64_t outer, int64_t width,
                   T* output) const {
    constexpr int64_t kLines = 32;
    for (int64_t line = 0; line < outer; line += kLines) {
      const int64_t lines = std::min(kLines, outer - line);
      int64_t from[kLines] = {}, to[kLines] = {};
      for (int64_t l = 0; l < lines; ++l) LineAt(line + l, first, rows, from[l], to[l]);
      for (int64_t f = 0; f < features; ++f)
        for (int64_t l = 0; l < lines; ++l)
          std::memcpy(output + f * p_.output_feature_stride + to[l], results + f * ResultPitch() + from[l],
                      width * sizeof(T));
    }
  }

  ConvProblem p_;
  Taps taps_;
  const MicroTable<T>& micro_;
  Planes planes_;
  bool fetches_ = false;       // what is copied next, and where it is stored
  int rank_ = 0, merged_ = 0;  // dimensions from merged_ on make a line
  int64_t groups_ = 1, features_ = 1, together_ = 1, group_blocks_ = 1, k_ = 1;
  int64_t rows_ = 1, chunks_ = 1;  // of the first dimension: a task's; tasks
  int64_t line_ = 1, line_pitch_ = 0, down_ = 1, across_ = 1;
  int64_t panels_of_group_ = 1;  // of weights
  struct Term {
    int64_t tap, in_feature;
  };
  std::vector<Term> terms_;       // of a sum, in its order
  std::vector<int64_t> offsets_;  // of the terms, in planes
};

template <class T>
std::shared_ptr<const Conv> MakeOf(const ConvProblem& p, const GemmIsa& isa) {
  auto conv = std::make_shared<PlanarConv<T>>(WithoutPoints(p), isa);
  constexpr double kMostWaste = 2;
  if (conv->Waste() > kMostWaste) return nullptr;
  return conv;
}

// Products of bytes whose sums floats hold as they are: of few features, patches would mostly be copied.
bool ExactInF32(const ConvProblem& p, int64_t terms) {
  constexpr int64_t kExact = int64_t{1} << 24, kMostByte = 255;
  const auto is_byte = [](ElementType type) {
    return PackSourceOf(type) == PackSource::S8 || PackSourceOf(type) == PackSource::U8;
  };
  return is_byte(p.input_type) && is_byte(p.kernel_type) && terms * kMostByte * kMostByte <= kExact;
}

}  // namespace

std::shared_ptr<const Conv> MakePlanarConv(const ConvProblem& p, const GemmIsa& isa) {
  constexpr int64_t kFew = 16, kMostTerms = 1 << 14;
  if (p.spatial.empty() || p.batch == 0 || p.in_features == 0 || p.out_features == 0) return nullptr;
  const int64_t features = p.out_features / std::max(p.feature_groups, p.batch_groups);
  // Or many, where they are planes in memory already.
  const bool planes = p.spatial.back().input_stride == 1 && p.input_feature_stride > 1;
  if (features >= kFew && p.in_features >= kFew && !planes) return nullptr;
  int64_t terms = p.in_features;
  for (const ConvSpatialDim& d : p.spatial) {
    if (d.base_dilation != 1 || d.kernel == 0 || d.output == 0 || d.input == 0) return nullptr;
    terms *= d.kernel;
    if (terms > kMostTerms) return nullptr;
  }
  switch (GemmAccumulator(p.input_type, p.kernel_type, p.output_type)) {
    case ElementType::F32: return MakeOf<float>(p, isa);
    case ElementType::F64: return MakeOf<double>(p, isa);
    case ElementType::S32: return p.in_features < kFew && ExactInF32(p, terms) ? MakeOf<float>(p, isa) : nullptr;
    default: return nullptr;
  }
}

}  // namespace strop::cpu
