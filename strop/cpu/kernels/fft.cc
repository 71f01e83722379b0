#include "strop/cpu/kernels/fft.h"

#include <atomic>
#include <new>
#include <optional>

#include "strop/cpu/kernels/fft_long.h"
#include "strop/cpu/kernels/fft_strip.h"

namespace strop::cpu {
namespace {

constexpr int64_t kStripLimit = 4096;       // longer lines do not fit the cache as strips
constexpr int64_t kLongWorthwhile = 512;    // few lines of at least this length leave no lanes empty as a matrix
constexpr int64_t kTaskElements = 1 << 13;  // strips are grouped to about this many elements a task

// Lines of one axis: line (o, i) has its element r at (o * length + r) * inner + i.
struct Lines {
  int64_t outer, inner;
  int64_t count() const { return outer * inner; }
};

enum class LineKind : uint8_t { kComplex, kRealForward, kRealInverse };

// The transform of all lines along one axis. R: float or double. `n` is the length of the real side.
template <class R>
class Axis {
 public:
  using L = Lane<R>;

  Axis(LineKind kind, bool inverse, int64_t n)
      : kind_(kind),
        inverse_(inverse),
        n_(n),
        halved_(kind != LineKind::kComplex && n % 2 == 0),
        length_(halved_ ? n / 2 : n),
        in_length_(kind == LineKind::kRealInverse ? n / 2 + 1 : n),
        out_length_(kind == LineKind::kRealForward ? n / 2 + 1 : n) {
    if (length_ <= kStripLimit && (IsSmooth(length_) || length_ <= kStripLimit / 2)) strip_.emplace(length_);
    if (length_ >= kLongWorthwhile) long_ = std::make_unique<LongFft<R>>(length_);
    if (!halved_) return;
    for (int64_t k = 0; k <= length_; ++k) {
      UnitRoot w(k, n_);
      roots_.push_back(static_cast<R>(w.re));
      roots_.push_back(static_cast<R>(w.im));
    }
  }

  int64_t in_length() const { return in_length_; }
  int64_t out_length() const { return out_length_; }

  // Every result is multiplied by `scale`. In place only if the lengths of input and output elements agree.
  bool Run(const Lines& lines, const R* in, R* out, R scale, ThreadPool* pool) const {
    const bool few = lines.count() < kLanes && long_;
    return few || !strip_ ? RunLong(lines, in, out, scale, pool) : RunStrips(lines, in, out, scale, pool);
  }

 private:
  static constexpr int64_t kLanes = L::kCount;

  int64_t in_reals() const { return kind_ == LineKind::kRealForward ? 1 : 2; }
  int64_t out_reals() const { return kind_ == LineKind::kRealInverse ? 1 : 2; }

  // Address and stride (in reals) of a line.
  struct Line {
    const R* in;
    R* out;
    int64_t in_stride, out_stride;
  };
  Line LineAt(const Lines& lines, int64_t index, const R* in, R* out) const {
    const int64_t o = index / lines.inner, i = index % lines.inner;
    return {in + (o * in_length_ * lines.inner + i) * in_reals(),
            out + (o * out_length_ * lines.inner + i) * out_reals(), lines.inner * in_reals(),
            lines.inner * out_reals()};
  }

  // Input entry k of the complex transform of length_, from a line: what the transform of this kind starts with.
  inline __attribute__((always_inline)) void Load(const Line& line, int64_t k, R& re, R& im) const {
    const R* p = line.in + k * line.in_stride;
    switch (kind_) {
      case LineKind::kComplex:
        re = inverse_ ? p[1] : p[0];
        im = inverse_ ? p[0] : p[1];
        return;
      case LineKind::kRealForward:
        if (halved_) {
          const R* pair = line.in + 2 * k * line.in_stride;
          re = pair[0];
          im = pair[line.in_stride];
        } else {
          re = p[0];
          im = 0;
        }
        return;
      case LineKind::kRealInverse: {
        R xr, xi;
        if (halved_) {
          LoadHalf(line, k, xr, xi);
          R yr, yi;
          LoadHalf(line, length_ - k, yr, yi);
          yi = -yi;
          // (x + y) + i w^-k (x - y)
          const R dr = xr - yr, di = xi - yi, wr = roots_[2 * k], wi = -roots_[2 * k + 1];
          re = xi + yi + (dr * wr - di * wi);  // exchanged: this is an inverse transform
          im = xr + yr - (dr * wi + di * wr);
        } else {
          LoadHalf(line, k <= n_ / 2 ? k : n_ - k, xr, xi);
          re = k <= n_ / 2 ? xi : -xi;
          im = xr;
        }
        return;
      }
    }
  }
  // Coefficient k of a half spectrum; those that belong to real numbers are taken as real.
  inline __attribute__((always_inline)) void LoadHalf(const Line& line, int64_t k, R& re, R& im) const {
    const R* p = line.in + k * line.in_stride;
    re = p[0];
    im = k == 0 || 2 * k == n_ ? R{0} : p[1];
  }

