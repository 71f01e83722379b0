#include "strop/base/options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "strop/base/mutator.h"

namespace strop {
namespace {

TEST(Options, EnvironmentSetsAndXlaFlagsGiveWay) {
  Options options = *OptionsFromEnvironment([](const char* name) -> const char* {
    if (!std::strcmp(name, "STROP_NUM_THREADS")) return "3";
    if (!std::strcmp(name, "STROP_NUM_DEVICES")) return "2";
    if (!std::strcmp(name, "XLA_FLAGS"))
      return "--tpu_x=1 --xla_force_host_platform_device_count=8 --xla_dump_to=out --xla_dump_hlo_as_proto";
    return nullptr;
  });
  EXPECT_EQ(options.num_threads, 3);
  EXPECT_EQ(options.num_devices, 2);
  EXPECT_EQ(options.xla_dump_to, "out");
  EXPECT_TRUE(options.xla_dump_hlo_as_proto);
  EXPECT_EQ(options.log, 0);
}

TEST(Options, RefusalNamesTheVariableAndWhatIsAccepted) {
  auto refuse = [](ReadVariable read) { return OptionsFromEnvironment(read).status().message(); };
  EXPECT_EQ(refuse([](const char* name) { return std::strcmp(name, "STROP_NUM_THREADS") ? nullptr : "many"; }),
            "STROP_NUM_THREADS: 'many' is not accepted: expected a whole number from 0 to 4096");
  EXPECT_EQ(refuse([](const char* name) { return std::strcmp(name, "STROP_LOG") ? nullptr : "4"; }),
            "STROP_LOG: '4' is not accepted: expected a whole number from 0 to 3");
  EXPECT_EQ(
      refuse([](const char* name) {
        return std::strcmp(name, "XLA_FLAGS") ? nullptr : "--xla_force_host_platform_device_count=-1";
      }),
      "XLA_FLAGS --xla_force_host_platform_device_count: '-1' is not accepted: expected a whole number from 1 to 4096");
}

TEST(Options, XlaFlagsAreChecked) {
  static const char* flags;  // read by a plain function
  auto refuse = [](const char* text) {
    flags = text;
    return OptionsFromEnvironment([](const char* name) { return std::strcmp(name, "XLA_FLAGS") ? nullptr : flags; })
        .status()
        .message();
  };
  EXPECT_EQ(refuse("--xla_dmp_to=x"),
            "XLA_FLAGS --xla_dmp_to: XLA has no flag 'xla_dmp_to'; did you mean 'xla_dump_to'?");
  EXPECT_EQ(refuse("--xla_hlo_profile=perhaps"), "XLA_FLAGS --xla_hlo_profile: 'perhaps' is not a valid bool value.");
  EXPECT_EQ(refuse("--xla_gpu_autotune_level=high"),
            "XLA_FLAGS --xla_gpu_autotune_level: 'high' is not a valid number.");
  EXPECT_EQ(refuse("--xla_hlo_profile --xla_gpu_autotune_level=2 --xla_disable_hlo_passes=a,b"), "");
}

// Any text in the environment is taken or refused, and what is taken lies in its row's range.
TEST(Options, MutatedEnvironment) {
  Mutator mutate("0123456789-+.=_ abtrueofxz\n\t");
  static std::string value;  // read by a plain function
  int taken = 0;
  for (int64_t round = mutate.Rounds(2000); round > 0; --round) {
    for (const char* good :
         {"4", "1048576", "--xla_dump_to=d --xla_force_host_platform_device_count=8", "true", "cpu"}) {
      value = mutate(good);
      Result<Options> options = OptionsFromEnvironment([](const char*) { return value.c_str(); });
      if (!options.ok()) continue;
      ++taken;
      EXPECT_TRUE(options->num_threads >= 0 && options->num_threads <= 4096) << value;
      EXPECT_TRUE(options->num_devices >= 1 && options->num_devices <= 4096) << value;
      EXPECT_TRUE(options->log >= 0 && options->log <= 3) << value;
    }
    std::vector<std::string> flags = {mutate("--num-threads=2"), mutate("--dump=d"), mutate("--log"), mutate("3")};
    std::vector<std::string_view> arguments(flags.begin(), flags.end());
    Options options;
    static_cast<void>(TakeOptions(options, arguments).ok());
  }
  EXPECT_GT(taken, 0);
}

TEST(Options, FlagsAreTakenAndTheRestStays) {
  Options options;
  std::vector<std::string_view> arguments = {"run", "--num-threads=2", "x.hlo", "--dump=d", "--other=1"};
  ASSERT_TRUE(TakeOptions(options, arguments).ok());
  EXPECT_EQ(arguments, (std::vector<std::string_view>{"run", "x.hlo", "--other=1"}));
  EXPECT_EQ(options.num_threads, 2);
  EXPECT_EQ(options.dump, "d");

  arguments = {"--num-threads", "3", "x.hlo"};
  ASSERT_TRUE(TakeOptions(options, arguments).ok());
  EXPECT_EQ(arguments, (std::vector<std::string_view>{"x.hlo"}));
  EXPECT_EQ(options.num_threads, 3);

  arguments = {"--num-threads"};
  EXPECT_EQ(TakeOptions(options, arguments).message(),
            "--num-threads: a value is missing: --num-threads=VALUE, expected a whole number from 0 to 4096");
}

TEST(Options, UnknownNameGetsASuggestion) {
  Options options;
  EXPECT_EQ(SetOption(options, "num_thread", "1", "create option").message(),
            "create option: no option 'num_thread'; did you mean 'num_threads'?");
}

TEST(Options, DocumentIsFresh) {
  const std::string path = std::string(STROP_SOURCE_DIR) + "/docs/options.md";
  if (std::getenv("STROP_BLESS")) std::ofstream(path) << OptionsMarkdown();
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), OptionsMarkdown()) << "docs/options.md is stale: ./dev bless";
}

}  // namespace
}  // namespace strop
