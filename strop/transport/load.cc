// Opens a transport library: beside the file that this code is in, else where the dynamic linker looks.
#include <dlfcn.h>

#include <cstring>
#include <filesystem>

#include "strop/transport/library.h"
#include "strop/transport/transport.h"

namespace strop {
namespace {

Status StatusOf(const TransportError& error) {
  return Status(static_cast<StatusCode>(error.code ? error.code : static_cast<int32_t>(StatusCode::kInternal)),
                error.message);
}

bool Report(const Status& status, TransportError* error) {
  if (status.ok()) return true;
  Fail(error, static_cast<int32_t>(status.code()), status.message().c_str());
  return false;
}

// A store and the beginning of its keys, as the library sees them.
struct Store {
  KeyValueStore* store;
  const std::string* prefix;

  static bool Put(void* context, const char* key, const char* value, TransportError* error) {
    const Store& self = *static_cast<Store*>(context);
    return Report(self.store->Put(StrCat(*self.prefix, "/", key), value), error);
  }
  static bool Get(void* context, const char* key, int64_t timeout_ms, char* value, size_t capacity,
                  TransportError* error) {
    const Store& self = *static_cast<Store*>(context);
    Result<std::string> got = self.store->Get(StrCat(*self.prefix, "/", key), Milliseconds(timeout_ms));
    if (got.ok() && got->size() >= capacity) got = Internal("the value of ", key, " has ", got->size(), " bytes");
    if (!got.ok()) return Report(got.status(), error);
    std::memcpy(value, got->c_str(), got->size() + 1);
    return true;
  }
};

class LibraryTransfer : public Transfer {
 public:
  LibraryTransfer(const TransportLibrary* library, void* transfer) : library_(library), transfer_(transfer) {}
  ~LibraryTransfer() override { library_->release(transfer_); }
  Status Wait(Milliseconds timeout) override {
    TransportError error;
    return library_->wait(transfer_, timeout.count(), &error) ? OkStatus() : StatusOf(error);
  }
  void Cancel() override { library_->cancel(transfer_); }

 private:
  const TransportLibrary* library_;
  void* transfer_;
};

class LibraryTransport : public Transport {
 public:
  LibraryTransport(const TransportLibrary* library, void* connection) : library_(library), connection_(connection) {}
  ~LibraryTransport() override { library_->disconnect(connection_); }
  Result<std::unique_ptr<Transfer>> Send(int32_t peer, uint64_t tag, const void* data, int64_t bytes) override {
    TransportError error;
    return Wrap(library_->send(connection_, peer, tag, data, bytes, &error), error);
  }
  Result<std::unique_ptr<Transfer>> Receive(int32_t peer, uint64_t tag, void* data, int64_t bytes) override {
    TransportError error;
    return Wrap(library_->receive(connection_, peer, tag, data, bytes, &error), error);
  }

 private:
  Result<std::unique_ptr<Transfer>> Wrap(void* transfer, const TransportError& error) const {
    if (!transfer) return StatusOf(error);
    return std::unique_ptr<Transfer>(new LibraryTransfer(library_, transfer));
  }

  const TransportLibrary* library_;
  void* connection_;
};

std::string_view PackageOf(std::string_view name) { return name == "mpi" ? "libopenmpi-dev" : "libgloo-dev"; }

std::string FolderOfThisCode() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&FolderOfThisCode), &info) || !info.dli_fname) return "";
  return std::filesystem::path(info.dli_fname).parent_path().string();
}

// Libraries stay open: they have threads and atexit functions of their own.
Result<const TransportLibrary*> OpenLibrary(std::string_view name) {
  if (name != "gloo" && name != "mpi")
    return InvalidArgument("option collectives is \"", CEscape(name), "\"; there are gloo and mpi");
  const std::string file = StrCat("libstrop_", name, ".so");
  const std::string beside = StrCat(FolderOfThisCode(), "/", file);
  std::error_code ignored;
  const bool is_beside = std::filesystem::exists(beside, ignored);
  const std::string& path = is_beside ? beside : file;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library && is_beside) return NotFound("collectives=", name, ": ", dlerror());
  if (!library)
    return NotFound("collectives=", name, " needs ", file, " beside the plugin; it is built where the package ",
                    PackageOf(name), " is installed (", dlerror(), ")");
  auto* entry = reinterpret_cast<decltype(&StropTransport)>(dlsym(library, kTransportEntry));
  if (!entry) return InvalidArgument(path, " is no transport library of Strop: it has no ", kTransportEntry);
  const TransportLibrary* table = entry();
  if (table->version != kTransportVersion)
    return FailedPrecondition(path, " comes from another version of Strop (", table->version, " instead of ",
                              kTransportVersion, ")");
  return table;
}

}  // namespace

Result<std::unique_ptr<Transport>> ConnectProcesses(std::string_view name, const ProcessPlace& place,
                                                    const std::string& prefix, KeyValueStore& store) {
  STROP_ASSIGN(const TransportLibrary* library, OpenLibrary(name));
  Store keys{&store, &prefix};
  const TransportPlace here{.rank = place.rank,
                            .size = place.size,
                            .address = place.address.c_str(),
                            .timeout_ms = place.timeout.count(),
                            .store = {&keys, &Store::Put, &Store::Get}};
  TransportError error;
  void* connection = library->connect(&here, &error);
  if (!connection)
    return StatusOf(error).Note(StrCat("while process ", place.rank, " of ", place.size, " connects by ", name));
  return std::unique_ptr<Transport>(new LibraryTransport(library, connection));
}

}  // namespace strop
