/*
 * The exception runtime for C++ programs with -fwasm-exceptions that Debian's libc++abi, built without exceptions,
 * lacks: allocation, throw, catch, rethrow, and the personality function that finds a handler in the compiler's tables.
 * A Header precedes each exception object; the tag's payload is the object's address. The tables are those of the
 * Itanium C++ ABI with indices of landing pads instead of addresses.
 */
#ifndef EXCEPTIONS_RUNTIME_H
#define EXCEPTIONS_RUNTIME_H

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <typeinfo>

namespace __cxxabiv1 {
/* The virtual functions of libc++abi's type descriptors. */
class __shim_type_info : public std::type_info {
 public:
  virtual ~__shim_type_info();
  virtual void noop1() const;
  virtual void noop2() const;
  virtual bool can_catch(const __shim_type_info *thrown, void *&object) const = 0;
};
}

namespace {

struct Header {
  const std::type_info *type;
  void *(*destructor)(void *); /* destructors return their object here */
  void *adjusted;
  Header *next;
  int references;
  int pad[3];
};

Header *caught;

Header *headerOf(void *object) { return static_cast<Header *>(object) - 1; }

void release(Header *header) {
  if (--header->references > 0) return;
  if (header->destructor) header->destructor(header + 1);
  std::free(header);
}

uintptr_t readUnsigned(const uint8_t *&at) {
  uintptr_t value = 0;
  for (int shift = 0;; shift += 7) {
    uint8_t byte = *at++;
    value |= static_cast<uintptr_t>(byte & 127) << shift;
    if (byte < 128) return value;
  }
}

intptr_t readSigned(const uint8_t *&at) {
  uintptr_t value = 0;
  for (int shift = 0;;) {
    uint8_t byte = *at++;
    value |= static_cast<uintptr_t>(byte & 127) << shift;
    shift += 7;
    if (byte < 128) {
      if (shift < 32 && (byte & 64)) value |= ~uintptr_t(0) << shift;
      return static_cast<intptr_t>(value);
    }
  }
}

}

extern "C" {

/* Compiled code stores the index of its landing pad and its table here, and reads the selected handler. */
struct {
  uintptr_t index;
  const uint8_t *table;
  uintptr_t selector;
} __wasm_lpad_context;

void *__cxa_allocate_exception(size_t size) noexcept {
  auto *header = static_cast<Header *>(std::calloc(1, sizeof(Header) + size));
  if (!header) std::terminate();
  return header + 1;
}

void __cxa_free_exception(void *object) noexcept { std::free(headerOf(object)); }

[[noreturn]] void __cxa_throw(void *object, std::type_info *type, void *(*destructor)(void *)) {
  Header *header = headerOf(object);
  header->type = type;
  header->destructor = destructor;
  header->adjusted = object;
  header->references = 1;
  __builtin_wasm_throw(0, object);
}

/* Looks up the landing pad: selects the first handler that accepts the exception, 0 for none. */
int _Unwind_CallPersonality(void *object) {
  Header *header = headerOf(object);
  const uint8_t *at = __wasm_lpad_context.table;
  __wasm_lpad_context.selector = 0;
  if (*at++ != 0xff) std::abort();
  const uint8_t *types = nullptr;
  if (*at++ != 0xff) {
    uintptr_t offset = readUnsigned(at);
    types = at + offset;
  }
  at++; /* encoding of call sites: always unsigned LEB */
  uintptr_t length = readUnsigned(at);
  const uint8_t *actions = at + length;
  uintptr_t action = 0;
  for (uintptr_t k = 0; k <= __wasm_lpad_context.index; k++) {
    readUnsigned(at);
    action = readUnsigned(at);
  }
  if (action == 0) return 0;
  const uint8_t *entry = actions + action - 1;
  for (;;) {
    intptr_t index = readSigned(entry);
    const uint8_t *link = entry;
    intptr_t next = readSigned(entry);
    if (index > 0) {
      auto *type = reinterpret_cast<const __cxxabiv1::__shim_type_info *const *>(types)[-index];
      void *adjusted = header + 1;
      auto *thrown = static_cast<const __cxxabiv1::__shim_type_info *>(header->type);
      bool takes = type == nullptr || type->can_catch(thrown, adjusted);
      if (takes) {
        header->adjusted = adjusted;
        __wasm_lpad_context.selector = static_cast<uintptr_t>(index);
        return 0;
      }
    }
    if (next == 0) return 0;
    entry = link + next;
  }
}

void *__cxa_begin_catch(void *object) noexcept {
  Header *header = headerOf(object);
  header->references++;
  /* A stack of nodes: an exception may be caught by several handlers at once. */
  auto *node = static_cast<Header *>(std::calloc(1, sizeof(Header)));
  node->adjusted = object;
  node->next = caught;
  caught = node;
  return header->adjusted;
}

void *__cxa_get_exception_ptr(void *object) noexcept { return headerOf(object)->adjusted; }

void __cxa_end_catch() {
  Header *node = caught, *header = headerOf(node->adjusted);
  caught = node->next;
  bool inFlight = node->references != 0;
  std::free(node);
  header->references--;
  if (!inFlight) release(header);
}

[[noreturn]] void __cxa_rethrow() {
  if (!caught) std::terminate();
  caught->references = 1; /* leaving the handler does not release the exception */
  __builtin_wasm_throw(0, caught->adjusted);
}

}

#endif