  // Output entry k, from the entries z_k and z_(length - k) of the complex transform.
  inline __attribute__((always_inline)) void Store(const Line& line, int64_t k, R scale, R zr, R zi, R cr, R ci) const {
    switch (kind_) {
      case LineKind::kComplex: {
        R* p = line.out + k * line.out_stride;
        p[0] = scale * (inverse_ ? zi : zr);
        p[1] = scale * (inverse_ ? zr : zi);
        return;
      }
      case LineKind::kRealForward: {
        R* p = line.out + k * line.out_stride;
        if (halved_) {
          // even = (z + conj c) / 2, odd = (z - conj c) / 2i; result even + w^k odd
          const R er = (zr + cr) / 2, ei = (zi - ci) / 2, dr = (zi + ci) / 2, di = (cr - zr) / 2;
          const R wr = roots_[2 * k], wi = roots_[2 * k + 1];
          p[0] = scale * (er + (dr * wr - di * wi));
          p[1] = scale * (ei + (dr * wi + di * wr));
        } else {
          p[0] = scale * zr;
          p[1] = k == 0 ? R{0} : scale * zi;
        }
        return;
      }
      case LineKind::kRealInverse:
        if (halved_) {
          R* pair = line.out + 2 * k * line.out_stride;
          pair[0] = scale * zi;
          pair[line.out_stride] = scale * zr;
        } else {
          line.out[k * line.out_stride] = scale * zi;
        }
        return;
    }
  }
  // Entries that Store is called for.
  int64_t stores() const { return kind_ == LineKind::kRealForward ? out_length_ : length_; }

  bool RunStrips(const Lines& lines, const R* in, R* out, R scale, ThreadPool* pool) const {
    const int64_t strips = (lines.count() + kLanes - 1) / kLanes, work = strip_->work_size();
    std::atomic<bool> ok{true};
    ForEachPiece(pool, strips, std::max<int64_t>(1, kTaskElements / (length_ * kLanes)),
                 [&](int64_t begin, int64_t end) {
                   Scratch<L> memory(2 * work);
                   if (!memory.get()) return ok.store(false, std::memory_order_relaxed);
                   for (int64_t strip = begin; strip < end; ++strip)
                     RunStrip(lines, strip, in, out, scale, memory.get(), work);
                 });
    return ok.load();
  }

  void RunStrip(const Lines& lines, int64_t strip, const R* in, R* out, R scale, L* memory, int64_t work) const {
    const int64_t first = strip * kLanes, used = std::min(kLanes, lines.count() - first);
    Line line[kLanes];
    for (int64_t v = 0; v < used; ++v) line[v] = LineAt(lines, first + v, in, out);
    for (int64_t k = 0; k < length_; ++k) {
      L lane = {};
      for (int64_t v = 0; v < used; ++v) {
        R re = 0, im = 0;
        Load(line[v], k, re, im);
        lane.re[v] = re;
        lane.im[v] = im;
      }
      memory[k] = lane;
    }
    const L* z = strip_->Run(memory, memory + work);
    for (int64_t k = 0; k < stores(); ++k) {
      const int64_t at = k == length_ ? 0 : k, mirror = k == 0 ? 0 : length_ - k;
      const L a = z[at], c = z[mirror];
      for (int64_t v = 0; v < used; ++v) Store(line[v], k, scale, a.re[v], a.im[v], c.re[v], c.im[v]);
    }
  }

  bool RunLong(const Lines& lines, const R* in, R* out, R scale, ThreadPool* pool) const {
    std::atomic<bool> ok{true};
    ForEachTask(pool, lines.count(), [&](int64_t index) {  // with one line, its own tasks are shared out
      Scratch<R> memory(2 * length_ + long_->work_size());
      R* z = memory.get();
      const Line line = LineAt(lines, index, in, out);
      if (z) {
        for (int64_t k = 0; k < length_; ++k) Load(line, k, z[2 * k], z[2 * k + 1]);
      }
      if (!z || !long_->Run(z, z + 2 * length_, pool)) return ok.store(false, std::memory_order_relaxed);
      for (int64_t k = 0; k < stores(); ++k) {
        const int64_t at = k == length_ ? 0 : k, mirror = k == 0 ? 0 : length_ - k;
        Store(line, k, scale, z[2 * at], z[2 * at + 1], z[2 * mirror], z[2 * mirror + 1]);
      }
    });
    return ok.load();
  }

