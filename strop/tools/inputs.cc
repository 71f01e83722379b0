#include "strop/tools/inputs.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "strop/tools/args_json.h"
#include "strop/tools/command.h"
#include "strop/tools/npy.h"

namespace strop::tools {

namespace {

bool IsFolder(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}
bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// ---- arguments
// --------------------------------------------------------------------------------------------------------

// SplitMix64: a new number from a counter.
class RandomWords {
 public:
  explicit RandomWords(uint64_t seed) : state_(seed) {}
  uint32_t Next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<uint32_t>((z ^ (z >> 31)) >> 32);
  }
  double Signed() { return Next() / 2147483648.0 - 1; }  // [-1, 1)

 private:
  uint64_t state_;
};

Result<Literal> RandomLiteral(const Shape& shape, RandomWords& words) {
  for (int64_t d = 0; d < shape.rank(); ++d)
    if (shape.is_unbounded(d))
      return InvalidArgument("--random-inputs cannot choose the sizes of ", shape, ": give the arguments with --in");
  STROP_ASSIGN(Literal out, Literal::Zeros(shape.WithoutLayout()));
  if (shape.type() == ElementType::U8 || shape.type() == ElementType::S8) {  // scratch memory has a billion of them
    for (uint8_t& byte : out.mutable_bytes()) byte = words.Next() & 7;
    return out;
  }
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    const ElementType t = shape.type();
    if (IsComplex(t)) {
      const double re = words.Signed();
      out.SetComplex(i, {re, words.Signed()});
    } else if (IsFloat(t)) {
      out.SetDouble(i, words.Signed());
    } else {
      out.SetInt(i, words.Next() & (IsPred(t) || Bits(t) < 4 ? 1 : 7));
    }
  }
  return out;
}

void CountArrays(const Shape& shape, std::vector<Shape>* out) {
  for (const Shape& leaf : shape.Leaves())
    if (leaf.IsArray()) out->push_back(leaf);
}

// Builds a value of `shape`, taking its arrays from next().
template <class F>
Result<Literal> Build(const Shape& shape, F&& next) {
  if (shape.IsArray()) return next(shape);
  if (!shape.IsTuple()) return Literal::Token();
  std::vector<Literal> elements;
  for (const Shape& e : shape.elements()) {
    STROP_ASSIGN(Literal element, Build(e, next));
    elements.push_back(std::move(element));
  }
  return Literal::Tuple(std::move(elements));
}

// Puts the arrays of an .npz into the order of the parameters.
Status OrderByName(const Module& module, std::vector<NpyArray>* arrays) {
  std::map<std::string, size_t> by_name;  // owns its keys: the arrays move away below
  for (size_t i = 0; i < arrays->size(); ++i) by_name[(*arrays)[i].name] = i;
  std::vector<std::string> names, numbers;
  for (const Instruction* p : module.entry()->parameters()) {
    names.push_back(p->name());
    numbers.push_back(StrCat("arg", numbers.size()));
  }
  for (const std::vector<std::string>* wanted : {&names, &numbers}) {
    if (wanted->size() > arrays->size() ||
        !std::all_of(wanted->begin(), wanted->end(), [&](const auto& n) { return by_name.count(n); }))
      continue;
    std::vector<NpyArray> ordered;
    for (const std::string& name : *wanted) ordered.push_back(std::move((*arrays)[by_name[name]]));
    *arrays = std::move(ordered);
    return OkStatus();
  }
  return OkStatus();
}

// As {0,1,...}: what .npy calls fortran_order.
bool IsColumnMajor(const Shape& shape) {
  if (!shape.has_layout() || shape.rank() < 2) return false;
  int64_t next = 0;
  for (int64_t dim : shape.layout().minor_to_major)
    if (dim != next++) return false;
  return true;
}

