#include "strop/cpu/load/code.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

#include "strop/cpu/load/symbols.h"

namespace strop::cpu {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;  // of one mapping: what is in it reaches the rest with 32 bits
constexpr size_t kMostAlignment = 4096;
// jmp *2(%rip); two bytes of padding; the address.
constexpr uint8_t kStub[16] = {0xff, 0x25, 0x02, 0x00, 0x00, 0x00, 0x90, 0x90};
constexpr size_t kStubAddress = 8;  // in the stub: what GOTPCREL relocations want to read
// jmp *target(%rip), where the four zeros say how far behind the jump the target lies; two bytes of padding.
constexpr uint8_t kEntry[8] = {0xff, 0x25, 0x00, 0x00, 0x00, 0x00, 0x90, 0x90};
constexpr size_t kEntryDistance = 2, kEntryJump = 6;  // in the entry; bytes of the jump

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
size_t AlignUp(size_t n, size_t alignment) { return (n + alignment - 1) / alignment * alignment; }

// A struct, or a part, of an object's bytes.
template <class T>
bool ReadAt(std::string_view bytes, uint64_t offset, T& out) {
  if (offset > bytes.size() || sizeof out > bytes.size() - offset) return false;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return true;
}
bool Part(std::string_view bytes, uint64_t offset, uint64_t size, std::string_view& out) {
  if (offset > bytes.size() || size > bytes.size() - offset) return false;
  out = bytes.substr(offset, size);
  return true;
}
std::string_view NameAt(std::string_view names, uint64_t offset) {
  if (offset >= names.size()) return {};
  names.remove_prefix(offset);
  return names.substr(0, names.find('\0'));
}

Status Damaged(std::string_view what) { return InvalidArgument("object code is damaged: ", what); }

struct Section {
  Elf64_Shdr header;
  std::string_view name, bytes;
  size_t place = 0;  // in the mapping; meaningful if `kept`
  bool kept = false;
};

struct Object {
  std::vector<Section> sections;
  std::vector<Elf64_Sym> symbols;
  std::string_view names;  // of symbols
};

// What is code or constant comes along; tables for unwinding do not, for no exception passes through a kernel.
bool IsKept(const Section& s) {
  return (s.header.sh_flags & SHF_ALLOC) && s.header.sh_size > 0 && s.name != ".eh_frame" &&
         s.header.sh_type != SHT_X86_64_UNWIND;
}

Status ReadSymbols(std::string_view bytes, const Section& table, Object& out) {
  if (table.header.sh_link >= out.sections.size() || table.bytes.size() % sizeof(Elf64_Sym) != 0)
    return Damaged("its symbols");
  out.names = out.sections[table.header.sh_link].bytes;
  out.symbols.resize(table.bytes.size() / sizeof(Elf64_Sym));
  std::memcpy(out.symbols.data(), table.bytes.data(), table.bytes.size());
  return OkStatus();
}

Result<Object> ReadObject(std::string_view bytes) {
  Elf64_Ehdr header;
  if (!ReadAt(bytes, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return Damaged("no ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64 || header.e_type != ET_REL)
    return Unimplemented("object code that is not relocatable x86-64 code");
  Object out;
  for (unsigned n = 0; n < header.e_shnum; ++n) {
    Section s;
    if (header.e_shoff > bytes.size() || !ReadAt(bytes, header.e_shoff + n * sizeof s.header, s.header))
      return Damaged("its sections");
    const bool empty = s.header.sh_type == SHT_NOBITS || s.header.sh_type == SHT_NULL;
    if (!empty && !Part(bytes, s.header.sh_offset, s.header.sh_size, s.bytes)) return Damaged("a section");
    out.sections.push_back(s);
  }
  if (header.e_shstrndx >= out.sections.size()) return Damaged("the names of its sections");
  const std::string_view names = out.sections[header.e_shstrndx].bytes;
  for (Section& s : out.sections) {
    s.name = NameAt(names, s.header.sh_name);
    s.kept = IsKept(s);
    if (s.kept && s.bytes.empty())
      return Unimplemented("object code with the section ", s.name, ", which is no constant");
    if (s.kept &&
        (s.header.sh_addralign > kMostAlignment || !std::has_single_bit(std::max<uint64_t>(s.header.sh_addralign, 1))))
      return Damaged("the alignment of a section");
  }
  for (const Section& s : out.sections)
    if (s.header.sh_type == SHT_SYMTAB) STROP_TRY(ReadSymbols(bytes, s, out));
  return out;
}

}  // namespace

class Linker {
 public:
  explicit Linker(bool replaceable) : replaceable_(replaceable) {}

  Result<std::shared_ptr<const LoadedCode>> Run(std::span<const std::string_view> objects) {
    for (std::string_view bytes : objects) {
      STROP_ASSIGN(Object object, ReadObject(bytes));
      STROP_TRY(Place(object));
      objects_.push_back(std::move(object));
    }
    STROP_TRY(PlaceStubs());
    PlaceEntries();
    const size_t writable = targets_;
    STROP_TRY(Map());
    for (Object& object : objects_) {
      for (const Section& s : object.sections)
        if (s.kept) std::memcpy(code_->base_ + s.place, s.bytes.data(), s.bytes.size());
      for (const Section& s : object.sections)
        if (s.header.sh_type == SHT_RELA && s.header.sh_info < object.sections.size() &&
            object.sections[s.header.sh_info].kept)
          STROP_TRY(Relocate(object, object.sections[s.header.sh_info], s.bytes));
      code_->functions_.push_back(FunctionsOf(object));
    }
    const size_t executable = replaceable_ ? writable : code_->size_;
    if (executable > 0 && mprotect(code_->base_, executable, PROT_READ | PROT_EXEC) != 0)
      return ResourceExhausted("no executable memory for ", executable, " bytes of code");
    return std::shared_ptr<const LoadedCode>(std::move(code_));
  }

 private:
  Status Place(Object& object) {
    for (Section& s : object.sections) {
      if (!s.kept) continue;
      s.place = AlignUp(size_, std::max<size_t>(s.header.sh_addralign, 1));
      size_ = s.place + s.bytes.size();
      if (size_ > kMostBytes) return ResourceExhausted("more than ", kMostBytes, " bytes of code");
    }
    return OkStatus();
  }

  // One for each function that somebody calls.
  Status PlaceStubs() {
    std::string missing;
    size_ = AlignUp(size_, sizeof kStub);
    for (const Object& object : objects_) {
      for (const Elf64_Sym& symbol : object.symbols) {
        if (symbol.st_shndx != SHN_UNDEF || symbol.st_name == 0) continue;
        const std::string_view name = NameAt(object.names, symbol.st_name);
        if (stubs_.count(name)) continue;
        void* address = FindSymbol(name);
        if (!address) missing += (missing.empty() ? "" : ", ") + std::string(name);
        stubs_[name] = {size_, address};
        size_ += sizeof kStub;
      }
    }
    if (!missing.empty()) return Unimplemented("the code calls functions that are not known: ", CEscape(missing));
    return OkStatus();
  }

  // Functions of the object's own are nobody else's, and may be missing in the code that takes its place.
  static bool IsFunction(const Elf64_Sym& symbol) {
    return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL &&
           symbol.st_shndx != SHN_UNDEF;
  }

  // An entry for each function, and in pages of their own what the entries jump to.
  void PlaceEntries() {
    if (!replaceable_) return;
    size_t functions = 0;
    for (const Object& object : objects_)
      functions += static_cast<size_t>(std::count_if(object.symbols.begin(), object.symbols.end(), &IsFunction));
    entries_ = AlignUp(size_, sizeof kEntry);
    targets_ = AlignUp(entries_ + functions * sizeof kEntry, PageBytes());
    size_ = targets_ + functions * sizeof(void*);
  }

  Status Map() {
    code_.reset(new LoadedCode());
    if (size_ == 0) return OkStatus();
    const size_t bytes = AlignUp(size_, PageBytes());
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return ResourceExhausted("no memory for ", bytes, " bytes of code");
    code_->base_ = static_cast<uint8_t*>(memory);
    code_->size_ = bytes;
    for (const auto& [name, stub] : stubs_) {
      std::memcpy(code_->base_ + stub.place, kStub, sizeof kStub);
      std::memcpy(code_->base_ + stub.place + kStubAddress, &stub.address, sizeof stub.address);
    }
    return OkStatus();
  }

  // Where the symbol lies in the mapping: of a function outside, its stub.
  bool Find(const Object& object, uint64_t index, int64_t& place, bool& outside) const {
    if (index >= object.symbols.size()) return false;
    const Elf64_Sym& symbol = object.symbols[index];
    outside = symbol.st_shndx == SHN_UNDEF;
    if (outside) {
      const auto stub = stubs_.find(NameAt(object.names, symbol.st_name));
      if (stub == stubs_.end()) return false;
      place = static_cast<int64_t>(stub->second.place);
      return true;
    }
    if (symbol.st_shndx >= object.sections.size() || !object.sections[symbol.st_shndx].kept) return false;
    const Section& section = object.sections[symbol.st_shndx];
    if (symbol.st_value > section.bytes.size()) return false;
    place = static_cast<int64_t>(section.place + symbol.st_value);
    return true;
  }

  Status Relocate(const Object& object, const Section& section, std::string_view entries) {
    for (uint64_t n = 0; n < entries.size() / sizeof(Elf64_Rela); ++n) {
      Elf64_Rela entry;
      ReadAt(entries, n * sizeof entry, entry);
      const uint32_t type = ELF64_R_TYPE(entry.r_info);
      const bool wide = type == R_X86_64_64 || type == R_X86_64_PC64;
      int64_t target;
      bool outside;
      if (!Find(object, ELF64_R_SYM(entry.r_info), target, outside)) return Damaged("what a relocation refers to");
      if (entry.r_offset > section.bytes.size() || section.bytes.size() - entry.r_offset < (wide ? 8u : 4u))
        return Damaged("the place of a relocation");
      const int64_t at = static_cast<int64_t>(section.place + entry.r_offset);
      switch (type) {
        case R_X86_64_GOTPCREL:
        case R_X86_64_GOTPCRELX:
        case R_X86_64_REX_GOTPCRELX:
          if (!outside) return Unimplemented("code that looks up the address of a function of its own");
          target += static_cast<int64_t>(kStubAddress);
          break;
        case R_X86_64_PLT32: break;
        case R_X86_64_PC32:
        case R_X86_64_PC64:
        case R_X86_64_64:
          if (outside)
            return Unimplemented("code that reads ",
                                 NameAt(object.names, object.symbols[ELF64_R_SYM(entry.r_info)].st_name));
          break;
        default: return Unimplemented("relocation ", type, " of x86-64");
      }
      // Whatever a hostile addend says: the sum wraps, and is then looked at.
      const uint64_t from = type == R_X86_64_64 ? -reinterpret_cast<uint64_t>(code_->base_) : static_cast<uint64_t>(at);
      const uint64_t value = static_cast<uint64_t>(target) + static_cast<uint64_t>(entry.r_addend) - from;
      if (!wide && static_cast<int64_t>(value) != static_cast<int32_t>(value))
        return Damaged("a relocation that is too far");
      std::memcpy(code_->base_ + at, &value, wide ? 8 : 4);
    }
    return OkStatus();
  }

  std::vector<LoadedCode::Function> FunctionsOf(const Object& object) {
    std::vector<LoadedCode::Function> functions;
    for (uint64_t n = 0; n < object.symbols.size(); ++n) {
      int64_t place;
      bool outside;
      if (!IsFunction(object.symbols[n]) || !Find(object, n, place, outside)) continue;
      functions.push_back({std::string(NameAt(object.names, object.symbols[n].st_name)), code_->base_ + place});
      if (replaceable_) MakeEntry(functions.back());
    }
    return functions;
  }

  void MakeEntry(LoadedCode::Function& function) {
    uint8_t* const entry = code_->base_ + entries_;
    function.target = reinterpret_cast<void**>(code_->base_ + targets_);
    *function.target = function.address;
    const auto distance = static_cast<int32_t>(targets_ - (entries_ + kEntryJump));
    std::memcpy(entry, kEntry, sizeof kEntry);
    std::memcpy(entry + kEntryDistance, &distance, sizeof distance);
    function.address = entry;
    entries_ += sizeof kEntry;
    targets_ += sizeof(void*);
  }

  struct Stub {
    size_t place;
    void* address;
  };
  std::vector<Object> objects_;
  std::map<std::string_view, Stub> stubs_;
  size_t size_ = 0;
  bool replaceable_;
  size_t entries_ = 0, targets_ = 0;  // where the next one's are, if replaceable
  std::shared_ptr<LoadedCode> code_;
};

Result<std::shared_ptr<const LoadedCode>> LoadedCode::Load(std::span<const std::string_view> objects) {
  return Linker(false).Run(objects);
}
Result<std::shared_ptr<const LoadedCode>> LoadedCode::LoadReplaceable(std::string_view object) {
  return Linker(true).Run({&object, 1});
}

Status LoadedCode::ReplaceBy(const LoadedCode& code) const {
  std::vector<void*> targets;
  for (size_t object = 0; object < functions_.size(); ++object) {
    for (const Function& f : functions_[object]) {
      targets.push_back(code.Find(object, f.name));
      if (!targets.back() || !f.target) return InvalidArgument("no other code for ", f.name);
    }
  }
  size_t next = 0;
  for (const std::vector<Function>& object : functions_)
    for (const Function& f : object)
      std::atomic_ref<void*>(*f.target).store(targets[next++], std::memory_order_release);
  return OkStatus();
}

LoadedCode::~LoadedCode() {
  if (base_) munmap(base_, size_);
}

void* LoadedCode::Find(size_t object, std::string_view name) const {
  if (object >= functions_.size()) return nullptr;
  for (const Function& f : functions_[object])
    if (f.name == name) return f.address;
  return nullptr;
}

}  // namespace strop::cpu
