// .npy and .npz: what NumPy writes is read, what is written is read back, lies are refused.
#include "strop/tools/npy.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "strop/base/mutator.h"
#include "strop/tools/args_json.h"

namespace strop::tools {
namespace {

std::string Npy(std::string_view header, std::string_view data) {
  std::string out = "\x93NUMPY";
  out += std::string_view("\x01\x00", 2);
  out.push_back(static_cast<char>(header.size()));
  out.push_back(0);
  out += header;
  out += data;
  return out;
}

TEST(Npy, RoundTripOfEveryType) {
  for (int i = 0; i < kNumElementTypes; ++i) {
    const ElementType t = static_cast<ElementType>(i);
    if (!IsArrayType(t) || Bits(t) < 2) continue;
    SCOPED_TRACE(Name(t));
    Literal x = *Literal::Zeros(Shape::Array(t, {2, 3}));
    for (int64_t k = 0; k < 6; ++k) x.SetDouble(k, static_cast<double>(k % 2));
    const Result<std::string> file = WriteNpy(x);
    ASSERT_TRUE(file.ok());
    const auto arrays = ReadNpy(*file);
    ASSERT_TRUE(arrays.ok()) << arrays.status().ToString();
    const auto back = ToLiteral((*arrays)[0], x.shape());
    ASSERT_TRUE(back.ok()) << back.status().ToString();
    EXPECT_EQ(*back, x);
  }
}

TEST(Npy, NpzRoundTrip) {
  const Literal a = Literal::Scalar<float>(1.5f);
  const std::vector<int32_t> values = {1, 2, 3};
  const Literal b = Literal::Vector<int32_t>(values);
  const auto arrays = ReadNpy(*WriteNpz({{"a", a}, {"second", b}}));
  ASSERT_TRUE(arrays.ok()) << arrays.status().ToString();
  ASSERT_EQ(arrays->size(), 2u);
  EXPECT_EQ((*arrays)[1].name, "second");
  EXPECT_EQ(*ToLiteral((*arrays)[0], a.shape()), a);
  EXPECT_EQ(*ToLiteral((*arrays)[1], b.shape()), b);
}

TEST(Npy, FortranOrder) {
  const auto arrays = ReadNpy(Npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", "abcdef"));
  ASSERT_TRUE(arrays.ok());
  EXPECT_EQ((*arrays)[0].bytes, "acebdf");
  const Literal x = *ToLiteral((*arrays)[0], Shape::Array(ElementType::U8, {2, 3}));
  const std::string file = *WriteNpy(x, /*column_major=*/true);
  EXPECT_EQ(file.substr(file.size() - 6), "abcdef");
  EXPECT_NE(file.find("'fortran_order': True"), std::string::npos);
  EXPECT_EQ(*ToLiteral((*ReadNpy(file))[0], x.shape()), x);
}

TEST(Npy, Refusals) {
  const std::string_view bad[] = {"", "PK", "\x93NUMPY", "PK\x05\x06 nothing of a directory"};
  for (std::string_view file : bad) EXPECT_EQ(ReadNpy(file).status().code(), StatusCode::kInvalidArgument) << file;
  const char* headers[] = {
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }",           // more than the file has
      "{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 4000000000,), }",  // overflows
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
      "{'descr': '<f4', 'shape': (1,), }",
      "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }",
      "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
      "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
  };
  for (const char* header : headers) EXPECT_FALSE(ReadNpy(Npy(header, "1234")).ok()) << header;
  const auto one = ReadNpy(Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "1234"));
  ASSERT_TRUE(one.ok());
  EXPECT_FALSE(ToLiteral((*one)[0], Shape::Array(ElementType::S32, {1})).ok());
  EXPECT_FALSE(ToLiteral((*one)[0], Shape::Array(ElementType::F32, {2})).ok());
}

TEST(Npy, TruncatedZipsAreRefused) {
  const std::string file = *WriteNpz({{"a", Literal::Scalar<float>(1.5f)}});
  for (size_t n = 0; n < file.size(); ++n) EXPECT_FALSE(ReadNpy(std::string_view(file).substr(0, n)).ok()) << n;
}

// Deflated as numpy.savez_compressed does it: a local header, the data, the directory.
std::string DeflatedNpz(std::string_view name, const std::string& member) {
  std::string packed(compressBound(member.size()) + 16, '\0');
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(member.data()));
  stream.avail_in = static_cast<uInt>(member.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  auto little = [](uint64_t v, int n) {
    std::string out;
    for (; n > 0; --n, v >>= 8) out.push_back(static_cast<char>(v));
    return out;
  };
  const std::string facts = little(20, 2) + little(0, 2) + little(8, 2) + little(0, 4) + little(0, 4) +
                            little(packed.size(), 4) + little(member.size(), 4) + little(name.size(), 2) + little(0, 2);
  std::string out = "PK\x03\x04" + facts + std::string(name) + packed;
  const size_t directory = out.size();
  out += "PK\x01\x02" + little(20, 2) + facts + little(0, 14) + std::string(name);
  const size_t size = out.size() - directory;
  return out + "PK\x05\x06" + little(0, 4) + little(1, 2) + little(1, 2) + little(size, 4) + little(directory, 4) +
         little(0, 2);
}

TEST(Npy, MutatedFiles) {
  const Literal x = *Literal::Zeros(Shape::Array(ElementType::F32, {3, 4}));
  const std::string npy = *WriteNpy(x, /*column_major=*/true);
  const std::string deflated = DeflatedNpz("x.npy", npy);
  ASSERT_EQ(*ToLiteral((*ReadNpy(deflated))[0], x.shape()), x);
  const std::string files[] = {npy, *WriteNpz({{"a", x}, {"b", Literal::Scalar<float>(1.5f)}}), deflated};
  Mutator mutate;
  int read = 0;
  for (int64_t round = mutate.Rounds(5000); round > 0; --round) {
    for (const std::string& good : files) {
      Result<std::vector<NpyArray>> arrays = ReadNpy(round % 2 ? mutate(good) : mutate.Overwrite(good));
      if (!arrays.ok()) continue;
      for (const NpyArray& array : *arrays) read += ToLiteral(array, x.shape()).ok();
    }
  }
  EXPECT_GT(read, 0);
}

TEST(ArgsJson, TellsWhatIsWrong) {
  const auto good = ParseArgsJson(R"([{"dtype": "bf16", "shape": [2, 3], "file": "arg0.bin"}])");
  ASSERT_TRUE(good.ok()) << good.status().ToString();
  EXPECT_EQ((*good)[0].type, ElementType::BF16);
  EXPECT_EQ((*good)[0].dims, (Int64Vector{2, 3}));
  EXPECT_EQ((*good)[0].file, "arg0.bin");
  const std::pair<std::string_view, std::string_view> kBad[] = {
      {"", "no JSON at byte"},
      {"[{\"dtype\": ", "no JSON at byte"},
      {"{}", "is not a list of arguments"},
      {"[3]", "argument 0: expected an object"},
      {R"([{"dtype": "f32", "shape": [2]}])", "argument 0: there is no file"},
      {R"([{"dtype": "f31", "shape": [2], "file": "x"}])", "argument 0: unknown dtype \"f31\""},
      {R"([{"dtype": "token", "shape": [2], "file": "x"}])", "argument 0: unknown dtype \"token\""},
      {R"([{"dtype": 3, "shape": [2], "file": "x"}])", "argument 0: dtype is not a string"},
      {R"([{"dtype": "f32", "shape": [-2], "file": "x"}])", "argument 0: shape has no size -2"},
      {R"([{"dtype": "f32", "shape": [2.5], "file": "x"}])", "argument 0: shape has no size 2.5"},
      {R"([{"dtype": "f32", "shape": [99999999999999999999], "file": "x"}])", "argument 0: shape has no size"},
      {R"([{"dtype": "f32", "shape": 2, "file": "x"}])", "argument 0: shape is not a list"},
      {R"([{"dtype": "f32", "shape": [2], "file": "x", "layout": 3}])", "argument 0: unknown key \"layout\""},
  };
  for (const auto& [text, words] : kBad) {
    const auto parsed = ParseArgsJson(text);
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_NE(parsed.status().message().find(words), std::string::npos) << parsed.status().ToString();
  }
  EXPECT_FALSE(ParseArgsJson(std::string(1000000, '[')).ok());  // deep nesting costs no stack
  Mutator mutate("[]{},:\"\\ -.0123456789etfu");
  for (int64_t round = mutate.Rounds(5000); round > 0; --round)
    static_cast<void>(ParseArgsJson(mutate(R"([{"dtype": "bf16", "shape": [2, 3], "file": "arg0.bin"}])")).ok());
}

}  // namespace
}  // namespace strop::tools
