// Recycled<T>: class-level new and delete for small objects that come and go with every call of a program (buffers and
// their storage). Each thread keeps up to kKept freed objects' memory and gives it out again: no lock, and no search in
// malloc, whose own caches hold seven of a size.
//
//   class Storage : public RefCounted<Storage>, public Recycled<Storage> { ... };
//
// T must be final or have no larger derived class. Under ASan and TSan, and where a thread ends, memory goes back to
// ::operator delete, so that uses after the end are seen.
#pragma once
#include <cstddef>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STROP_RECYCLES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define STROP_RECYCLES 0
#endif
#endif
#ifndef STROP_RECYCLES
#define STROP_RECYCLES 1
#endif

namespace strop {

template <class T>
class Recycled {
 public:
  static void* operator new(size_t bytes) {
    static_assert(alignof(T) <= alignof(std::max_align_t));
    Kept& kept = kept_;
    if (!STROP_RECYCLES || !kept.first || bytes != sizeof(T)) return ::operator new(bytes);
    Node* node = kept.first;
    kept.first = node->next;
    --kept.count;
    return node;
  }
  static void operator delete(void* object, size_t bytes) {
    Kept& kept = kept_;
    if (!STROP_RECYCLES || kept.count >= kept.limit || bytes != sizeof(T)) return ::operator delete(object);
    if (!kept.first) GiveBackAtExit();
    kept.first = new (object) Node{kept.first};
    ++kept.count;
  }

 private:
  static constexpr int kKept = 256;
  struct Node {
    Node* next;
  };
  // Trivial, so that deletes in the last moments of a thread are safe whatever was destroyed before.
  struct Kept {
    Node* first;
    int count;
    int limit;
  };
  static constinit inline thread_local Kept kept_{nullptr, 0, kKept};

  static void GiveBackAtExit() {
    struct Exit {
      ~Exit() {
        kept_.limit = 0;
        while (Node* node = kept_.first) {
          kept_.first = node->next;
          ::operator delete(node);
        }
        kept_.count = 0;
      }
    };
    static thread_local Exit exit;
    (void)exit;
  }
};

}  // namespace strop
