#include "strop/ir/verifier.h"

#include <gtest/gtest.h>

#include <cmath>

#include "strop/ir/builder.h"
#include "strop/ir/printer.h"

namespace strop {
namespace {

const Shape kVector = Shape::Array(ElementType::F32, {4});

// entry: tuple(add(p0, p1), p0)
struct Small {
  Module module{"small"};
  Computation* entry = module.AddComputation("main");
  Instruction *p0, *p1, *sum, *root;
  Small() {
    module.set_entry(entry);
    Builder b(entry);
    p0 = b.Parameter(0, kVector, "p0");
    p1 = b.Parameter(1, kVector, "p1");
    sum = b.Make(Op::Add, {p0, p1});
    root = b.Make(Op::Tuple, {sum, p0});
    EXPECT_TRUE(b.Finish().ok());
  }
  std::string Verify() const { return VerifyModule(module).ToString(); }
};

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << "said: " << (text)

TEST(Verifier, AcceptsAndNamesTheViolation) {
  Small m;
  EXPECT_EQ(m.Verify(), "Ok");
  m.sum->set_shape(Shape::Array(ElementType::F32, {5}));
  EXPECT_SAYS(m.Verify(), "add: the result shape is f32[5], but operands and attributes give f32[4] [at %add]");
}

TEST(Verifier, UserLineIsNamed) {
  Small m;
  OpMetadata where;
  where.source_file = "train.py";
  where.source_line = 12;
  m.sum->set_metadata(where);
  m.sum->set_shape(Shape::Array(ElementType::F32, {5}));
  EXPECT_SAYS(m.Verify(), "[at train.py:12]");
}

// No text says such a number, and none of the formats that do was meant to.
TEST(Verifier, ParametersThatAreNoNumbers) {
  Small m;
  AccuracyAttrs attrs;
  attrs.result_accuracy = {ResultAccuracy::Mode::Tolerance, 0.5, std::nan(""), 1};
  Instruction* sine = m.entry->Add(Op::Sin, kVector, {m.sum}, attrs, {}, m.root);
  EXPECT_SAYS(m.Verify(), "a tolerance of result_accuracy is no number");
  attrs.result_accuracy.rtol = 0;
  sine->set_attrs(attrs);
  EXPECT_EQ(m.Verify(), "Ok");
}

TEST(Verifier, OrderAndCycles) {
  Small m;
  m.entry->MoveBefore(m.sum, m.p0);
  EXPECT_SAYS(m.Verify(), "out of order");
  m.entry->SortTopologically();
  EXPECT_EQ(m.Verify(), "Ok");
  Instruction* negate = m.entry->Add(Op::Negate, kVector, {m.sum}, NoAttrs{}, {}, m.root);
  m.sum->SetOperand(0, negate);
  EXPECT_SAYS(m.Verify(), "cycle");
}

TEST(Verifier, ParametersAndRoot) {
  Small m;
  m.entry->AddParameter(1, kVector, "again");
  EXPECT_SAYS(m.Verify(), "another parameter 1");
  Module empty("empty");
  EXPECT_SAYS(VerifyModule(empty).ToString(), "no entry");
  empty.set_entry(empty.AddComputation("main"));
  EXPECT_SAYS(VerifyModule(empty).ToString(), "has no root");
  Module gap("gap");
  gap.set_entry(gap.AddComputation("main"));
  gap.entry()->set_root(gap.entry()->AddParameter(2, kVector));
  EXPECT_SAYS(VerifyModule(gap).ToString(), "parameter 0 is missing");
}

TEST(Verifier, CallCycle) {
  Module m("m");
  Computation* a = m.AddComputation("a");
  Computation* b = m.AddComputation("b");
  for (Computation* c : {a, b}) {
    Instruction* p = c->AddParameter(0, kVector);
    Instruction* call = c->Add(Op::Call, kVector, {p}, CallAttrs{});
    call->set_called({c == a ? b : a});
    c->set_root(call);
  }
  m.set_entry(a);
  EXPECT_SAYS(VerifyModule(m).ToString(), "calls itself");
}

TEST(Verifier, CalleeOfAnotherModule) {
  Small other, m;
  Instruction* call = m.entry->Add(Op::Call, other.root->shape(), {m.p0, m.p1}, CallAttrs{}, {}, m.root);
  call->set_called({other.entry});
  EXPECT_SAYS(m.Verify(), "is not in the module");
}

TEST(Verifier, AliasingAndDonation) {
  Small m;
  ModuleConfig& config = m.module.config();
  config.input_output_alias = {{{0}, 0, {}, false}};
  EXPECT_EQ(m.Verify(), "Ok");
  config.input_output_alias = {{{7}, 0, {}, false}};
  EXPECT_SAYS(m.Verify(), "has no part {7}");
  config.input_output_alias = {{{0}, 9, {}, false}};
  EXPECT_SAYS(m.Verify(), "there is no parameter (9, {})");
  config.input_output_alias = {{{0}, 0, {}, false}, {{1}, 0, {}, false}};
  EXPECT_SAYS(m.Verify(), "aliased twice");
  config.input_output_alias.clear();
  config.buffer_donors = {{3, {}}};
  EXPECT_SAYS(m.Verify(), "buffer_donor: there is no parameter");
  config.buffer_donors.clear();
  config.has_entry_layout = true;
  EXPECT_SAYS(m.Verify(), "entry_computation_layout has 0 parameters");
}

TEST(Verifier, StagePromises) {
  Small m;
  m.module.set_stage(Stage::LaidOut);
  EXPECT_EQ(m.Verify(), "Ok");
  const Shape matrix = Shape::Array(ElementType::F32, {2, 2}, Layout{{0, 1}});
  m.entry->Add(Op::Iota, matrix, {}, IotaAttrs{0}, {}, m.root);
  EXPECT_SAYS(m.Verify(), "is not row-major at stage laid-out: f32[2,2]{0,1}");
  m.entry->Remove(m.root->prev());
  m.module.set_stage(Stage::Scheduled);
  EXPECT_SAYS(m.Verify(), "not marked as scheduled");
}

TEST(Builder, FirstErrorSticks) {
  Module m("m");
  Builder b(m.AddComputation("main"));
  Instruction* x = b.Parameter(0, kVector);
  Instruction* y = b.Parameter(1, Shape::Array(ElementType::F32, {5}));
  Instruction* bad = b.Make(Op::Add, {x, y});
  EXPECT_EQ(bad, nullptr);
  EXPECT_EQ(b.Make(Op::Negate, {bad}), nullptr);
  EXPECT_EQ(b.Broadcast(bad, {4}, {0}), nullptr);
  EXPECT_EQ(b.Reshape(bad, {4}), nullptr);
  EXPECT_EQ(b.Dot(bad, x, {}, ElementType::F32), nullptr);
  EXPECT_SAYS(b.Finish().ToString(), "(add_c1)");
}

// A program made by hand prints as the one that a front end wrote.
TEST(Builder, MakesThePrintedProgram) {
  Module m("scaled_product");
  m.set_entry(m.AddComputation("main.9"));
  Builder b(m.entry());
  Instruction* x = b.Parameter(0, Shape::Array(ElementType::S8, {16, 32}), "x.1");
  Instruction* wide = b.Convert(x, ElementType::BF16);
  Instruction* y = b.Parameter(1, Shape::Array(ElementType::BF16, {32, 8}), "y.2");
  DotAttrs dims;
  dims.lhs_contracting = {1};
  dims.rhs_contracting = {0};
  Instruction* dot = b.Dot(wide, y, dims, ElementType::BF16);
  Instruction* eighths = b.Splat(ElementType::BF16, 0.125, dot->shape().dims());
  Instruction* product = b.Make(Op::Multiply, {dot, eighths});
  ASSERT_TRUE(b.Finish(b.Make(Op::Negate, {product})).ok());
  for (Instruction* i : m.entry()->instructions()) i->set_shape(i->shape().WithDefaultLayout());
  EXPECT_EQ(VerifyModule(m).ToString(), "Ok");
  EXPECT_EQ(PrintModule(m, PrintOptions::Short()),
            R"(HloModule scaled_product, entry_computation_layout={(s8[16,32]{1,0}, bf16[32,8]{1,0})->bf16[16,8]{1,0}}

ENTRY main.9 {
  x.1 = s8[16,32]{1,0} parameter(0)
  convert = bf16[16,32]{1,0} convert(x.1)
  y.2 = bf16[32,8]{1,0} parameter(1)
  dot = bf16[16,8]{1,0} dot(convert, y.2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  constant = bf16[] constant(0.125)
  broadcast = bf16[16,8]{1,0} broadcast(constant), dimensions={}
  multiply = bf16[16,8]{1,0} multiply(dot, broadcast)
  ROOT negate = bf16[16,8]{1,0} negate(multiply)
}

)");
}

TEST(Builder, Conveniences) {
  Module m("m");
  m.set_entry(m.AddComputation("main"));
  Builder b(m.entry());
  Instruction* x = b.Parameter(0, Shape::Array(ElementType::F32, {2, 3}));
  Instruction* half = b.Splat(ElementType::F32, 0.5, {2, 3});
  EXPECT_TRUE(half->IsSplat(0.5));
  Instruction* y = b.Make(Op::Multiply, {x, half});
  EXPECT_EQ(b.Convert(y, ElementType::F32), y);
  Instruction* bytes = b.BitcastConvert(y, ElementType::U8);
  EXPECT_EQ(bytes->shape().ToString(), "u8[2,3,4]");
  DotAttrs dims;
  dims.lhs_contracting = dims.rhs_contracting = {1};
  Instruction* dot = b.Dot(y, x, dims, ElementType::F32);
  EXPECT_EQ(dot->shape().ToString(), "f32[2,2]");
  Instruction* both[] = {dot, bytes};
  Instruction* tuple = b.Tuple(both);
  EXPECT_EQ(b.GetTupleElement(tuple, 1)->shape().ToString(), "u8[2,3,4]");
  EXPECT_TRUE(b.Finish(tuple).ok());
  EXPECT_EQ(VerifyModule(m).ToString(), "Ok");
}

}  // namespace
}  // namespace strop
