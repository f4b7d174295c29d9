// Structured logging and counters: one line of JSON per event on stderr, and in /logs/app.log if file access is
// granted. Counters are summed and written as one line when the program ends.
#include "../waft.h"

enum { MAX_TEXT = 4096, COUNTERS = 64, MAX_NAME = 64 };

static const char FILE_NAME[] = "/logs/app.log";
static const char *const NAMES[] = {"error", "warn", "info", "debug", "trace"};
static u8 text[MAX_TEXT];
static u8 line[MAX_TEXT * 6 + 256];
static u32 length;
static i32 least, to_file;

static struct { u8 name[MAX_NAME]; u32 length; i64 value; } counters[COUNTERS];
static u32 used;

static void put(const char *bytes, u32 n) {
  copy(line + length, bytes, n);
  length += n;
}

static void put_number(i64 value) {
  char digits[24];
  u32 at = sizeof digits;
  u64 rest = value < 0 ? 0 - (u64)value : (u64)value;
  do digits[--at] = (char)('0' + rest % 10);
  while ((rest /= 10) != 0);
  if (value < 0) digits[--at] = '-';
  put(digits + at, sizeof digits - at);
}

// A JSON string; non-ASCII bytes are copied unchanged, so the output is UTF-8 only if the text is.
static void put_string(const u8 *bytes, u32 n) {
  static const char HEX[] = "0123456789abcdef";
  put(TEXT("\""));
  for (u32 i = 0; i < n; i++) {
    if (bytes[i] == '"' || bytes[i] == '\\') put(TEXT("\\"));
    if (bytes[i] < 32 || bytes[i] == 127) {
      put(TEXT("\\u00"));
      put(&HEX[bytes[i] >> 4], 1);
      put(&HEX[bytes[i] & 15], 1);
    } else put((const char *)bytes + i, 1);
  }
  put(TEXT("\""));
}

static void begin(i32 level) {
  length = 0;
  put(TEXT("{"));
  i64 now = wall_clock();
  if (now >= 0) {
    put(TEXT("\"ms\":"));
    put_number(now / 1000000);
    put(TEXT(","));
  }
  u32 n = 0;
  while (NAMES[level][n] != 0) n++;
  put(TEXT("\"level\":"));
  put_string((const u8 *)NAMES[level], n);
}

static i32 finish(void) {
  put(TEXT("}\n"));
  i32 wrote = stdio_write(2, line, length);
  if (to_file) {
    i32 filed = fs_write(TEXT(FILE_NAME), -1, line, length);
    if (filed == -DENIED) to_file = 0;
    else if (filed < 0) return -filed;
  }
  return wrote < 0 ? -wrote : OK;
}

EXPORT("waft:self@1#init") void init(void) {
  least = config_integer(TEXT("mostVerbose"), LOG_INFO);
  to_file = 1;
}

EXPORT("plugins.waft.example/contracts/log@1#event") i32 event(i32 level, u64 at, u32 n) {
  if (level < 0 || level > LOG_TRACE || n > MAX_TEXT) return INVALID;
  if (level > least) return OK;
  i32 status = caller_read(at, text, n);
  if (status != OK) return status;
  begin(level);
  put(TEXT(",\"message\":"));
  put_string(text, n);
  return finish();
}

EXPORT("plugins.waft.example/contracts/log@1#count") i32 count(u64 name, u32 n, i64 delta) {
  if (n == 0 || n > MAX_NAME) return INVALID;
  i32 status = caller_read(name, text, n);
  if (status != OK) return status;
  u32 i = 0;
  while (i < used && !(counters[i].length == n && same(counters[i].name, text, n))) i++;
  if (i == COUNTERS) return FAILED;
  if (i == used) {
    copy(counters[i].name, text, n);
    counters[i].length = n;
    used++;
  }
  counters[i].value = (i64)((u64)counters[i].value + (u64)delta);
  return OK;
}

EXPORT("waft:self@1#stop") void stop(void) {
  if (used == 0) return;
  begin(LOG_INFO);
  put(TEXT(",\"counters\":{"));
  for (u32 i = 0; i < used; i++) {
    if (i > 0) put(TEXT(","));
    put_string(counters[i].name, counters[i].length);
    put(TEXT(":"));
    put_number(counters[i].value);
  }
  put(TEXT("}"));
  finish();
}
