// Shapes, layouts, shardings, replica groups, metadata and constants: text in, the same text out; and what is refused.
#include <gtest/gtest.h>

#include <cmath>

#include "strop/base/cursor.h"
#include "strop/base/mutator.h"
#include "strop/types/literal.h"
#include "strop/types/sharding.h"

namespace strop {
namespace {

std::string ErrorOf(const Status& status) {
  return status.ok() ? "no error" : status.message() + " | " + status.location();
}

TEST(Cursor, SkipsBlanksAndComments) {
  Cursor at(" /* a */ x-1.y // rest\n = \"q\\n\" ");
  EXPECT_EQ(at.Word(), "x-1.y");
  EXPECT_TRUE(at.Consume('='));
  EXPECT_EQ(*at.String(), "q\n");
  EXPECT_TRUE(at.AtEnd());
}

TEST(Cursor, SaysWhereAndWhat) {
  Cursor at("a\nb  c", "f.hlo");
  at.Word();
  at.Word();
  Status status = at.Expect('=');
  EXPECT_EQ(ErrorOf(status), "expected '=', found 'c' | f.hlo:2:4");
  EXPECT_NE(status.ToString().find("b  c\n     ^"), std::string::npos) << status.ToString();
  EXPECT_EQ(ErrorOf(Cursor("/* never closed").Expected("a word")), "expected a word, found '/' | line 1, column 1");
}

TEST(ShapeText, ComesOutAsItWentIn) {
  for (const char* text :
       {"s8[1024,512]{1,0}", "bf16[]", "f32[32,64]{0,1}", "s32[4]{0}", "f32[2,<=3]", "f32[?,784]",
        "(f32[2]{0}, (s32[], token[]), pred[])", "()", "opaque[]", "b(f32[2,4]{1,0})", "f32[8,128]{1,0:T(8,128)}",
        "f32[8,128]{1,0:T(8,128)(2,1)L(4)E(4)S(5)}", "f32[2]{0:T(*,8)}", "f32[2]{0:#(u32)*(u8)S(1)M(64)}",
        "f32[4,4]{1,0:SC(0:1,2)(1:3)}", "f32[]{:T(256)}", "f8e4m3b11fnuz[3]{0}", "c128[1]{0}", "u2[7]{0:E(2)}"}) {
    Result<Shape> shape = ParseShape(text);
    ASSERT_TRUE(shape.ok()) << text << ": " << shape.status().ToString();
    EXPECT_EQ(shape->ToStringWithLayout(), text);
    EXPECT_EQ(*ParseShape(shape->ToStringWithLayout()), *shape);
  }
  EXPECT_EQ(ParseShape("( f32 [ 2, /*second*/ 3 ] , /*index=1*/ pred[] )")->ToString(), "(f32[2,3], pred[])");
}

TEST(ShapeText, LongTuplesCountTheirElements) {
  EXPECT_EQ(ParseShape("(u8[],u8[],u8[],u8[],u8[],u8[])")->ToString(),
            "(u8[], u8[], u8[], u8[], u8[], /*index=5*/u8[])");
}

TEST(ShapeText, TakesOnlyWhatBelongsToIt) {
  std::string_view text = "f32[3] {\n  x = ...";  // the body of a computation, not a layout
  EXPECT_EQ(ConsumeShape(text)->ToString(), "f32[3]");
  EXPECT_EQ(text, " {\n  x = ...");
}

TEST(ShapeText, IsRefused) {
  EXPECT_EQ(ErrorOf(ParseShape("f33[2]").status()), "'f33' is no element type | line 1, column 1");
  EXPECT_EQ(ErrorOf(ParseShape("f32[2").status()), "expected ']', found the end of the text | line 1, column 6");
  EXPECT_EQ(ErrorOf(ParseShape("f32[-1]").status()), "dimension size -1 is negative | line 1, column 5");
  EXPECT_EQ(ErrorOf(ParseShape("token[2]").status()), "a token has no dimensions | line 1, column 1");
  EXPECT_FALSE(ParseShape("f32[2,2]{1,1}").ok());
  EXPECT_FALSE(ParseShape("f32[2]{0:Q(1)}").ok());
  EXPECT_FALSE(ParseShape("f32[99999999999999999999]").ok());
  EXPECT_FALSE(ParseShape("f32[4294967296,4294967296,4294967296]").ok());
  EXPECT_FALSE(ParseShape("f32[2] f32[2]").ok());
  EXPECT_FALSE(ParseShape("").ok());
  EXPECT_FALSE(ParseShape(std::string(100000, '(')).ok());
}

TEST(ShardingText, ComesOutAsItWentIn) {
  for (const char* text :
       {"{replicated}", "{maximal device=3}", "{manual}", "{unknown}", "{unreduced}", "{devices=[2,2]0,1,2,3}",
        "{devices=[2,2]<=[4]}", "{devices=[4,2]<=[2,4]T(1,0)}", "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
        "{devices=[2,1,2,2]<=[8] last_tile_dims={replicated, manual}}", "{replicated shard_as 2}",
        "{devices=[2]<=[2] shard_like 7}", "{}", "{{replicated}, {maximal device=0}}",
        "{{manual}, {manual}, {manual}, {manual}, {manual}, /*index=5*/{manual}}",
        "{replicated metadata={op_name=\"a\" source_line=3}}", "{manual metadata={{op_name=\"a\"}, {op_type=\"b\"}}}",
        "{mesh['x'=2,'y'=4], [{'x'}, {}], replicated={'y'}}", "{maximal_mesh[device_id=2]}"}) {
    Result<Sharding> sharding = ParseSharding(text);
    ASSERT_TRUE(sharding.ok()) << text << ": " << sharding.status().ToString();
    EXPECT_EQ(sharding->ToString(/*with_metadata=*/true), text);
    EXPECT_EQ(*ParseSharding(sharding->ToString(true)), *sharding);
  }
}

TEST(ShardingText, ExpandsIota) {
  EXPECT_EQ(ParseSharding("{devices=[4,2]<=[2,4]T(1,0)}")->TileDevices(),
            (std::vector<int64_t>{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(*ExpandIota({2, 3, 2}, {2, 0, 1}), (std::vector<int64_t>{0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11}));
}

TEST(ShardingText, IsRefused) {
  for (const char* text :
       {"{", "{devices=[2]0}", "{devices=[2,2]<=[5]}", "{devices=[2,2]<=[4]T(0,0)}", "{maximal}",
        "{replicated device=1}", "{devices=[99999999999,99999999999]<=[99999999999,99999999999]}", "{devices=[0]<=[0]}",
        "{nonsense}", "{mesh['x'=2", "{replicated} x", "{devices=[2]<=[2] last_tile_dims={manual, manual}}",
        "{replicated metadata={op_nam=\"x\"}}"})
    EXPECT_FALSE(ParseSharding(text).ok()) << text;
  EXPECT_NE(ParseSharding("{replicated metadata={op_nam=\"x\"}}").status().message().find("did you mean op_name"),
            std::string::npos);
}

TEST(ReplicaGroupsText, ExpandsEveryForm) {
  using Groups = std::vector<std::vector<int64_t>>;
  const std::pair<const char*, Groups> kCases[] = {
      {"{}", {}},
      {"{{0,1},{2,3}}", {{0, 1}, {2, 3}}},
      {"[2,4]<=[8]", {{0, 1, 2, 3}, {4, 5, 6, 7}}},
      {"[4,2]<=[2,4]T(1,0)", {{0, 4}, {1, 5}, {2, 6}, {3, 7}}},
      {"mesh['a'=2,'b'=2] {'b'}", {{0, 1}, {2, 3}}},
      {"mesh['a'=2,'b'=2] {'a'}", {{0, 2}, {1, 3}}},
      {"mesh['a'=2,'b'=2] {'b','a'}", {{0, 2, 1, 3}}},
      {"mesh['a'=8] {'a':(2)2}", {{0, 2}, {1, 3}, {4, 6}, {5, 7}}},
      {"mesh['a'=8] {'a':(1)2,'a':(4)2}", {{0, 1, 4, 5}, {2, 3, 6, 7}}},
      {"mesh['a'=2,'b'=2], device_ids=(3,2,1,0) {'b'}", {{3, 2}, {1, 0}}},
      {"mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}", {{0, 2}, {1, 3}}},
  };
  for (const auto& [text, expected] : kCases) {
    std::string_view rest = text;
    Result<ReplicaGroups> groups = ConsumeReplicaGroups(rest);
    ASSERT_TRUE(groups.ok()) << text << ": " << groups.status().ToString();
    EXPECT_EQ(groups->ToString(), text);
    EXPECT_EQ(*groups->Expand(), expected) << text;
  }
  for (std::string_view text : {"[2,4]<=[7]", "[8]<=[8]", "mesh['a'=2] {'c'}", "mesh['a'=6] {'a':(4)2}",
                                "mesh['a'=2] {'a','a'}", "mesh['a'=99999999999] {'a'}", "{{0,1}", "7"})
    EXPECT_FALSE(ConsumeReplicaGroups(text).ok()) << text;
}

TEST(LiteralText, IsXlas) {
  auto text = [](std::vector<float> v, Int64Vector dims) {
    return Literal::Vector<float>(v).WithShape(Shape::Array(ElementType::F32, dims)).ToString();
  };
  EXPECT_EQ(text({1}, {1}), "{1}");
  EXPECT_EQ(text({1, 2, 3, 4}, {2, 2}), "{ { 1, 2 }, { 3, 4 } }");
  EXPECT_EQ(text({1, 2}, {2, 1}), "{ {1}, {2} }");
  EXPECT_EQ(text({1, 2}, {1, 2, 1, 1}), "{ { /*i0=0*/ { /*i1=0*/ {1} }, { /*i1=1*/ {2} } } }");
  EXPECT_EQ(text({}, {0, 2}), "{  }");
  EXPECT_EQ(text({}, {2, 0}), "{ {}, {} }");
  EXPECT_EQ(text({0.1f, 123456.789f, 4.5e-12f, -0.0f}, {4}), "{0.1, 123456.789, 4.5e-12, -0}");
  EXPECT_EQ(Literal::ScalarOf(ElementType::F16, 0.1).ToString(), "0.099976");
  EXPECT_EQ(Literal::ScalarOf(ElementType::F8E4M3FN, 0.1).ToString(), "0.102");
  EXPECT_EQ(Literal::Scalar(1e-320).ToString(), "9.99988867182683e-321");
  EXPECT_EQ(Literal::Scalar(true).ToString(), "true");
  const float signalling = std::bit_cast<float>(0x7f800001u);
  EXPECT_EQ(Literal::Scalar(signalling).ToString(), "nan(0x1)");
  EXPECT_EQ(Literal::Scalar(-std::nanf("")).ToString(), "-nan");
  EXPECT_EQ(Literal::Tuple({Literal::Scalar(1), Literal::Scalar(2.5f)}).ToString(), "( 1, 2.5 )");
}

// Whatever of shapes, shardings and replica groups is read comes out as something that reads as the same.
TEST(ValueText, SurvivesMutation) {
  Mutator mutate("{}()[],=<>'\"-?:*_ T0129abefst");
  const std::string_view shapes[] = {"f32[32,64]{0,1}", "(bf16[], s32[4]{0}, (pred[2,<=3], token[]))",
                                     "f32[8,128]{1,0:T(8,128)(2,1)S(5)E(4)}", "f32[?,784]", "b(c64[2])"};
  const std::string_view shardings[] = {
      "{devices=[4,2]<=[2,4]T(1,0)}", "{devices=[2,1,2,2]<=[8] last_tile_dims={replicated, manual}}",
      "{{replicated}, {maximal device=0}}", "{replicated metadata={op_name=\"a\" source_line=3}}",
      "{mesh['x'=2,'y'=4], [{'x'}, {}], replicated={'y'}}"};
  const std::string_view groups[] = {"{{0,1},{2,3}}", "[4,2]<=[2,4]T(1,0)", "mesh['a'=8] {'a':(1)2,'a':(4)2}",
                                     "mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}"};
  int read = 0;
  for (int64_t round = mutate.Rounds(5000); round > 0; --round) {
    for (std::string_view good : shapes) {
      Result<Shape> shape = ParseShape(mutate(good));
      if (!shape.ok()) continue;
      ++read;
      const std::string text = shape->ToStringWithLayout();
      Result<Shape> again = ParseShape(text);
      ASSERT_TRUE(again.ok()) << text;
      EXPECT_EQ(again->ToStringWithLayout(), text);
      static_cast<void>(shape->byte_size());
    }
    for (std::string_view good : shardings) {
      Result<Sharding> sharding = ParseSharding(mutate(good));
      if (!sharding.ok()) continue;
      ++read;
      const std::string text = sharding->ToString(true);
      Result<Sharding> again = ParseSharding(text);
      ASSERT_TRUE(again.ok()) << text;
      EXPECT_EQ(again->ToString(true), text);
    }
    for (std::string_view good : groups) {
      const std::string bad = mutate(good);
      std::string_view rest = bad;
      Result<ReplicaGroups> parsed = ConsumeReplicaGroups(rest);
      if (!parsed.ok()) continue;
      ++read;
      static_cast<void>(parsed->Expand().ok());
    }
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace strop
