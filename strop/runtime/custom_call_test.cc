#include "strop/runtime/custom_call.h"

#include <gtest/gtest.h>

#include <cstring>

#include "strop/runtime/executable.h"

struct XlaCustomCallStatus_;
extern "C" void XlaCustomCallStatusSetFailure(XlaCustomCallStatus_*, const char*, size_t);

namespace strop {
namespace {

void Negate(void* out, const void** in) { *static_cast<float*>(out) = -*static_cast<const float*>(in[0]); }
void Split(void* out, const void** in, XlaCustomCallStatus_* status) {
  void** outs = static_cast<void**>(out);
  float x = *static_cast<const float*>(in[0]);
  *static_cast<float*>(outs[0]) = x / 2;
  *static_cast<float*>(outs[1]) = x / 4;
}
void Fail(void*, const void**, const char* opaque, size_t size, XlaCustomCallStatus_* status) {
  XlaCustomCallStatusSetFailure(status, opaque, size);
}

class CustomCallTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(registry_.RegisterFunction("negate", reinterpret_cast<void*>(Negate)).ok());
    ASSERT_TRUE(registry_.RegisterFunction("split", reinterpret_cast<void*>(Split)).ok());
    ASSERT_TRUE(registry_.RegisterFunction("fail", reinterpret_cast<void*>(Fail)).ok());
  }
  Status Call(CustomCallSite site) {
    STROP_ASSIGN(std::shared_ptr<CustomCall> call, BindFunction(registry_, std::move(site)));
    void* in[] = {&in_};
    void* out[] = {&out_[0], &out_[1]};
    return call->Run({in, out, run_});
  }
  CustomCallRegistry registry_;
  RunArgs run_;
  float in_ = 8, out_[2] = {};
  std::vector<Shape> one_{Shape::Scalar(ElementType::F32)}, two_{one_[0], one_[0]};
};

TEST_F(CustomCallTest, OlderInterfaces) {
  ASSERT_TRUE(Call({.target = "negate", .operands = one_, .results = one_}).ok());
  EXPECT_EQ(out_[0], -8);
  ASSERT_TRUE(Call({.target = "split", .api = CustomCallApi::kStatus, .results = two_, .tuple_result = true}).ok());
  EXPECT_EQ(out_[1], 2);
  EXPECT_EQ(
      Call({.target = "fail", .api = CustomCallApi::kStatusOpaque, .opaque = "no luck", .results = one_}).message(),
      "custom call fail failed: no luck");
}

TEST_F(CustomCallTest, SinksNeedNobody) {
  std::shared_ptr<CustomCall> sink = BindBuiltin({.target = "dce_sink", .operands = one_, .tuple_result = true});
  ASSERT_NE(sink, nullptr);
  EXPECT_TRUE(sink->Run({{}, {}, run_}).ok());
  EXPECT_EQ(BindBuiltin({.target = "dce_sink", .operands = one_, .results = one_}), nullptr);
  EXPECT_EQ(BindBuiltin({.target = "negate", .results = one_}), nullptr);
}

TEST_F(CustomCallTest, Refusals) {
  EXPECT_EQ(Call({.target = "negat", .results = one_}).message(),
            "no custom call target \"negat\" is registered; did you mean \"negate\"?");
  EXPECT_EQ(Call({.target = "negate", .api = CustomCallApi::kTypedFfi}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Call({.target = "negate", .results = two_}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(registry_.Find("negate", CustomCallApi::kTypedFfi).status().message(),
            "no custom call target \"negate\" is registered as a typed FFI handler");
  EXPECT_TRUE(registry_.RegisterFunction("negate", reinterpret_cast<void*>(Negate)).ok());
  EXPECT_EQ(registry_.RegisterFunction("negate", reinterpret_cast<void*>(Split)).code(), StatusCode::kAlreadyExists);
  EXPECT_FALSE(registry_.RegisterFunction("null", nullptr).ok());
  EXPECT_FALSE(registry_.RegisterFfi("ffi", {}, 0).ok());
  EXPECT_EQ(registry_.Names(), (std::vector<std::string>{"fail", "negate", "split"}));
}

}  // namespace
}  // namespace strop
