// Artifacts: a compiled program as bytes, to be kept in a file or by a framework, and mapped into memory as they are.
//
//   0   "STROPART"
//   8   u32 format, u32 number of sections
//   16  u64 bytes in all, u64 hash of all that follows (base/content_hash.h), its seed that number
//   32  the table: u32 name (four letters), u32 zero, u64 place, u64 bytes
//   ..  sections, each at a multiple of 64
//
// What is inside is run, so an artifact is trusted as a program is: whoever may write it may run code as its reader.
// The hash finds damage, no forgery. Readers still check every length and index.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strop/base/status.h"

namespace strop {

// Goes up with every change of what recipes, steps and sections mean.
inline constexpr uint32_t kArtifactFormat = 1;
inline constexpr std::string_view kArtifactMagic = "STROPART";

constexpr uint32_t SectionName(const char (&letters)[5]) {
  uint32_t name = 0;
  for (int n = 3; n >= 0; --n) name = name << 8 | static_cast<unsigned char>(letters[n]);
  return name;
}

class ArtifactWriter {
 public:
  void Add(uint32_t name, std::string bytes) { sections_.push_back({name, std::move(bytes)}); }
  std::string Finish() const;

 private:
  struct Section {
    uint32_t name;
    std::string bytes;
  };
  std::vector<Section> sections_;
};

// A view of bytes that somebody keeps; `owner` is for those who refer to parts of them.
class Artifact {
 public:
  // InvalidArgument for what is none or is damaged; FailedPrecondition for one of another format. The hash is looked at
  // before anything else is.
  static Result<Artifact> Open(std::string_view bytes, std::shared_ptr<const void> owner);
  // The bytes copied to memory of their own, as aligned as sections ask for.
  static Result<Artifact> Copy(std::string_view bytes);

  // NotFound if there is no such section.
  Result<std::string_view> Section(uint32_t name) const;
  bool Has(uint32_t name) const { return Section(name).ok(); }
  std::string_view bytes() const { return bytes_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  struct Entry {
    uint32_t name = 0;
    std::string_view bytes;
  };
  std::string_view bytes_;
  std::shared_ptr<const void> owner_;
  std::vector<Entry> sections_;
};

// Do the bytes claim to be one?
inline bool IsArtifact(std::string_view bytes) { return bytes.substr(0, kArtifactMagic.size()) == kArtifactMagic; }
// For tests and fuzzers: corrects length and hash of bytes that were changed. False if they are too short.
bool SealArtifact(std::string& bytes);

}  // namespace strop
