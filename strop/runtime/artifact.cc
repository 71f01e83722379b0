#include "strop/runtime/artifact.h"

#include <cstring>
#include <new>

#include "strop/base/content_hash.h"
#include "strop/base/strings.h"

namespace strop {
namespace {

constexpr size_t kSectionAlignment = 64;
constexpr uint32_t kMostSections = 64;

struct Header {
  char magic[8];
  uint32_t format = 0, sections = 0;
  uint64_t size = 0, hash = 0;
};
static_assert(sizeof(Header) == 32);
struct TableEntry {
  uint32_t name = 0, zero = 0;
  uint64_t place = 0, size = 0;
};
static_assert(sizeof(TableEntry) == 24);

size_t AlignUp(size_t n) { return (n + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment; }

std::string TextOf(uint32_t name) {
  std::string text;
  for (; name; name >>= 8) text += static_cast<char>(name & 255);
  return CEscape(text);
}

}  // namespace

std::string ArtifactWriter::Finish() const {
  std::string out(sizeof(Header) + sections_.size() * sizeof(TableEntry), '\0');
  std::vector<TableEntry> table;
  for (const Section& s : sections_) {
    out.resize(AlignUp(out.size()));
    table.push_back({.name = s.name, .place = out.size(), .size = s.bytes.size()});
    out += s.bytes;
  }
  Header header{.format = kArtifactFormat, .sections = static_cast<uint32_t>(sections_.size())};
  std::memcpy(header.magic, kArtifactMagic.data(), sizeof header.magic);
  std::memcpy(out.data(), &header, sizeof header);
  if (!table.empty()) std::memcpy(out.data() + sizeof header, table.data(), table.size() * sizeof(TableEntry));
  SealArtifact(out);
  return out;
}

bool SealArtifact(std::string& bytes) {
  Header header;
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.size = bytes.size();
  header.hash = ContentHash(std::string_view(bytes).substr(sizeof header), header.sections);
  std::memcpy(bytes.data(), &header, sizeof header);
  return true;
}

Result<Artifact> Artifact::Open(std::string_view bytes, std::shared_ptr<const void> owner) {
  Header header;
  if (!IsArtifact(bytes) || bytes.size() < sizeof header)
    return InvalidArgument("these ", bytes.size(), " bytes are no executable that Strop serialised");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.format != kArtifactFormat)
    return FailedPrecondition("the executable was serialised in format ", header.format, ", this Strop reads ",
                              kArtifactFormat, ": compile it again");
  if (header.size != bytes.size())
    return InvalidArgument("a serialised executable of ", header.size, " bytes, of which there are ", bytes.size());
  if (header.hash != ContentHash(bytes.substr(sizeof header), header.sections))
    return InvalidArgument("a serialised executable that is damaged: its bytes are not those that were written");
  Artifact out;
  out.bytes_ = bytes;
  out.owner_ = std::move(owner);
  if (header.sections > kMostSections || header.sections * sizeof(TableEntry) > bytes.size() - sizeof header)
    return InvalidArgument("a serialised executable of ", header.sections, " sections");
  for (uint32_t n = 0; n < header.sections; ++n) {
    TableEntry entry;
    std::memcpy(&entry, bytes.data() + sizeof header + n * sizeof entry, sizeof entry);
    if (entry.place % kSectionAlignment != 0 || entry.place > bytes.size() || entry.size > bytes.size() - entry.place)
      return InvalidArgument("a serialised executable whose section ", TextOf(entry.name), " lies outside of it");
    out.sections_.push_back({entry.name, bytes.substr(entry.place, entry.size)});
  }
  return out;
}

Result<Artifact> Artifact::Copy(std::string_view bytes) {
  const std::align_val_t alignment{kSectionAlignment};
  void* memory = ::operator new(bytes.size() + 1, alignment, std::nothrow);
  if (!memory) return ResourceExhausted("no memory for ", bytes.size(), " bytes of an executable");
  std::shared_ptr<const void> owner(memory, [alignment](void* gone) { ::operator delete(gone, alignment); });
  if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
  return Open({static_cast<const char*>(memory), bytes.size()}, std::move(owner));
}

Result<std::string_view> Artifact::Section(uint32_t name) const {
  for (const Entry& entry : sections_)
    if (entry.name == name) return entry.bytes;
  return NotFound("the serialised executable has no section ", TextOf(name));
}

}  // namespace strop
