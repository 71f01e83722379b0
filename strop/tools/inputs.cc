#include "strop/tools/inputs.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>

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

// ---- args.json
// --------------------------------------------------------------------------------------------------------

struct RawInput {
  std::string dtype, file;
  Int64Vector dims;
};

// Just enough JSON for a list of flat objects of strings and number lists.
class ArgsReader {
 public:
  explicit ArgsReader(std::string_view text) : text_(text) {}

  Result<std::vector<RawInput>> Read() {
    std::vector<RawInput> inputs;
    STROP_TRY(Expect('['));
    while (!Try(']')) {
      if (!inputs.empty()) STROP_TRY(Expect(','));
      STROP_ASSIGN(RawInput input, Object());
      inputs.push_back(std::move(input));
    }
    return inputs;
  }

 private:
  Result<RawInput> Object() {
    RawInput input;
    STROP_TRY(Expect('{'));
    for (bool first = true; !Try('}'); first = false) {
      if (!first) STROP_TRY(Expect(','));
      STROP_ASSIGN(std::string key, String());
      STROP_TRY(Expect(':'));
      if (key == "shape") {
        STROP_TRY(Numbers(&input.dims));
      } else {
        STROP_ASSIGN(std::string value, String());
        if (key == "dtype")
          input.dtype = value;
        else if (key == "file")
          input.file = value;
        else
          return Error(StrCat("unknown key \"", key, "\""));
      }
    }
    return input;
  }
  Status Numbers(Int64Vector* out) {
    STROP_TRY(Expect('['));
    while (!Try(']')) {
      if (!out->empty()) STROP_TRY(Expect(','));
      Space();
      size_t end = at_;
      while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
      const auto number = ParseNumber<int64_t>(text_.substr(at_, end - at_));
      if (!number) return Error("expected a size");
      out->push_back(*number);
      at_ = end;
    }
    return OkStatus();
  }
  Result<std::string> String() {
    STROP_TRY(Expect('"'));
    const size_t end = text_.find('"', at_);
    if (end == std::string_view::npos) return Error("a string has no end");
    const auto value = CUnescape(text_.substr(at_, end - at_));
    if (!value) return Error("unknown escape");
    at_ = end + 1;
    return *value;
  }
  void Space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }
  bool Try(char c) {
    Space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Status Expect(char c) { return Try(c) ? OkStatus() : Error(StrCat("expected '", c, "'")); }
  Status Error(std::string_view what) const { return InvalidArgument("args.json: ", what, " at offset ", at_); }

  std::string_view text_;
  size_t at_ = 0;
};

Result<std::vector<NpyArray>> ReadFolder(const std::string& folder) {
  STROP_ASSIGN(std::string text, ReadFile(folder + "/args.json"));
  STROP_ASSIGN(std::vector<RawInput> inputs, ArgsReader(text).Read());
  std::vector<NpyArray> arrays;
  for (const RawInput& input : inputs) {
    const auto type = ParseDtypeName(input.dtype);
    if (!type || !IsArrayType(*type)) return InvalidArgument("args.json: unknown dtype \"", input.dtype, "\"");
    const Shape shape = Shape::Array(*type, input.dims);
    STROP_TRY(shape.Validate());
    STROP_ASSIGN(std::string bytes, ReadFile(folder + "/" + input.file));
    if (static_cast<int64_t>(bytes.size()) != shape.byte_size())
      return InvalidArgument(input.file, " has ", bytes.size(), " bytes, ", shape.ToString(), " takes ",
                             shape.byte_size());
    arrays.push_back({input.file, *type, Bytes(*type), input.dims, std::move(bytes)});
  }
  return arrays;
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
  STROP_ASSIGN(Literal out, Literal::Zeros(shape.WithoutLayout()));
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

Result<std::vector<NpyArray>> ReadArrays(const Module& module, const std::vector<std::string>& paths) {
  std::vector<NpyArray> arrays;
  for (const std::string& path : paths) {
    Result<std::vector<NpyArray>> more = std::vector<NpyArray>();
    if (IsFolder(path)) {
      more = ReadFolder(path);
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

Status WriteOutputs(const Literal& result, const std::string& path) {
  const std::vector<Literal> arrays = ArraysOf(result);
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
    STROP_ASSIGN(std::string file, WriteNpy(arrays[0]));
    return WriteFile(path, file);
  }
  if (!EndsWith(path, ".npz")) return InvalidArgument("--out takes a folder, an .npz or an .npy file, not ", path);
  std::vector<std::pair<std::string, Literal>> named;
  for (size_t i = 0; i < arrays.size(); ++i) named.emplace_back(StrCat("out", i), arrays[i]);
  STROP_ASSIGN(std::string file, WriteNpz(named));
  return WriteFile(path, file);
}

}  // namespace strop::tools
