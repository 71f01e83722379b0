// Round trips, refusals, and mutated bytes. Recorded programs of frameworks are read where STROP_WIRE_PROGRAMS (a
// folder) is set; the test says so and passes where it is not.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "strop/base/mutator.h"
#include "strop/ir/builder.h"
#include "strop/ir/printer.h"
#include "strop/proto/compile_options.h"
#include "strop/proto/module_proto.h"
#include "strop/proto/value_proto.h"

namespace strop {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

// Reading, writing and reading again gives the same text.
void ExpectRoundTrip(const std::string& bytes, const std::string& what) {
  Result<std::unique_ptr<Module>> first = ParseAnyModuleProto(bytes);
  ASSERT_TRUE(first.ok()) << what << ": " << first.status().ToString();
  Result<std::string> written = SerializeModuleProto(**first);
  ASSERT_TRUE(written.ok()) << what << ": " << written.status().ToString();
  Result<std::unique_ptr<Module>> second = ParseModuleProto(*written);
  ASSERT_TRUE(second.ok()) << what << ": " << second.status().ToString();
  EXPECT_EQ((*first)->ToString(), (*second)->ToString()) << what;
  EXPECT_EQ(*written, *SerializeModuleProto(**second)) << what;
}

std::unique_ptr<Module> SmallModule() {
  auto module = std::make_unique<Module>("small");
  Computation* add = module->AddComputation("add");
  Shape f32 = Shape::Scalar(ElementType::F32);
  Instruction* a = add->AddParameter(0, f32, "a");
  Instruction* b = add->AddParameter(1, f32, "b");
  add->set_root(add->Add(Op::Add, f32, {a, b}));
  Computation* main = module->AddComputation("main");
  module->set_entry(main);
  Shape matrix = Shape::Array(ElementType::F32, {2, 3}).WithDefaultLayout();
  Instruction* x = main->AddParameter(0, matrix, "x");
  x->set_sharding(*ParseSharding("{devices=[2,1]<=[2]}"));
  x->set_frontend_attribute("key", "value");
  OpMetadata metadata;
  metadata.op_name = "jit(f)/add";
  metadata.source_file = "model.py";
  metadata.source_line = 12;
  Instruction* zero = main->AddConstant(Literal::Scalar(0.0f));
  DimensionsAttrs dimensions;
  dimensions.dimensions = {1};
  Instruction* sum = main->Add(Op::Reduce, Shape::Array(ElementType::F32, {2}), {x, zero}, dimensions);
  sum->set_called({add});
  sum->set_metadata(metadata);
  CompareAttrs compare;
  compare.direction = CompareDirection::Lt;
  Instruction* less = main->Add(Op::Compare, Shape::Array(ElementType::Pred, {2}), {sum, sum}, compare);
  less->AddControlPredecessor(sum);
  main->set_root(main->Add(Op::Tuple, Shape::Tuple({sum->shape(), less->shape()}), {sum, less}));
  module->config().buffer_donors.push_back({0, {}});
  module->config().input_output_alias.push_back({{0}, 0, {}, true});
  return module;
}

TEST(ModuleProto, RoundTrip) {
  std::unique_ptr<Module> module = SmallModule();
  Result<std::string> bytes = SerializeModuleProto(*module);
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  ExpectRoundTrip(*bytes, "small");
  Result<std::unique_ptr<Module>> read = ParseModuleProto(*bytes);
  ASSERT_TRUE(read.ok());
  const Instruction* root = (*read)->entry()->root();
  EXPECT_EQ(root->operand(0)->metadata().Location(), "model.py:12");
  EXPECT_EQ(root->operand(0)->called(0)->name(), "add");
  EXPECT_EQ(root->operand(1)->attrs<CompareAttrs>().order, CompareOrder::Default);
  EXPECT_EQ(root->operand(1)->control_predecessors().size(), 1u);
  EXPECT_EQ((*read)->config().buffer_donors, module->config().buffer_donors);
  EXPECT_EQ((*read)->config().input_output_alias, module->config().input_output_alias);
  EXPECT_EQ(*(*read)->entry()->parameter(0)->sharding(), *module->entry()->parameter(0)->sharding());
}

TEST(ModuleProto, AllWrappersAreRead) {
  std::unique_ptr<Module> module = SmallModule();
  module->config().num_partitions = 2;
  for (const std::string& bytes :
       {*SerializeModuleProto(*module), *SerializeHloProto(*module), *SerializeModuleProtoWithConfig(*module)}) {
    Result<std::unique_ptr<Module>> read = ParseAnyModuleProto(bytes);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ((*read)->name(), "small");
  }
  EXPECT_EQ((*ParseModuleProtoWithConfig(*SerializeModuleProtoWithConfig(*module)))->config().num_partitions, 2);
}

TEST(ModuleProto, EntryShardingsAreAdded) {
  std::unique_ptr<Module> module = SmallModule();
  const std::string parts = *SerializeSharding(*module->entry()->parameter(0)->sharding());
  const std::vector<std::string> parameters = {parts, ""}, results = {""}, wrong = {"\xff"};
  const std::string plain = *SerializeModuleProtoWithConfig(*module);
  Result<std::string> bytes = AddEntryShardings(plain, parameters, results);
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  EXPECT_GT(bytes->size(), plain.size() + parts.size());
  EXPECT_TRUE(ParseModuleProtoWithConfig(*bytes).ok());
  EXPECT_FALSE(AddEntryShardings(plain, wrong, results).ok());
  EXPECT_FALSE(AddEntryShardings("\xff", parameters, results).ok());
}

TEST(ModuleProto, ScheduleIsListOrder) {
  std::unique_ptr<Module> module = SmallModule();
  module->config().is_scheduled = true;
  Computation* main = module->entry();
  Instruction* constant = main->root()->operand(0)->operand(1);
  main->MoveBefore(constant, main->first());
  Result<std::unique_ptr<Module>> read = ParseModuleProto(*SerializeModuleProto(*module));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_TRUE((*read)->config().is_scheduled);
  EXPECT_EQ((*read)->entry()->first()->op(), Op::Constant);
}

// XLA's order on the wire: body, then condition. Our row has them the other way round.
TEST(ModuleProto, WhileOrder) {
  Module module("loop");
  Shape s32 = Shape::Scalar(ElementType::S32), pred = Shape::Scalar(ElementType::Pred);
  Computation* condition = module.AddComputation("condition");
  condition->AddParameter(0, s32, "c");
  condition->set_root(condition->AddConstant(Literal::Scalar(false)));
  Computation* body = module.AddComputation("body");
  body->set_root(body->AddParameter(0, s32, "b"));
  Computation* main = module.AddComputation("main");
  module.set_entry(main);
  Instruction* loop = main->Add(Op::While, s32, {main->AddParameter(0, s32, "x")});
  loop->set_called({condition, body});
  main->set_root(loop);
  Result<std::unique_ptr<Module>> read = ParseModuleProto(*SerializeModuleProto(module));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ((*read)->entry()->root()->condition()->name(), "condition");
  EXPECT_EQ((*read)->entry()->root()->body()->name(), "body");
}

TEST(ModuleProto, NamesBecomeWords) {
  std::unique_ptr<Module> small = SmallModule();
  small->set_name("a b\xeb");
  Result<std::unique_ptr<Module>> module = ParseModuleProto(*SerializeModuleProto(*small));
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  EXPECT_EQ((*module)->name(), "a_b_");
}

TEST(ModuleProto, Refusals) {
  EXPECT_EQ(ParseModuleProto("\xff\xff\xff").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseModuleProto("").status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(ParseAnyModuleProto("").status().message().find("HloModuleProto"), std::string::npos);
  std::string bytes = *SerializeModuleProto(*SmallModule());
  auto replaced = [&](std::string_view from, std::string_view to) {
    std::string copy = bytes;
    copy.replace(copy.rfind(from), from.size(), to);
    return ParseModuleProto(copy).status().ToString();
  };
  EXPECT_NE(replaced("compare", "compere").find("unknown opcode 'compere'"), std::string::npos);
  EXPECT_NE(replaced("LT", "LQ").find("unknown comparison direction 'LQ'"), std::string::npos);
}

// Every byte changed once, in a few ways: an error or a module that can be printed and written, never a crash.
TEST(ModuleProto, MutatedBytes) {
  const std::string bytes = *SerializeModuleProto(*SmallModule());
  int read = 0;
  auto take = [&](std::string_view changed) {
    Result<std::unique_ptr<Module>> module = ParseAnyModuleProto(changed);
    if (!module.ok()) return;
    ++read;
    (*module)->ToString();
    static_cast<void>(SerializeModuleProto(**module).ok());
  };
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int change : {1, 0x80, 0xff, 0x20}) {
      std::string copy = bytes;
      copy[at] = static_cast<char>(copy[at] ^ change);
      take(copy);
    }
    static_cast<void>(ParseAnyModuleProto(std::string_view(bytes).substr(0, at)).ok());
  }
  Mutator mutate;
  for (int64_t round = mutate.Rounds(5000); round > 0; --round)
    take(round % 2 ? mutate(bytes) : mutate.Overwrite(bytes));
  EXPECT_GT(read, 0);
}

