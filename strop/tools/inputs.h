// Where `strop run` gets a program's arguments from.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strop/ir/module.h"

namespace strop::tools {

struct InputSource {
  // .npy files in the order of the parameters' arrays, one .npz, or one folder with args.json (args_json.h).
  std::vector<std::string> paths;
  bool random = false;  // floats in [-1, 1), integers 0..7, pred 0 or 1
  uint64_t seed = 0;
};

// One literal per parameter of the entry computation. Arrays of tuple parameters count one by one, depth first. An .npz
// is matched by the parameters' names, or by arg0, arg1, ..., or else in its own order.
Result<std::vector<Literal>> MakeInputs(const Module& module, const InputSource& source);

// Such random numbers for all arrays of a value; InvalidArgument if a size is unknown.
Result<Literal> RandomValue(const Shape& shape, uint64_t seed);

// Whether WriteOutputs knows what to write there.
Status CheckOutputPath(const std::string& path);
// Writes the arrays of a result: out0.bin, ... (row-major) into a folder, or one .npz (out0, ...), or an .npy of a
// single array. NumPy's files know one other order, column-major: they are in it where `layout` is.
Status WriteOutputs(const Literal& result, const Shape& layout, const std::string& path);
// The arrays of a value, depth first; tokens are left out.
std::vector<Literal> ArraysOf(const Literal& value);

}  // namespace strop::tools