  LineKind kind_;
  bool inverse_;
  int64_t n_;
  bool halved_;     // a real transform done as a complex one of half the length
  int64_t length_;  // of the complex transform
  int64_t in_length_, out_length_;
  std::optional<StripFft<R>> strip_;
  std::unique_ptr<LongFft<R>> long_;
  std::vector<R> roots_;  // exp(-2 pi i k / n), if halved
};

template <class R>
class Plan final : public FftPlan {
 public:
  Plan(FftKind kind, std::span<const int64_t> lengths) : kind_(kind), lengths_(lengths.begin(), lengths.end()) {
    const bool inverse = kind == FftKind::kIfft || kind == FftKind::kIrfft;
    for (int64_t n : lengths_) total_ *= n;
    if (total_ == 0) return;
    for (size_t i = 0; i + 1 < lengths_.size(); ++i) outer_axes_.emplace_back(LineKind::kComplex, inverse, lengths_[i]);
    LineKind last = kind == FftKind::kRfft    ? LineKind::kRealForward
                    : kind == FftKind::kIrfft ? LineKind::kRealInverse
                                              : LineKind::kComplex;
    last_axis_.emplace(last, inverse, lengths_.back());
  }

  Status Run(int64_t batch, const void* input, void* output, ThreadPool* pool) const override {
    if (batch < 0) return InvalidArgument("fft: negative batch");
    if (batch == 0 || total_ == 0) return OkStatus();
    const R* in = static_cast<const R*>(input);
    R* out = static_cast<R*>(output);
    const R scale =
        kind_ == FftKind::kIfft || kind_ == FftKind::kIrfft ? static_cast<R>(1.0 / static_cast<double>(total_)) : R{1};
    const Lines last{batch * (total_ / lengths_.back()), 1};
    bool ok;
    if (kind_ == FftKind::kIrfft && !outer_axes_.empty()) {
      // The outer dimensions first, while the spectrum is still complex, in a copy of it.
      Scratch<R> spectrum(2 * last.outer * last_axis_->in_length());
      ok = spectrum.get() && RunOuter(batch, last_axis_->in_length(), in, spectrum.get(), pool) &&
           last_axis_->Run(last, spectrum.get(), out, scale, pool);
    } else {
      ok = last_axis_->Run(last, in, out, scale, pool) && RunOuter(batch, last_axis_->out_length(), out, out, pool);
    }
    return ok ? OkStatus() : ResourceExhausted("fft: no memory for the work on lines of ", lengths_.back());
  }

 private:
  // All dimensions but the last, whose complex length is `inner`.
  bool RunOuter(int64_t batch, int64_t inner, const R* in, R* out, ThreadPool* pool) const {
    for (size_t i = outer_axes_.size(); i-- > 0;) {
      int64_t before = batch;
      for (size_t j = 0; j < i; ++j) before *= lengths_[j];
      if (!outer_axes_[i].Run({before, inner}, in, out, R{1}, pool)) return false;
      inner *= lengths_[i];
      in = out;
    }
    return true;
  }

  FftKind kind_;
  std::vector<int64_t> lengths_;
  int64_t total_ = 1;
  std::vector<Axis<R>> outer_axes_;
  std::optional<Axis<R>> last_axis_;
};

}  // namespace

Result<std::shared_ptr<const FftPlan>> FftPlan::Create(FftKind kind, std::span<const int64_t> lengths,
                                                       bool double_precision) {
  if (lengths.empty() || lengths.size() > 3) {
    return InvalidArgument("fft: ", lengths.size(), " dimensions; expected 1 to 3");
  }
  unsigned __int128 total = 1;
  for (int64_t n : lengths) {
    if (n < 0) return InvalidArgument("fft: length ", n, " is negative");
    if (n > int64_t{1} << 31) return ResourceExhausted("fft: length ", n, " is beyond 2^31");
    total *= static_cast<uint64_t>(n);
    if (total > uint64_t{1} << 45) return ResourceExhausted("fft: ", Join(lengths, "x"), " elements");
  }
  try {  // the tables are standard vectors
    if (double_precision) return std::shared_ptr<const FftPlan>(std::make_shared<Plan<double>>(kind, lengths));
    return std::shared_ptr<const FftPlan>(std::make_shared<Plan<float>>(kind, lengths));
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("fft: no memory for the tables of length ", Join(lengths, "x"));
  }
}

}  // namespace strop::cpu