TEST(ModuleProto, RecordedPrograms) {
  const char* folder = std::getenv("STROP_WIRE_PROGRAMS");
  if (!folder) GTEST_SKIP() << "STROP_WIRE_PROGRAMS names no folder of recorded HloModuleProtos";
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".hlo" && entry.path().extension() != ".pb") continue;
    SCOPED_TRACE(entry.path().string());
    ExpectRoundTrip(ReadFile(entry.path()), entry.path().string());
    ++count;
  }
  EXPECT_GT(count, 0);
}

TEST(LiteralProto, EveryTypeAndLayout) {
  for (const char* text :
       {"pred[3]", "s2[5]", "s4[5]", "u4[5]", "s8[2,3]", "u16[2,3]", "s32[2,3]{0,1}", "u64[2]", "f16[2,3]{0,1}",
        "bf16[4]", "f32[2,3,4]{1,0,2}", "f64[0,3]", "c64[2,2]{0,1}", "c128[2]", "f8e4m3fn[4]", "f4e2m1fn[3]"}) {
    Shape shape = *ParseShape(text);
    Literal literal = *Literal::Zeros(shape);
    for (int64_t i = 0; i < literal.num_elements(); ++i) literal.SetDouble(i, static_cast<double>(i % 2 + (i == 0)));
    Result<Literal> read = ParseLiteralProto(SerializeLiteral(literal));
    ASSERT_TRUE(read.ok()) << text << ": " << read.status().ToString();
    EXPECT_EQ(*read, literal) << text;
    if (shape.has_layout()) {
      EXPECT_EQ(read->shape(), shape) << text;
    }
  }
}

