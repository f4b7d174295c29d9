// Threads without a library: counts the primes below a limit (argument 2) with a number of threads (argument 1, default
// 4) and adds the counts under a sleeping mutex. Debian's wasi-libc does not support threads, so this program calls
// WASI and wasi-threads directly.
typedef unsigned int u32;
typedef unsigned long long u64;

#define IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
IMPORT("wasi", "thread-spawn") int thread_spawn(void *argument);
IMPORT("wasi_snapshot_preview1", "fd_write") u32 fd_write(u32 fd, const void *vectors, u32 count, u32 *written);
IMPORT("wasi_snapshot_preview1", "args_sizes_get") u32 args_sizes_get(u32 *count, u32 *bytes);
IMPORT("wasi_snapshot_preview1", "args_get") u32 args_get(char **arguments, char *text);
IMPORT("wasi_snapshot_preview1", "proc_exit") _Noreturn void proc_exit(u32 status);

enum { MOST = 16, STACK = 16384 };

static void sleep_on(u32 *word, u32 value) { __builtin_wasm_memory_atomic_wait32((int *)word, (int)value, -1); }
static void wake(u32 *word, u32 count) { __builtin_wasm_memory_atomic_notify((int *)word, count); }

// 0 free, 1 held, 2 held with possible waiters.
static void lock(u32 *mutex) {
  u32 was = 0;
  if (__atomic_compare_exchange_n(mutex, &was, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return;
  while (__atomic_exchange_n(mutex, 2, __ATOMIC_SEQ_CST) != 0) sleep_on(mutex, 2);
}

static void unlock(u32 *mutex) {
  if (__atomic_exchange_n(mutex, 0, __ATOMIC_SEQ_CST) == 2) wake(mutex, 1);
}

struct thread {
  char *stack;
  u32 first, step, limit;
  u32 done;
};

static struct thread threads[MOST];
static char stacks[MOST][STACK] __attribute__((aligned(16)));
static u32 mutex, total, finished;

static int is_prime(u32 n) {
  for (u32 d = 3; d * d <= n; d += 2) if (n % d == 0) return 0;
  return n > 1;
}

static __attribute__((noinline)) void run_thread(int id, struct thread *self) {
  (void)id;
  u32 found = 0;
  for (u32 n = self->first; n < self->limit; n += self->step) found += is_prime(n);
  lock(&mutex);
  total += found;
  finished++;
  unlock(&mutex);
  __atomic_store_n(&self->done, 1, __ATOMIC_SEQ_CST);
  wake(&self->done, 1);
}

// Sets the thread's stack pointer before C code uses the stack; the function itself uses none.
__attribute__((export_name("wasi_thread_start"))) void wasi_thread_start(int id, struct thread *self) {
  __asm__ volatile(".globaltype __stack_pointer, i32\nlocal.get %0\nglobal.set __stack_pointer" : : "r"(self->stack));
  run_thread(id, self);
}

static void print(const char *text) {
  u32 length = 0, written;
  while (text[length]) length++;
  struct { const char *at; u32 length; } vector = {text, length};
  fd_write(1, &vector, 1, &written);
}

static void print_number(u32 n) {
  char text[12];
  int at = 11;
  text[at] = 0;
  do text[--at] = '0' + n % 10; while (n /= 10);
  print(text + at);
}

static u32 number(const char *text) {
  u32 n = 0;
  while (*text >= '0' && *text <= '9') n = n * 10 + (u32)(*text++ - '0');
  return n;
}

static char *arguments[8];
static char text[1024];

__attribute__((export_name("_start"))) void start(void) {
  u32 count, bytes, size = 4, limit = 200000;
  if (args_sizes_get(&count, &bytes) == 0 && count <= 8 && bytes <= sizeof text) {
    args_get(arguments, text);
    if (count > 1) size = number(arguments[1]);
    if (count > 2) limit = number(arguments[2]);
  }
  if (size < 1 || size > MOST) {
    print("between 1 and 16 threads\n");
    proc_exit(2);
  }
  for (u32 k = 0; k < size; k++) {
    threads[k] = (struct thread){stacks[k] + STACK, 3 + 2 * k, 2 * size, limit, 0};
    if (thread_spawn(&threads[k]) < 0) {
      print("no more threads\n");
      proc_exit(3);
    }
  }
  for (u32 k = 0; k < size; k++) while (!__atomic_load_n(&threads[k].done, __ATOMIC_SEQ_CST)) sleep_on(&threads[k].done, 0);
  print_number(total + (limit > 2));
  print(" primes below ");
  print_number(limit);
  print(", found by ");
  print_number(finished);
  print(finished == 1 ? " thread\n" : " threads\n");
}
