// What the plugin and a transport library say to each other. Each may have a C++ library of its own, so that only plain
// data crosses, and no exception.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace strop {

inline constexpr int32_t kTransportVersion = 1;
inline constexpr char kTransportEntry[] = "StropTransport";

struct TransportError {
  int32_t code = 0;  // of StatusCode; 0: none
  char message[1000] = "";
};

inline void Fail(TransportError* error, int32_t code, const char* message) {
  error->code = code;
  std::snprintf(error->message, sizeof(error->message), "%s", message);
}

// Keys and values are text. False: the error says why.
struct TransportStore {
  void* context;
  bool (*put)(void* context, const char* key, const char* value, TransportError* error);
  bool (*get)(void* context, const char* key, int64_t timeout_ms, char* value, size_t capacity, TransportError* error);
};

struct TransportPlace {
  int32_t rank;
  int32_t size;
  const char* address;
  int64_t timeout_ms;
  TransportStore store;  // valid during connect only
};

struct TransportLibrary {
  int32_t version;
  // Null on failure, here and below.
  void* (*connect)(const TransportPlace* place, TransportError* error);
  void (*disconnect)(void* connection);
  void* (*send)(void* connection, int32_t peer, uint64_t tag, const void* data, int64_t bytes, TransportError* error);
  void* (*receive)(void* connection, int32_t peer, uint64_t tag, void* data, int64_t bytes, TransportError* error);
  bool (*wait)(void* transfer, int64_t timeout_ms, TransportError* error);
  void (*cancel)(void* transfer);
  void (*release)(void* transfer);
};

}  // namespace strop

// The one symbol of a transport library.
extern "C" const strop::TransportLibrary* StropTransport();