TEST(LiteralProto, RefusesALieAboutTheSize) {
  std::string honest =
      SerializeLiteral(*Literal::FromBytes(Shape::Array(ElementType::U8, {3}), std::vector<uint8_t>{1, 2, 3}));
  std::string shape = SerializeShape(Shape::Array(ElementType::U8, {int64_t{1} << 50}).WithDefaultLayout());
  std::string lie =
      std::string("\x0a", 1) + static_cast<char>(shape.size()) + shape + std::string("\x1a\x03\x01\x02\x03", 5);
  EXPECT_TRUE(ParseLiteralProto(honest).ok());
  EXPECT_NE(ParseLiteralProto(lie).status().message().find("3 elements"), std::string::npos);
}

TEST(ShardingProto, RoundTrip) {
  for (const char* text :
       {"{replicated}", "{manual}", "{unknown}", "{maximal device=3}", "{devices=[2,4]0,1,2,3,4,5,6,7}",
        "{devices=[4,2]<=[2,4]T(1,0)}", "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
        "{devices=[2,1,2,2]<=[8] last_tile_dims={replicated, manual}}", "{{replicated}, {maximal device=0}}",
        "{mesh['x'=2,'y'=4], [{'x', 'y':(2)2}, {?}], replicated={'y':(1)2}}",
        "{mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)), [{'x', ?}, {}], unreduced={'y'}}"}) {
    Result<Sharding> sharding = ParseSharding(text);
    ASSERT_TRUE(sharding.ok()) << text << ": " << sharding.status().ToString();
    Result<std::string> bytes = SerializeSharding(*sharding);
    ASSERT_TRUE(bytes.ok()) << text << ": " << bytes.status().ToString();
    Result<Sharding> read = ParseShardingProto(*bytes);
    ASSERT_TRUE(read.ok()) << text << ": " << read.status().ToString();
    EXPECT_EQ(read->ToString(), sharding->ToString());
  }
  Sharding broken;
  broken.kind = ShardingKind::Named;
  broken.named = "mesh['x'=2], [{'y'}]";
  EXPECT_NE(SerializeSharding(broken).status().message().find("no axis 'y'"), std::string::npos);
}

