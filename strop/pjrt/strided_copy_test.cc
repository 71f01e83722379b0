// Copies between strides against an index at a time.
#include "strop/pjrt/strided_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace strop::pjrt {
namespace {

// Every order of the dimensions in the source, dense or with gaps, into row-major order.
void ExpectCopied(const Shape& shape, int64_t gap) {
  const int64_t element = Bytes(shape.type()), rank = shape.rank();
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  const Int64Vector to_strides = DenseStrides(shape, Layout::RowMajor(rank).minor_to_major);
  do {
    Int64Vector from_strides(static_cast<size_t>(rank), 0);
    int64_t bytes = element;
    for (int64_t d : order) {
      from_strides[static_cast<size_t>(d)] = bytes;
      bytes = bytes * shape.dim(d) + gap * element;
    }
    std::vector<uint8_t> from(static_cast<size_t>(bytes)), to(static_cast<size_t>(shape.byte_size()), 0), wanted = to;
    uint32_t state = 1;
    for (uint8_t& byte : from) byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
    for (int64_t n = 0; n < shape.num_elements(); ++n) {
      int64_t rest = n, at = 0;
      for (int64_t d = rank; d-- > 0; rest /= shape.dim(d))
        at += rest % shape.dim(d) * from_strides[static_cast<size_t>(d)];
      std::memcpy(&wanted[static_cast<size_t>(n * element)], &from[static_cast<size_t>(at)],
                  static_cast<size_t>(element));
    }
    StridedCopy(shape, from.data(), from_strides, to.data(), to_strides, ThreadPool::Default());
    EXPECT_EQ(to, wanted) << shape.ToString() << ", minor to major " << Join(order, ",") << ", gap " << gap;
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(StridedCopy, TurnsArraysOfEachWidth) {
  for (const ElementType type :
       {ElementType::U8, ElementType::BF16, ElementType::F32, ElementType::F64, ElementType::C128}) {
    for (const int64_t gap : {0, 3}) {
      ExpectCopied(Shape::Array(type, {48, 64}), gap);
      ExpectCopied(Shape::Array(type, {37, 83}), gap);
      ExpectCopied(Shape::Array(type, {3, 35, 70}), gap);
      ExpectCopied(Shape::Array(type, {2, 17, 3, 33}), gap);
    }
  }
  ExpectCopied(Shape::Array(ElementType::BF16, {1024, 1100}), 0);  // on several threads
  ExpectCopied(Shape::Array(ElementType::U8, {5, 700, 801}), 0);
}

TEST(StridedCopy, ReadsBackwards) {
  const Shape shape = Shape::Array(ElementType::F32, {20, 30});
  std::vector<float> from(600), to(600);
  std::iota(from.begin(), from.end(), 0.0f);
  const int64_t backwards[] = {4, -80}, dense[] = {120, 4};
  StridedCopy(shape, from.data() + 29 * 20, backwards, to.data(), dense, ThreadPool::Default());
  for (int64_t i = 0; i < 20; ++i)
    for (int64_t j = 0; j < 30; ++j)
      EXPECT_EQ(to[static_cast<size_t>(i * 30 + j)], static_cast<float>((29 - j) * 20 + i));
}

}  // namespace
}  // namespace strop::pjrt
