// The host's functions for plugins written in C: one declaration per import. Unused declarations produce no imports, so
// including this file requests no authority. Functions that count return a negated status on failure, the others a
// status (0 is ok).
#ifndef WAFT_H
#define WAFT_H

typedef signed char i8;
typedef unsigned char u8;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

#define IMPORT(ns, fn) __attribute__((import_module(ns), import_name(fn)))
#define EXPORT(name) __attribute__((export_name(name)))

enum { OK = 0, BOUNDS = 1, NO_MEMORY = 2, DENIED = 3, MISSING = 4, EXISTS = 5, INVALID = 6, FAILED = 7, CLOSED = 8 };
enum { LOG_ERROR = 0, LOG_WARN = 1, LOG_INFO = 2, LOG_DEBUG = 3, LOG_TRACE = 4 };

IMPORT("waft:self@1", "config-size") i32 config_size(void);
IMPORT("waft:self@1", "config-read") i32 config_read(void *to, u32 room);
IMPORT("waft:self@1", "log") void host_log(i32 level, const void *text, u32 length);
IMPORT("waft:self@1", "abort") void host_abort(const void *text, u32 length);
IMPORT("waft:caller@1", "read") i32 caller_read(u64 from, void *to, u32 length);
IMPORT("waft:caller@1", "write") i32 caller_write(u64 to, const void *from, u32 length);
IMPORT("waft:clock-wall@1", "now") i64 wall_clock(void);
IMPORT("waft:stdio@1", "write") i32 stdio_write(i32 stream, const void *from, u32 length);
IMPORT("waft:fs@1", "read") i32 fs_read(const char *path, u32 length, i64 offset, void *to, u32 room);
IMPORT("waft:fs@1", "write") i32 fs_write(const char *path, u32 length, i64 offset, const void *from, u32 count);
IMPORT("waft:fs@1", "truncate") i32 fs_truncate(const char *path, u32 length, i64 size);
IMPORT("waft:fs@1", "rename") i32 fs_rename(const char *from, u32 from_length, const char *to, u32 to_length);
IMPORT("waft:fs@1", "remove") i32 fs_remove(const char *path, u32 length);
IMPORT("waft:fs@1", "sync") i32 fs_sync(const char *path, u32 length);
IMPORT("waft:net@1", "connect") i32 net_connect(const char *host, u32 length, i32 port);
IMPORT("waft:net@1", "connect-tls") i32 net_connect_tls(const char *host, u32 length, i32 port);
IMPORT("waft:net@1", "send") i32 net_send(i32 socket, const void *from, u32 length);
IMPORT("waft:net@1", "receive") i32 net_receive(i32 socket, void *to, u32 room);
IMPORT("waft:net@1", "close") i32 net_close(i32 socket);

#define TEXT(s) s, sizeof(s) - 1

static void copy(void *to, const void *from, u32 n) {
  for (u32 i = 0; i < n; i++) ((u8 *)to)[i] = ((const u8 *)from)[i];
}

static int same(const void *a, const void *b, u32 n) {
  for (u32 i = 0; i < n; i++) {
    if (((const u8 *)a)[i] != ((const u8 *)b)[i]) return 0;
  }
  return 1;
}

// The value of an integer key of the configuration, which is canonical JSON (RFC 8785) of a closed schema: `"key":123`.
__attribute__((unused)) static i32 config_integer(const char *key, u32 key_length, i32 otherwise) {
  static u8 text[4096];
  i32 size = config_read(text, sizeof text);
  for (i32 i = 0; i + (i32)key_length + 3 < size; i++) {
    if (text[i] != '"' || !same(text + i + 1, key, key_length)) continue;
    if (text[i + 1 + key_length] != '"' || text[i + 2 + key_length] != ':') continue;
    i32 value = 0;
    for (i32 at = i + 3 + (i32)key_length; at < size && text[at] >= '0' && text[at] <= '9'; at++) {
      value = value * 10 + (text[at] - '0');
    }
    return value;
  }
  return otherwise;
}

#endif
