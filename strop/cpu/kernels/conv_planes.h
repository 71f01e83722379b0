// Planes: copies of the features of an image, one after the other, in which all that a convolution multiplies with one
// weight lies side by side, padding included. Where the convolution goes in steps along a dimension, each remainder of
// the step is a plane of its own.
#pragma once
#include <cstdint>
#include <vector>

#include "strop/cpu/kernels/conv.h"

namespace strop::cpu {

class Planes {
 public:
  // Of a dimension of the image. What is read there is step * e + shift + origin for the elements e of a line and the
  // shifts of the taps; outside of [0, image) it is zero.
  struct Dim {
    int64_t image = 1, stride = 0;  // elements; their distance in memory
    int64_t origin = 0, step = 1;
    int64_t count = 1;            // elements of a line, without what shifts add
    std::vector<int64_t> shifts;  // not negative
  };

  Planes() = default;
  explicit Planes(std::vector<Dim> dims);

  int64_t size() const { return size_; }            // elements of a feature
  int64_t pitch(int d) const { return pitch_[d]; }  // distance of neighbours
  // Where the reads of the `n`-th shift of dimension d begin; offsets of all dimensions add up.
  int64_t ShiftOffset(int d, int64_t n) const;
  int64_t temporary(int64_t features) const;  // elements that Copy needs

  // Fills features * size() elements of `planes`. `data` are elements of `type`, feature 0 of image element 0 of each
  // dimension at `base`. The first dimension begins `first` steps later, and the first `rows` elements (without what
  // shifts add) of it are needed.
  template <class T>
  void Copy(const MicroTable<T>& micro, ElementType type, const void* data, int64_t base, int64_t feature_stride,
            int64_t features, int64_t first, int64_t rows, T* planes, T* temporary) const;

 private:
  struct Kept {
    std::vector<int64_t> remainders;  // of the step, in order
    int64_t extent = 1, most_shift = 0;
    int64_t distance = 0;  // between remainders
  };
  // Elements low to low + count of a row: each is step * e + begin of the image.
  struct Piece {
    int64_t begin, low, count;
  };
  // Adds where a line begins, in the image and in planes; false if it has no elements of the image.
  bool LineAt(int64_t number, int64_t first, int64_t rows, int64_t& from, int64_t& to) const;
  Piece PieceOf(size_t remainder, int64_t first, int64_t rows) const;
  template <class T>
  void CopyRows(const T* data, int64_t base, int64_t feature_stride, int64_t features, int64_t first, int64_t rows,
                T* planes) const;

  std::vector<Dim> dims_;
  std::vector<Kept> kept_;
  std::vector<int64_t> pitch_;
  int64_t size_ = 1;
  int64_t outer_ = 1;  // lines
};

}  // namespace strop::cpu
