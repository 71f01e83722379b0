// What leaves a program counts as a result, and what comes from outside is the same for both versions.
#include "strop/tools/same_results.h"

#include <gtest/gtest.h>

#include "strop/driver/load.h"

namespace strop::tools {
namespace {

std::unique_ptr<Module> Parse(std::string_view text) {
  Result<std::unique_ptr<Module>> module = LoadProgram(text, "test");
  EXPECT_TRUE(module.ok()) << module.status().ToString();
  return std::move(*module);
}

Status Compare(std::string_view before, std::string_view after) {
  return CheckSameResults(*Parse(before), *Parse(after), 0);
}

constexpr std::string_view kCall = R"(HloModule m
ENTRY main {
  x = f32[3] parameter(0)
  y = f32[3] custom-call(x), custom_call_target="unheard_of"
  ROOT z = f32[3] add(y, y)
})";

constexpr std::string_view kOtherCall = R"(HloModule m
ENTRY main {
  x = f32[3] parameter(0)
  n = f32[3] negate(x)
  y = f32[3] custom-call(n), custom_call_target="unheard_of"
  ROOT z = f32[3] add(y, y)
})";

TEST(SameResultsTest, UnknownCallsDependOnTheirOperands) {
  EXPECT_TRUE(Compare(kCall, kCall).ok());
  EXPECT_EQ(Compare(kCall, kOtherCall).code(), StatusCode::kFailedPrecondition);
}

constexpr std::string_view kFeeds = R"(HloModule m
ENTRY main {
  t = token[] after-all()
  in = (f32[2], token[]) infeed(t)
  x = f32[2] get-tuple-element(in), index=0
  u = token[] get-tuple-element(in), index=1
  out = token[] outfeed(x, u), outfeed_shape=f32[2]
  ROOT y = f32[2] add(x, x)
})";

constexpr std::string_view kNegatedFeed = R"(HloModule m
ENTRY main {
  t = token[] after-all()
  in = (f32[2], token[]) infeed(t)
  x = f32[2] get-tuple-element(in), index=0
  u = token[] get-tuple-element(in), index=1
  n = f32[2] negate(x)
  out = token[] outfeed(n, u), outfeed_shape=f32[2]
  ROOT y = f32[2] add(x, x)
})";

constexpr std::string_view kSilent = R"(HloModule m
ENTRY main {
  t = token[] after-all()
  in = (f32[2], token[]) infeed(t)
  x = f32[2] get-tuple-element(in), index=0
  ROOT y = f32[2] add(x, x)
})";

TEST(SameResultsTest, WhatIsSentOutCounts) {
  EXPECT_TRUE(Compare(kFeeds, kFeeds).ok());
  const Status negated = Compare(kFeeds, kNegatedFeed);
  EXPECT_NE(negated.ToString().find("departure 0 (outfeed) result 0 at {0} is"), std::string::npos)
      << negated.ToString();
  const Status silent = Compare(kFeeds, kSilent);
  EXPECT_NE(silent.ToString().find("there are 0 departures, were 1"), std::string::npos) << silent.ToString();
}

constexpr std::string_view kChannels = R"(HloModule m
ENTRY main {
  x = f32[2] parameter(0)
  t = token[] after-all()
  s = (f32[2], u32[], token[]) send(x, t), channel_id=3, is_host_transfer=true
  d = token[] send-done(s), channel_id=3, is_host_transfer=true
  r = (f32[2], u32[], token[]) recv(d), channel_id=4, is_host_transfer=true
  e = (f32[2], token[]) recv-done(r), channel_id=4, is_host_transfer=true
  y = f32[2] get-tuple-element(e), index=0
  low = f32[] constant(0)
  high = f32[] constant(1)
  z = f32[2] rng(low, high), distribution=rng_uniform
  ROOT w = f32[2] add(y, z)
})";

TEST(SameResultsTest, ChannelsAndRandomNumbersRepeat) { EXPECT_TRUE(Compare(kChannels, kChannels).ok()); }

}  // namespace
}  // namespace strop::tools
