#include "strop/import/bytecode_reader.h"

#include <gtest/gtest.h>

#include "strop/base/mutator.h"
#include "strop/import/vhlo.h"

namespace strop {
namespace {

// Made with jaxlib 0.10.2 from a small program (constants, add, gather, call, reduce, select): as VHLO 1.13.0 and as
// plain StableHLO; kSdy is a manual computation over a mesh, as plain StableHLO and Shardy.
constexpr std::string_view kVhlo =
    "4d4cef520d537461626c65484c4f5f76312e31332e300001270501051701030b03150f13171b1f23272b2f330397671d0137"
    "0b13130b0f0b1313131313130f0b071313130f0b130b131313131303310f2f0b0b0f130b0f0b0f130b0b0b0b0b0b1f4f132f"
    "0f0b2f01030f031b130f071307071313171717071302ce03051b1701213503030709051d110105051f170105031701070717"
    "011d0717011d3117011f151701230b1d1b1d05211f1701091517010b1517010d151d27290523172b070f0525170111151701"
    "131517011515170117151701190b1f1b011f0f11000000000000000003011d270303410d0343451d29130d01231503034b0d"
    "034d4f1d2b1d2d1d2f1d3123171d331f0509000000001f03210000803f0000004000004040000080401f11030d1f13110100"
    "000003000000130b0505011f0f1101000000000000000102022903110729010709290309071d1b2903050b29031119290509"
    "050d11030303031103090305012903010b045e020501510d05010704360203010907500f030704910313270307190003421f"
    "0503030342210703110342230903130d062503030501030f462d0b030905090711462f0d0305030b1346310f0303030d1506"
    "3303030705090f05043503110750111107046903070f0313130003421513030509560315030505010307042d03070b050b03"
    "0b03000b06030305050103050403030505041703050603010501001e0435110f0b0f2127050b17050d2905152911150f1715"
    "1115190f0b116275696c74696e0076686c6f006d6f64756c6500636f6e7374616e745f76310072657475726e5f7631006675"
    "6e635f7631007265647563655f7631006d6178696d756d5f7631006164645f7631006761746865725f76320063616c6c5f76"
    "310062726f6164636173745f696e5f64696d5f76310073656c6563745f7631002d006d686c6f2e6e756d5f70617274697469"
    "6f6e73006a69745f660078006a69742866292f61646400662e707900670074662e616c696173696e675f6f7574707574006a"
    "61782e726573756c745f696e666f00726573756c74006d61696e007075626c6963007072697661746500084f170517010b3f"
    "47495153035b035d035f113961633737653937033d03370b3b553b3d5703590339";

constexpr std::string_view kPlain =
    "4d4cef520d4d4c495232332e302e3067697400012f070105091901030f030707131705111b1f2313272b2f33038b65170163"
    "0b130b130b0f0b130f130b0f0b0f130b0b0b0b130b0b13131f1333130f0b074f1313132f130f0b130b33130b131313131305"
    "03270117130f0f07130f131717170b02d203051b17012135051d0303090b051f110505052117010503010313030315170523"
    "1105010d1101031d03031f21052505270529052b170107070d13052d17011d0717011d312503090000000017011f15230b03"
    "1100000000000000001701230b1d3b3d052f1f2501210000803f00000040000040400000804017010915250d030d17010b15"
    "250f11010000000300000017010d151d4d4f05311751070f0533230b0311010000000000000017011115090517011315230b"
    "010117011515170117151701190b0f01030101010301051b0311071b01070102020b1b0309070102041b0311151b05090505"
    "050301030105030903030109045e020501510f07010704360203010903502703070491031327030339000942410503010942"
    "4507030d09424909030f11064b03010501031346550b03090509070746590d0303030b15465d0f0301030d17065f03010705"
    "090f050461031103502d1107046903070f03132f000942331303030b560315030305010307042d03070b0507030703000d06"
    "0303030501030f040303050504370305060301050100ba03350b1705110f0b0f21270d2905050f230f09110f130b0f0f150b"
    "116275696c74696e0066756e6300737461626c65686c6f006d6f64756c650072657475726e0063616c6c00636f6e7374616e"
    "7400726564756365006d6178696d756d00616464006761746865720062726f6164636173745f696e5f64696d0073656c6563"
    "74002d0067006d686c6f2e6e756d5f706172746974696f6e73006a69745f660074662e616c696173696e675f6f7574707574"
    "006a61782e726573756c745f696e666f00726573756c74006d61696e007075626c696300707269766174650078006a697428"
    "66292f61646400662e707900084f17051b010d23190137234b033f03430347076301530901570101035b0d01290101055703"
    "310335";

constexpr std::string_view kSdy =
    "4d4cef520d4d4c495232332e302e3067697400012b090105090d0f0103130307171b1f05050b1f070323034f370901250b0b"
    "0b13130f130b0b0b13130b131313171303130f0f130f171717170f01091307131702d90513050b0903170103031701031501"
    "030d03030f2d05150d070517170105051701052505191701070f17010b05170107ed1701074202170109050919010f033105"
    "032b010319090d05032f010b032500070d050333010b032501010103191b0311030b1b030903050301030104810501500701"
    "070471030109034009030950150507045503050b0303170005561b070301030107042703050b030b1f000d06210305030107"
    "042303030b041d0303060301050100d91b050b1b050f0f270b0f150b09116275696c74696e007364790066756e6300737461"
    "626c65686c6f006d6f64756c65006d657368006d616e75616c5f636f6d7075746174696f6e0072657475726e006e65676174"
    "65002d007364792e7368617264696e67006d61696e0061000825090501010529030d17110101130107273527";

std::vector<uint8_t> Bytes(std::string_view hex) {
  std::vector<uint8_t> out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<uint8_t>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return out;
}

std::string Read(std::span<const uint8_t> bytes, bool locations = false) {
  Result<std::unique_ptr<MlirModule>> m = ReadMlirBytecode(bytes);
  if (!m.ok()) return m.status().ToString();
  Status s = ConvertVhloToStablehlo(**m);
  if (!s.ok()) return s.ToString();
  return PrintGeneric(*(*m)->root, locations);
}

constexpr std::string_view kExpected = R"("builtin.module"() <{sym_name = "jit_f"}> ({
  "func.func"() <{arg_attrs = [{tf.aliasing_output = 0 : i32}], function_type = (tensor<4xf32>) -> tensor<4xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<4xf32>):
    %0 = "stablehlo.constant"() <{value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>}> : () -> tensor<4xf32>
    %1 = "stablehlo.constant"() <{value = dense<[true, false, true, true]> : tensor<4xi1>}> : () -> tensor<4xi1>
    %2 = "stablehlo.constant"() <{value = dense<[[1], [3]]> : tensor<2x1xi32>}> : () -> tensor<2x1xi32>
    %3 = "stablehlo.add"(%arg0, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %4 = "stablehlo.gather"(%3, %2) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<4xf32>, tensor<2x1xi32>) -> tensor<2xf32>
    %5 = "func.call"(%4) <{callee = @g}> : (tensor<2xf32>) -> tensor<f32>
    %6 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
    %7 = "stablehlo.select"(%1, %3, %6) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%7) : (tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2xf32>) -> tensor<f32>, sym_name = "g", sym_visibility = "private"}> ({
  ^bb0(%arg1: tensor<2xf32>):
    %8 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %9 = "stablehlo.reduce"(%arg1, %8) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %10 = "stablehlo.maximum"(%arg2, %arg3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%10) : (tensor<f32>) -> ()
    }) : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    "func.return"(%9) : (tensor<f32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32} : () -> ()
)";

