/* The least of a C++ runtime that exceptions need: what clang's code for throw and for catch of everything calls. An exception's value lies in a
 * static place, so one may be in flight at a time. */
#ifndef EXCEPTIONS_H
#define EXCEPTIONS_H

extern "C" {
static char thrown_value[64];

void *__cxa_allocate_exception(unsigned long) noexcept { return thrown_value; }
void __cxa_free_exception(void *) noexcept {}
[[noreturn]] void __cxa_throw(void *value, void *, void (*)(void *)) { __builtin_wasm_throw(0, value); }
void *__cxa_begin_catch(void *value) noexcept { return value; }
void __cxa_end_catch() {}
[[noreturn]] void __cxa_rethrow() { __builtin_wasm_throw(0, thrown_value); }
}
namespace std {
[[noreturn]] void terminate() noexcept { __builtin_trap(); }
}

#endif