Result<std::vector<NpyArray>> ReadArrays(const Module& module, const std::vector<std::string>& paths) {
  std::vector<NpyArray> arrays;
  for (const std::string& path : paths) {
    Result<std::vector<NpyArray>> more = std::vector<NpyArray>();
    if (IsFolder(path)) {
      more = ReadArgsFolder(path);
    } else {
      STROP_ASSIGN(std::string bytes, ReadFile(path));
      more = ReadNpy(bytes);
      if (!more.ok()) return std::move(more).status().Note(StrCat("while reading ", path));
      if (EndsWith(path, ".npz")) STROP_TRY(OrderByName(module, &*more));
    }
    STROP_TRY(more);
    for (NpyArray& array : *more) arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace

Result<std::vector<Literal>> MakeInputs(const Module& module, const InputSource& source) {
  std::vector<Shape> leaves;
  for (const Instruction* p : module.entry()->parameters()) CountArrays(p->shape(), &leaves);
  STROP_ASSIGN(std::vector<NpyArray> arrays, ReadArrays(module, source.paths));
  if (!source.random && arrays.size() != leaves.size()) {
    std::string hint = source.paths.empty() && !leaves.empty() ? "; give --in=FILE.npz or --random-inputs" : "";
    return InvalidArgument("the program takes ", leaves.size(), " arrays, got ", arrays.size(), hint);
  }
  if (arrays.size() > leaves.size())
    return InvalidArgument("the program takes ", leaves.size(), " arrays, got ", arrays.size());
  RandomWords words(source.seed);
  size_t next = 0;
  std::vector<Literal> arguments;
  for (const Instruction* p : module.entry()->parameters()) {
    STROP_ASSIGN(Literal argument, Build(p->shape(), [&](const Shape& shape) {
                   return next < arrays.size() ? ToLiteral(arrays[next++], shape) : RandomLiteral(shape, words);
                 }));
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

std::vector<Literal> ArraysOf(const Literal& value) {
  if (value.shape().IsArray()) return {value};
  std::vector<Literal> out;
  for (const Literal& element : value.elements())
    for (Literal& array : ArraysOf(element)) out.push_back(std::move(array));
  return out;
}

Result<Literal> RandomValue(const Shape& shape, uint64_t seed) {
  RandomWords words(seed);
  return Build(shape, [&](const Shape& array) { return RandomLiteral(array, words); });
}

Status CheckOutputPath(const std::string& path) {
  if (IsFolder(path) || EndsWith(path, ".npy") || EndsWith(path, ".npz")) return OkStatus();
  return InvalidArgument("--out takes a folder that is there, an .npz or an .npy file, not ", path);
}

Status WriteOutputs(const Literal& result, const Shape& layout, const std::string& path) {
  const std::vector<Literal> arrays = ArraysOf(result);
  std::vector<bool> column_major;
  for (const Shape& leaf : layout.Leaves())
    if (leaf.IsArray()) column_major.push_back(IsColumnMajor(leaf));
  if (column_major.size() != arrays.size()) column_major.assign(arrays.size(), false);
  if (IsFolder(path)) {
    for (size_t i = 0; i < arrays.size(); ++i) {
      const std::span<const uint8_t> bytes = arrays[i].bytes();
      STROP_TRY(
          WriteFile(StrCat(path, "/out", i, ".bin"), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    }
    return OkStatus();
  }
  if (EndsWith(path, ".npy")) {
    if (arrays.size() != 1)
      return InvalidArgument("the program has ", arrays.size(), " results; --out=FILE.npz takes them all");
    STROP_ASSIGN(std::string file, WriteNpy(arrays[0], column_major[0]));
    return WriteFile(path, file);
  }
  STROP_TRY(CheckOutputPath(path));
  std::vector<NamedArray> named;
  for (size_t i = 0; i < arrays.size(); ++i) named.push_back({StrCat("out", i), arrays[i], column_major[i]});
  STROP_ASSIGN(std::string file, WriteNpz(named));
  return WriteFile(path, file);
}

}  // namespace strop::tools
