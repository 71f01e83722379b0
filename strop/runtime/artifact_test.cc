#include "strop/runtime/artifact.h"

#include <gtest/gtest.h>

#include "strop/base/mutator.h"

namespace strop {
namespace {

constexpr uint32_t kOne = SectionName("one "), kTwo = SectionName("two ");

std::string Written() {
  ArtifactWriter out;
  out.Add(kOne, "first");
  out.Add(kTwo, std::string(1000, 'x'));
  return out.Finish();
}

TEST(Artifact, SectionsLieAligned) {
  const Result<Artifact> artifact = Artifact::Copy(Written());
  ASSERT_TRUE(artifact.ok()) << artifact.status().ToString();
  EXPECT_EQ(*artifact->Section(kOne), "first");
  EXPECT_EQ(artifact->Section(kTwo)->size(), 1000u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(artifact->Section(kTwo)->data()) % 64, 0u);
  EXPECT_FALSE(artifact->Has(SectionName("none")));
  EXPECT_NE(artifact->Section(SectionName("none")).status().message().find("no section none"), std::string::npos);
}

TEST(Artifact, RefusesWhatIsDamagedAndWhatIsOfAnotherFormat) {
  const std::string bytes = Written();
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string bad = bytes;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    EXPECT_FALSE(Artifact::Copy(bad).ok()) << at;
    EXPECT_FALSE(Artifact::Copy(std::string_view(bytes).substr(0, at)).ok()) << at;
  }
  std::string newer = bytes;
  newer[8] = 99;
  EXPECT_NE(Artifact::Copy(newer).status().message().find("format 99"), std::string::npos);
  EXPECT_EQ(Artifact::Copy(newer).status().code(), StatusCode::kFailedPrecondition);
}

// Bytes that were changed and given the right hash.
TEST(Artifact, SealedMutations) {
  const std::string bytes = Written();
  Mutator mutate;
  for (int n = 0; n < 20000; ++n) {
    std::string bad = mutate(bytes);
    if (!SealArtifact(bad)) continue;
    const Result<Artifact> artifact = Artifact::Copy(bad);
    if (!artifact.ok()) continue;
    const Result<std::string_view> section = artifact->Section(kTwo);
    EXPECT_TRUE(!section.ok() || section->size() <= bad.size());
  }
}

}  // namespace
}  // namespace strop