FrontendCompileOptions SomeOptions() {
  FrontendCompileOptions options;
  options.num_partitions = 2;
  options.device_assignment = CompileDeviceAssignment{1, 2, {1, 0}};
  options.use_spmd_partitioning = options.use_shardy_partitioner = true;
  options.propagate_to_output = {true, false};
  options.result_layout = *ParseShape("f32[2,3]{0,1}");
  options.overrides = {{"flag", true}, {"level", int64_t{3}}, {"name", std::string("x")}, {"ratio", 0.5}};
  options.backend_optimization_level = 2;
  options.dump.to = "/somewhere";
  return options;
}

TEST(CompileOptionsProto, RoundTrip) {
  const FrontendCompileOptions options = SomeOptions();
  Result<FrontendCompileOptions> read = ParseCompileOptions(SerializeCompileOptions(options));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(*read, options);
  EXPECT_EQ(*ParseDeviceAssignment(SerializeDeviceAssignment(*options.device_assignment)), *options.device_assignment);
}

// What is read can be written, and is the same when it is read again.
TEST(CompileOptionsProto, MutatedBytes) {
  const std::string bytes = SerializeCompileOptions(SomeOptions());
  const std::string assignment = SerializeDeviceAssignment(*SomeOptions().device_assignment);
  Mutator mutate;
  int read = 0;
  for (int64_t round = mutate.Rounds(20000); round > 0; --round) {
    static_cast<void>(ParseDeviceAssignment(mutate(assignment)).ok());
    Result<FrontendCompileOptions> options = ParseCompileOptions(round % 2 ? mutate(bytes) : mutate.Overwrite(bytes));
    if (!options.ok()) continue;
    ++read;
    EXPECT_TRUE(ParseCompileOptions(SerializeCompileOptions(*options)).ok());
  }
  EXPECT_GT(read, 0);
}

TEST(CompileOptionsProto, Refusals) {
  EXPECT_NE(ParseCompileOptions("invalid compile options").status().message().find("CompileOptionsProto"),
            std::string::npos);
  EXPECT_EQ(ParseCompileOptions("")->num_replicas, 1);
  FrontendCompileOptions options;
  options.num_replicas = int64_t{1} << 40;
  EXPECT_FALSE(ParseCompileOptions(SerializeCompileOptions(options)).ok());
  options.num_replicas = 2;
  options.device_assignment = CompileDeviceAssignment{1, 1, {0}};
  EXPECT_FALSE(ParseCompileOptions(SerializeCompileOptions(options)).ok());
}

}  // namespace
}  // namespace strop