TEST(Bytecode, Plain) { EXPECT_EQ(Read(Bytes(kPlain)), kExpected); }

TEST(Bytecode, Vhlo) { EXPECT_EQ(Read(Bytes(kVhlo)), kExpected); }

TEST(Bytecode, Locations) {
  std::string text = Read(Bytes(kVhlo), true);
  EXPECT_NE(text.find("loc(\"jit(f)/add\"(\"f.py\":3:7))"), std::string::npos) << text;
}

TEST(Bytecode, Shardy) {
  std::string text = Read(Bytes(kSdy));
  EXPECT_NE(text.find("sdy.sharding = #sdy.sharding<@mesh, [{\"a\", ?}p1]>"), std::string::npos) << text;
  EXPECT_NE(text.find("manual_axes = #sdy<manual_axes{\"a\"}>"), std::string::npos) << text;
}

TEST(Bytecode, RefusesWhatIsNotBytecode) {
  std::vector<uint8_t> text = {'m', 'o', 'd', 'u', 'l', 'e'};
  EXPECT_FALSE(LooksLikeMlirBytecode(text));
  EXPECT_FALSE(ReadMlirBytecode(text).ok());
  std::vector<uint8_t> newer = Bytes(kPlain);
  newer[4] = 2 * 77 + 1;
  EXPECT_EQ(ReadMlirBytecode(newer).status().code(), StatusCode::kUnimplemented);
}

TEST(Bytecode, TellsWhereAndFromWhom) {
  std::vector<uint8_t> bytes = Bytes(kVhlo);
  bytes.resize(bytes.size() - 3);
  Status s = ReadMlirBytecode(bytes).status();
  EXPECT_FALSE(s.ok());
  EXPECT_NE(s.ToString().find("[at byte "), std::string::npos) << s.ToString();
  EXPECT_NE(s.ToString().find("produced by StableHLO_v1.13.0"), std::string::npos) << s.ToString();
}

// An integer of no bits is legal in MLIR's bytecode, but no tensor has such elements.
TEST(Bytecode, IntegersHaveBits) {
  const std::vector<uint8_t> good = Bytes(kPlain);
  int told = 0;
  for (size_t at = 5; at < good.size(); ++at) {
    std::vector<uint8_t> bad = good;
    bad[at] = 0x01;  // as a varint: no bits, signless
    told += ReadMlirBytecode(bad).status().ToString().find("an integer type of 0 bits") != std::string::npos;
  }
  EXPECT_GT(told, 0);
}

// Nothing that bytes can say may crash, hang or use much memory; the address sanitizer watches in its preset.
TEST(Bytecode, TruncatedAndChangedBytes) {
  Mutator mutate;
  for (std::string_view hex : {kVhlo, kPlain, kSdy}) {
    const std::vector<uint8_t> good = Bytes(hex);
    const std::string_view text(reinterpret_cast<const char*>(good.data()), good.size());
    for (size_t n = 0; n < good.size(); ++n) {
      EXPECT_FALSE(ReadMlirBytecode(std::span(good).first(n)).ok()) << n;
    }
    for (int64_t round = mutate.Rounds(4000); round > 0; --round) {
      const std::string bad = round % 4 ? mutate.Overwrite(text, 4) : mutate(text);
      Read(std::vector<uint8_t>(bad.begin(), bad.end()), true);
    }
  }
}

}  // namespace
}  // namespace strop
