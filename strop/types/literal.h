// Literal: a host value of any shape. Arrays are stored dense and row-major whatever layout the shape names (the layout
// stays in shape(), so that text and protos keep it); one byte per element for sub-byte types, pred as 0/1 bytes,
// complex as (real, imaginary). Copies share the bytes; mutable_bytes() detaches.
#pragma once
#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "strop/types/shape.h"

namespace strop {

class Literal {
 public:
  Literal() = default;  // invalid shape, no data
  // Zeros. ResourceExhausted if the memory cannot be had, InvalidArgument for unbounded shapes.
  static Result<Literal> Zeros(const Shape& shape);
  // From dense row-major bytes; InvalidArgument if the size does not match shape.byte_size().
  static Result<Literal> FromBytes(const Shape& shape, std::span<const uint8_t> bytes);
  static Literal Tuple(std::vector<Literal> elements);
  static Literal Token();
  // A shape whose values are not known (an elided constant); no element may be read. The verifier refuses such
  // constants.
  static Literal WithoutValues(Shape shape);
  bool has_values() const;

  // Scalars and vectors of native types: Literal::Scalar<float>(1), Literal::Vector<int32_t>({1,2}).
  template <class T>
  static Literal Scalar(T value);
  template <class T>
  static Literal Vector(std::span<const T> values);
  // A scalar of `type` nearest to `value` (integers truncate toward zero and wrap; complex gets a zero imaginary part).
  static Literal ScalarOf(ElementType type, double value);
  static Literal ScalarOfInt(ElementType type, int64_t value);

  const Shape& shape() const { return shape_; }
  ElementType type() const { return shape_.type(); }
  int64_t num_elements() const { return shape_.num_elements(); }

  std::span<const uint8_t> bytes() const;
  std::span<uint8_t> mutable_bytes();
  template <class T>
  std::span<const T> data() const {
    return {reinterpret_cast<const T*>(bytes().data()), bytes().size() / sizeof(T)};
  }
  template <class T>
  std::span<T> mutable_data() {
    std::span<uint8_t> b = mutable_bytes();
    return {reinterpret_cast<T*>(b.data()), b.size() / sizeof(T)};
  }

  // Element access in row-major order, converted; for printing, folding and tests. `linear` < num_elements().
  double GetDouble(int64_t linear) const;  // real part of complex; pred as 0/1
  double GetImag(int64_t linear) const;
  int64_t GetInt(int64_t linear) const;  // u64 above INT64_MAX keeps its bits
  std::complex<double> GetComplex(int64_t linear) const;
  void SetDouble(int64_t linear, double value);  // rounds to the element type
  void SetInt(int64_t linear, int64_t value);
  void SetComplex(int64_t linear, std::complex<double> value);

  // Tuples.
  const std::vector<Literal>& elements() const { return elements_; }
  std::vector<Literal>& mutable_elements() { return elements_; }
  const Literal& element(int64_t i) const { return elements_[i]; }

  // Replaces the shape by one with the same element type and element count (reshape, other layout).
  Literal WithShape(Shape shape) const;
  // Same shape (layouts ignored) and same bits.
  bool operator==(const Literal& other) const;
  bool IsAllEqualTo(double value) const;  // every element of an array; false for tuples
  bool AllElementsEqual() const;          // bitwise splat, at least one element
  uint64_t Hash() const;

  // HLO constant text without the shape, exactly as XLA writes it on one line: "{1, 2}", "{ { 1, 2 }, { 3, 4 } }", "(1,
  // 2)" for complex, "true" for a pred (but "{1, 0}" inside an array), "( 1, {2, 3} )" for a tuple.
  std::string ToString() const;
  void AppendText(std::string& out) const;

 private:
  Shape shape_;
  std::shared_ptr<std::vector<uint8_t>> bytes_;
  std::vector<Literal> elements_;
};

// Text of one element as XLA prints it in constants ("1", "0.1", "1e+10", "inf", "-nan", "nan(0x1)" for a NaN with a
// payload,
// "(re, im)", "true"); it reads back to the same bits.
std::string ElementToString(const Literal& literal, int64_t linear);

// The element type of a C++ type (bool is pred; uint16_t is u16, use bytes for f16 and bf16).
template <class T>
constexpr ElementType ElementTypeOf() {
  if constexpr (std::is_same_v<T, bool>)
    return ElementType::Pred;
  else if constexpr (std::is_same_v<T, int8_t>)
    return ElementType::S8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return ElementType::S16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return ElementType::S32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return ElementType::S64;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return ElementType::U8;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return ElementType::U16;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return ElementType::U32;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return ElementType::U64;
  else if constexpr (std::is_same_v<T, float>)
    return ElementType::F32;
  else if constexpr (std::is_same_v<T, double>)
    return ElementType::F64;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return ElementType::C64;
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return ElementType::C128;
  else
    return ElementType::Invalid;
}

template <class T>
Literal Literal::Scalar(T value) {
  static_assert(ElementTypeOf<T>() != ElementType::Invalid);
  return *FromBytes(Shape::Scalar(ElementTypeOf<T>()), {reinterpret_cast<const uint8_t*>(&value), sizeof value});
}
template <class T>
Literal Literal::Vector(std::span<const T> values) {
  static_assert(ElementTypeOf<T>() != ElementType::Invalid);
  return *FromBytes(Shape::Array(ElementTypeOf<T>(), {static_cast<int64_t>(values.size())}),
                    {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()});
}

}  // namespace strop
