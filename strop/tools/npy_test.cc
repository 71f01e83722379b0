// .npy and .npz: what NumPy writes is read, what is written is read back, lies are refused.
#include "strop/tools/npy.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace strop::tools
