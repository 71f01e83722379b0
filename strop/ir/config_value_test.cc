#include "strop/ir/config_value.h"

#include <gtest/gtest.h>

namespace strop {
namespace {

TEST(ConfigValue, ReadsJsonAndTheLooseForm) {
  const std::string_view json =
      R"({"kind":"__triton_gemm", "n":7, "triton_gemm_config":{"block_m":"64","list":[1,{"a":2}]}})";
  EXPECT_EQ(ConfigValue(json, "kind"), "__triton_gemm");
  EXPECT_EQ(ConfigValue(json, "n"), "7");
  EXPECT_EQ(ConfigValue(json, "triton_gemm_config.block_m"), "64");
  EXPECT_EQ(ConfigValue(json, "triton_gemm_config.list"), "[1,{\"a\":2}]");
  const std::string_view loose = "{scale=[0.00391965],zero_point=[-128],storage_type=si8,storage_min=-128}";
  EXPECT_EQ(ConfigValue(loose, "scale"), "[0.00391965]");
  EXPECT_EQ(ConfigValue(loose, "zero_point"), "[-128]");
  EXPECT_EQ(ConfigValue(loose, "storage_type"), "si8");
}

TEST(ConfigValue, HasNothingWhereThereIsNothing) {
  for (std::string_view config : {"", "{}", "not json", "{\"a\"", "{a=1", "{\"a\":\"open", "{a:{b:1}", "[1,2]"})
    EXPECT_FALSE(ConfigValue(config, "z.y").has_value()) << config;
  EXPECT_FALSE(ConfigValue("{a=1}", "a.b").has_value());
}

}  // namespace
}  // namespace strop
