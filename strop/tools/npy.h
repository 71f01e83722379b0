// NumPy's files: .npy (one array) and .npz (a zip of them), as numpy.save and numpy.savez write them. Types that NumPy
// gets from ml_dtypes (bfloat16, float8_*, int4, ...) are stored there as raw bytes ("|V1", "<V2"); their type comes
// from whoever reads.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "strop/types/literal.h"

namespace strop::tools {

struct NpyArray {
  std::string name;                         // of the member of the .npz, without ".npy"
  ElementType type = ElementType::Invalid;  // Invalid: raw bytes
  int64_t width = 0;                        // bytes of an element
  Int64Vector dims;
  std::string bytes;  // row-major, little endian
};

// One array of a .npy file, or all of a .npz file in its order; the bytes tell which. Sizes are checked against what is
// there before anything is allocated.
Result<std::vector<NpyArray>> ReadNpy(std::string_view file);
// As a literal of a parameter's shape: same dimensions (any size where it is unknown), same type or raw bytes of the
// same width.
Result<Literal> ToLiteral(const NpyArray& array, const Shape& parameter);

struct NamedArray {
  std::string name;
  Literal value;
  bool column_major = false;
};

// Array literals only. The values are the same in either order of the bytes; the header says which one it is.
Result<std::string> WriteNpy(const Literal& literal, bool column_major = false);
Result<std::string> WriteNpz(const std::vector<NamedArray>& arrays);

// The NumPy or ml_dtypes name ("float32", "bfloat16", "int4"), or HLO's; nullopt if it is neither.
std::optional<ElementType> ParseDtypeName(std::string_view name);

}  // namespace strop::tools
