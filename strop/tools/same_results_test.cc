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

// A call of two vectors, one without elements and integers; `made` are instructions before it.
std::string Mixes(std::string_view made, std::string_view operands) {
  return StrCat(R"(HloModule m
ENTRY main {
  x = f32[64] parameter(0)
  y = f32[64] parameter(1)
  n = s32[3] parameter(2)
  none = f32[0] constant({})
)",
                made, R"(
  c = (f32[5,64], f32[], bf16[64], c64[2], s32[2]) custom-call()",
                operands, R"(), custom_call_target="unheard_of"
  a = f32[5,64] get-tuple-element(c), index=0
  b = f32[] get-tuple-element(c), index=1
  d = bf16[64] get-tuple-element(c), index=2
  ROOT t = (f32[5,64], f32[], bf16[64]) tuple(a, b, d)
})");
}

TEST(SameResultsTest, UnknownCallsAreContinuous) {
  const std::string as_is = Mixes("", "x, y, none, n");
  // (x * 3) / 3 is x but for the last bits.
  const Status rounded = Compare(as_is, Mixes(R"(
  three = f32[] constant(3)
  threes = f32[64] broadcast(three), dimensions={}
  more = f32[64] multiply(x, threes)
  less = f32[64] divide(more, threes))",
                                              "less, y, none, n"));
  EXPECT_TRUE(rounded.ok()) << rounded.ToString();
}

TEST(SameResultsTest, WrongOperandsOfUnknownCallsAreFound) {
  const std::string as_is = Mixes("", "x, y, none, n");
  const std::pair<std::string_view, std::string_view> wrong[] = {
      {"", "y, x, none, n"},                                                 // swapped
      {"", "x, x, none, n"},                                                 // the wrong one
      {"", "x, y, n"},                                                       // left out
      {"", "x, none, n"},                                                    // and one with values
      {"z = f32[64] reverse(x), dimensions={0}", "z, y, none, n"},           // in another order
      {"k = f32[] constant(1.1)\nv = f32[64] broadcast(k), dimensions={}\n"  //
       "z = f32[64] multiply(x, v)",                                         //
       "z, y, none, n"},                                                     // a little larger
      {"k = f32[1] constant({0})\ni = s32[] constant(17)\n"                  //
       "z = f32[64] dynamic-update-slice(x, k, i)",                          //
       "z, y, none, n"},                                                     // one element of 64
      {"k = s32[] constant(1)\nv = s32[3] broadcast(k), dimensions={}\nz = s32[3] add(n, v)", "x, y, none, z"},
  };
  for (const auto& [made, operands] : wrong)
    EXPECT_EQ(Compare(as_is, Mixes(made, operands)).code(), StatusCode::kFailedPrecondition) << operands << "\n"
                                                                                             << made;
}

TEST(SameResultsTest, LargeOperandsAreSeenAsWell) {
  const auto call = [](std::string_view factor) {
    return StrCat(R"(HloModule m
ENTRY main {
  x = f32[4] parameter(0)
  k = f32[] constant()",
                  factor, R"()
  v = f32[4] broadcast(k), dimensions={}
  z = f32[4] multiply(x, v)
  ROOT c = f32[4] custom-call(z), custom_call_target="unheard_of"
})");
  };
  EXPECT_TRUE(Compare(call("1e30"), call("1e30")).ok());
  EXPECT_EQ(Compare(call("1e30"), call("2e30")).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Compare(call("1e30"), call("inf")).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Compare(call("inf"), call("nan")).code(), StatusCode::kFailedPrecondition);
}

// A shard of what another device would hold; a collective of a group that is not here.
std::string Shards(std::string_view shard_of) {
  return StrCat(R"(HloModule m
ENTRY main {
  x = f32[4] parameter(0)
  n = f32[4] negate(x)
  s = f32[2] custom-call()",
                shard_of, R"(), custom_call_target="SPMDFullToShardShape", sharding={manual}
  ROOT a = (f32[2], f32[2]) all-to-all(s, s), replica_groups={{0,1}}
})");
}

TEST(SameResultsTest, WhatNeedsOtherDevicesDependsOnTheOperands) {
  const Status same = Compare(Shards("x"), Shards("x"));
  EXPECT_TRUE(same.ok()) << same.ToString();
  EXPECT_EQ(Compare(Shards("x"), Shards("n")).code(), StatusCode::kFailedPrecondition);
}

// The memory of the result is bound as late as at the async-done.
constexpr std::string_view kBoundLate = R"(HloModule m
negated {
  x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x)
}
ENTRY main {
  x = f32[4] parameter(0)
  start = ((f32[4]), (), s32[]) async-start(x), calls=negated
  update = ((f32[4]), (), s32[]) async-update(start)
  ROOT done = f32[4] async-done(update)
})";
constexpr std::string_view kAtOnce = R"(HloModule m
ENTRY main {
  x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x)
})";

TEST(SameResultsTest, AsynchronousResultsThatAreBoundLate) {
  const Status same = Compare(kBoundLate, kAtOnce);
  EXPECT_TRUE(same.ok()) << same.ToString();
}

// Takes x from outside, sends out what `departure` makes of it.
std::string Feeds(std::string_view departure) {
  return StrCat(R"(HloModule m
ENTRY main {
  t = token[] after-all()
  in = (f32[2], token[]) infeed(t)
  x = f32[2] get-tuple-element(in), index=0
  u = token[] get-tuple-element(in), index=1
)",
                departure, R"(
  ROOT y = f32[2] add(x, x)
})");
}

TEST(SameResultsTest, WhatIsSentOutCounts) {
  const std::string feeds = Feeds("out = token[] outfeed(x, u), outfeed_shape=f32[2]");
  EXPECT_TRUE(Compare(feeds, feeds).ok());
  const Status negated =
      Compare(feeds, Feeds("n = f32[2] negate(x)\nout = token[] outfeed(n, u), outfeed_shape=f32[2]"));
  EXPECT_NE(negated.ToString().find("departure 0 (outfeed) result 0 at {0} is"), std::string::npos)
      << negated.ToString();
  const Status silent = Compare(feeds, Feeds(""));
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

// An odd number that never becomes zero by steps of two.
std::string Endless(std::string_view body) {
  return StrCat(R"(HloModule m
body {
  x = s32[] parameter(0)
  one = s32[] constant(1)
)",
                body, R"(
}
more {
  x = s32[] parameter(0)
  end = s32[] constant(0)
  ROOT p = pred[] compare(x, end), direction=NE
}
ENTRY main {
  two = s32[] constant(2)
  x = s32[] parameter(0)
  even = s32[] multiply(x, two)
  one = s32[] constant(1)
  odd = s32[] add(even, one)
  ROOT y = s32[] while(odd), condition=more, body=body
})");
}

TEST(SameResultsTest, LoopsThatDoNotEndAreComparedAfterTheSameTrips) {
  const std::string twice = "t = s32[] add(x, one)\nROOT y = s32[] add(t, one)";
  EXPECT_TRUE(Compare(Endless(twice), Endless("two = s32[] add(one, one)\nROOT y = s32[] add(x, two)")).ok());
  const Status other = Compare(Endless(twice), Endless("ROOT y = s32[] subtract(x, one)"));
  EXPECT_NE(other.ToString().find("makes more than"), std::string::npos) << other.ToString();
}

}  // namespace
}  // namespace strop::tools
