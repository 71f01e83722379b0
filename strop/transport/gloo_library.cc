// libstrop_gloo.so: messages by Gloo's unbound buffers over TCP. All processes are connected with each other from the
// start; when one dies, its connections close, and whoever waits for it hears of it at once.
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "strop/transport/library.h"

namespace strop {
namespace {

// Numbers of StatusCode that this file gives; it does without the rest of Strop.
constexpr int32_t kCancelled = 1, kDeadlineExceeded = 4, kUnavailable = 14;

constexpr size_t kMaxValueBytes = 1 << 16;  // an address is below 200

// Gloo's store over ours, which holds text: two characters a byte.
class HexStore : public gloo::rendezvous::Store {
 public:
  HexStore(const TransportStore& store, int64_t timeout_ms) : store_(store), timeout_ms_(timeout_ms) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    std::string text;
    for (char c : data) {
      text += "0123456789abcdef"[static_cast<uint8_t>(c) >> 4];
      text += "0123456789abcdef"[static_cast<uint8_t>(c) & 15];
    }
    TransportError error;
    if (!store_.put(store_.context, key.c_str(), text.c_str(), &error)) throw std::runtime_error(error.message);
  }

  std::vector<char> get(const std::string& key) override {
    std::vector<char> text(kMaxValueBytes);
    TransportError error;
    if (!store_.get(store_.context, key.c_str(), timeout_ms_, text.data(), text.size(), &error))
      throw std::runtime_error(error.message);
    std::vector<char> data;
    auto value = [](char c) { return c >= 'a' ? c - 'a' + 10 : c - '0'; };
    for (size_t i = 0; text[i] && text[i + 1]; i += 2)
      data.push_back(static_cast<char>(value(text[i]) << 4 | value(text[i + 1])));
    return data;
  }

  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override { wait(keys); }

 private:
  const TransportStore& store_;
  int64_t timeout_ms_;
};

struct GlooTransfer {
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
  bool sends = false;
  std::atomic<bool> cancelled{false};
};

// Runs fn; an exception becomes the error, and null.
template <class Fn>
auto Guarded(int32_t code, TransportError* error, Fn fn) -> decltype(fn()) {
  try {
    return fn();
  } catch (const std::exception& e) {
    Fail(error, code, e.what());
  } catch (...) {
    Fail(error, code, "Gloo failed for an unknown reason");
  }
  return {};
}

using Connection = gloo::rendezvous::Context;

void* Connect(const TransportPlace* place, TransportError* error) {
  return Guarded(kUnavailable, error, [&]() -> void* {
    gloo::transport::tcp::attr attributes(place->address);
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(attributes);
    auto connection = std::make_unique<Connection>(place->rank, place->size);
    connection->setTimeout(std::chrono::milliseconds(place->timeout_ms));
    HexStore store(place->store, place->timeout_ms);
    connection->connectFullMesh(store, device);
    return connection.release();
  });
}

void Disconnect(void* connection) {
  TransportError ignored;
  Guarded(kUnavailable, &ignored, [&] {
    delete static_cast<Connection*>(connection);
    return true;
  });
}

void* Start(void* connection, int32_t peer, uint64_t tag, void* data, int64_t bytes, bool sends,
            TransportError* error) {
  return Guarded(kUnavailable, error, [&]() -> void* {
    auto transfer = std::make_unique<GlooTransfer>();
    transfer->sends = sends;
    transfer->buffer = static_cast<Connection*>(connection)->createUnboundBuffer(data, static_cast<size_t>(bytes));
    if (sends)
      transfer->buffer->send(peer, tag);
    else
      transfer->buffer->recv(peer, tag);
    return transfer.release();
  });
}

void* Send(void* connection, int32_t peer, uint64_t tag, const void* data, int64_t bytes, TransportError* error) {
  return Start(connection, peer, tag, const_cast<void*>(data), bytes, true, error);
}

void* Receive(void* connection, int32_t peer, uint64_t tag, void* data, int64_t bytes, TransportError* error) {
  return Start(connection, peer, tag, data, bytes, false, error);
}

bool Wait(void* opaque, int64_t timeout_ms, TransportError* error) {
  auto* transfer = static_cast<GlooTransfer*>(opaque);
  const std::chrono::milliseconds timeout(timeout_ms);
  const auto start = std::chrono::steady_clock::now();
  const bool done = Guarded(kUnavailable, error, [&] {
    if (transfer->cancelled) return false;
    return transfer->sends ? transfer->buffer->waitSend(timeout) : transfer->buffer->waitRecv(timeout);
  });
  if (done) return true;
  if (transfer->cancelled)
    Fail(error, kCancelled, "cancelled");
  else if (error->code == 0 || std::chrono::steady_clock::now() - start >= timeout)
    error->code = kDeadlineExceeded;
  return false;
}

void Cancel(void* opaque) {
  auto* transfer = static_cast<GlooTransfer*>(opaque);
  transfer->cancelled = true;
  if (transfer->sends)
    transfer->buffer->abortWaitSend();
  else
    transfer->buffer->abortWaitRecv();
}

void Release(void* transfer) { delete static_cast<GlooTransfer*>(transfer); }

constexpr TransportLibrary kGloo = {kTransportVersion, &Connect, &Disconnect, &Send,
                                    &Receive,          &Wait,    &Cancel,     &Release};

}  // namespace
}  // namespace strop

extern "C" __attribute__((visibility("default"))) const strop::TransportLibrary* StropTransport() {
  return &strop::kGloo;
}
