// Artifacts with mistakes that no hash finds: the input is a list of changes (four bytes of place, one of value) to an
// artifact that was written here, which is then sealed again. It is loaded, machine code and all, but not run: whoever
// seals an artifact is trusted with what it does.
#include <cstring>
#include <string>
#include <vector>

#include "strop/driver/artifact.h"
#include "strop/driver/load.h"
#include "tests/fuzz/parsers/target.h"

namespace {

// A kernel, a product, a sort by a comparator, a loop with a product, a scan, a factorisation, random bits, a constant.
// No convolution and no transform: their tables are as large as the sizes say, as they are where a program says so.
constexpr char kProgram[] = R"(HloModule all
less { p = f32[] parameter(0) q = f32[] parameter(1) r = s32[] parameter(2) s = s32[] parameter(3)
  a = f32[] abs(p) b = f32[] abs(q) ROOT l = pred[] compare(a, b), direction=LT }
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
condition { t = (s32[], f32[8,8]) parameter(0) i = s32[] get-tuple-element(t), index=0 n = s32[] constant(3)
  ROOT l = pred[] compare(i, n), direction=LT }
body { t = (s32[], f32[8,8]) parameter(0) i = s32[] get-tuple-element(t), index=0 one = s32[] constant(1)
  j = s32[] add(i, one) x = f32[8,8] get-tuple-element(t), index=1
  y = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} z = f32[8,8] tanh(y)
  ROOT u = (s32[], f32[8,8]) tuple(j, z) }
ENTRY main {
  x = f32[64,64] parameter(0) m = f32[8,8] parameter(1)
  d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  i = s32[64,64] iota(), iota_dimension=1
  s = (f32[64,64], s32[64,64]) sort(d, i), dimensions={1}, to_apply=less
  zero = s32[] constant(0) t = (s32[], f32[8,8]) tuple(zero, m) l = (s32[], f32[8,8]) while(t), condition=condition, body=body
  key = u64[2] constant({3, 4}) r = (u64[2], u32[100]) rng-bit-generator(key), algorithm=rng_three_fry
  z = f32[] constant(0) c = f32[64,64] reduce-window(x, z), window={size=1x64 pad=0_0x63_0}, to_apply=add
  h = f32[8,8] cholesky(m), lower=true
  n = f32[3] constant({1, 2, 3})
  ROOT out = ((f32[64,64], s32[64,64]), (s32[], f32[8,8]), (u64[2], u32[100]), f32[64,64], f32[8,8], f32[3]) tuple(s, l, r, c, h, n)
})";

const strop::Backend& Cpu() {
  static const strop::Backend& backend = **strop::FindBackend("cpu");
  return backend;
}

std::string Write() {
  strop::Result<std::unique_ptr<strop::Module>> module = strop::LoadProgram(kProgram, "all");
  strop::fuzz::Insist(module.ok(), "the program is read", module.status().ToString());
  auto compiled = strop::Compile(*std::move(module), Cpu(), {});
  strop::fuzz::Insist(compiled.ok(), "the program is compiled", compiled.status().ToString());
  strop::ArtifactWriter out;
  const strop::Status written = strop::WriteProgram(**compiled, Cpu(), out);
  strop::fuzz::Insist(written.ok(), "the program is written", written.ToString());
  return out.Finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string good = Write();
  std::string bytes = good;
  for (size_t at = 0; at + 5 <= size; at += 5) {
    uint32_t place;
    std::memcpy(&place, data + at, sizeof place);
    bytes[32 + place % (bytes.size() - 32)] = static_cast<char>(data[at + 4]);
  }
  strop::SealArtifact(bytes);
  const strop::Result<strop::Artifact> artifact = strop::Artifact::Copy(bytes);
  if (!artifact.ok()) return 0;
  const auto program = strop::ReadProgram(*artifact, Cpu(), {});
  strop::fuzz::Insist(program.ok() || size >= 5, "what was written is read", program.status().ToString());
  if (!program.ok())
    strop::fuzz::Insist(program.status().code() != strop::StatusCode::kInternal, "what is refused is named",
                        program.status().ToString());
  if (program.ok()) {
    strop::ArtifactWriter again;
    (void)strop::WriteProgram(**program, Cpu(), again).ok();
    (void)(*program)->executable->ToString();
  }
  return 0;
}
