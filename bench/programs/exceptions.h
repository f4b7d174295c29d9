/* The minimal C++ runtime for exceptions: the functions that clang's code for throw and for catch (...) calls. The
 * value of an exception has static storage, so only one exception may be in flight. */
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
