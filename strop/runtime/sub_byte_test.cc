#include "strop/runtime/sub_byte.h"

#include <gtest/gtest.h>

#include <vector>

namespace strop {
namespace {

TEST(SubByte, FirstElementInTheLowBits) {
  const int8_t s4[] = {1, -2, 7, -8, 3};
  uint8_t packed[3];
  PackSubByte(ElementType::S4, 5, s4, packed);
  EXPECT_EQ(std::vector<uint8_t>(packed, packed + 3), (std::vector<uint8_t>{0xe1, 0x87, 0x03}));
  int8_t back[5];
  UnpackSubByte(ElementType::S4, 5, packed, back);
  EXPECT_EQ(std::vector<int8_t>(back, back + 5), std::vector<int8_t>(s4, s4 + 5));
}

TEST(SubByte, UnsignedAndFloatsKeepTheirBits) {
  const uint8_t u2[] = {3, 0, 2, 1, 3};
  uint8_t packed[2], back[5];
  PackSubByte(ElementType::U2, 5, u2, packed);
  EXPECT_EQ(packed[0], 0x63);
  EXPECT_EQ(packed[1], 0x03);
  UnpackSubByte(ElementType::U2, 5, packed, back);
  EXPECT_EQ(std::vector<uint8_t>(back, back + 5), std::vector<uint8_t>(u2, u2 + 5));
  const uint8_t f4[] = {15, 8, 1};
  PackSubByte(ElementType::F4E2M1FN, 3, f4, packed);
  UnpackSubByte(ElementType::F4E2M1FN, 3, packed, back);
  EXPECT_EQ(std::vector<uint8_t>(back, back + 3), std::vector<uint8_t>(f4, f4 + 3));
}

}  // namespace
}  // namespace strop
