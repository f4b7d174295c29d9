// A guest that uses all three example plugins: counts its runs in the key-value store, logs each run, and may fetch a
// page.
#include "../plugins/waft.h"

IMPORT("plugins.waft.example/contracts/kv@1", "get") i32 kv_get(u64 key, u32 key_length, u64 to, u32 room);
IMPORT("plugins.waft.example/contracts/kv@1", "set") i32 kv_set(u64 key, u32 key_length, u64 value, u32 value_length);
IMPORT("plugins.waft.example/contracts/log@1", "event") i32 log_event(i32 level, u64 text, u32 length);
IMPORT("plugins.waft.example/contracts/log@1", "count") i32 log_count(u64 name, u32 length, i64 delta);
IMPORT("plugins.waft.example/contracts/http@1", "get") i32 http_get(u64 url, u32 length);
IMPORT("plugins.waft.example/contracts/http@1", "status") i32 http_status(i32 handle);
IMPORT("plugins.waft.example/contracts/http@1", "size") i32 http_size(i32 handle);
IMPORT("plugins.waft.example/contracts/http@1", "close") i32 http_close(i32 handle);

#define AT(p) ((u64)(u32)(p))
#define GUEST_TEXT(s) AT(s), sizeof(s) - 1

// Returns the number of this run.
EXPORT("visit") i32 visit(void) {
  static i32 visits;
  if (kv_get(GUEST_TEXT("visits"), AT(&visits), sizeof visits) != sizeof visits) visits = 0;
  visits++;
  i32 status = kv_set(GUEST_TEXT("visits"), AT(&visits), sizeof visits);
  if (status != OK) {
    log_event(LOG_ERROR, GUEST_TEXT("the store refused the number of visits"));
    return -status;
  }
  log_event(LOG_INFO, GUEST_TEXT("visited \"again\""));
  log_count(GUEST_TEXT("visits"), 1);
  return visits;
}

// Fetches http://localhost:<port>/hello; returns status * 1000 + size of the body, or the plugin's negated status.
EXPORT("fetch") i32 fetch(i32 port) {
  static char url[64] = "http://localhost:";
  u32 length = 17;
  char digits[8];
  u32 n = 0;
  for (u32 rest = (u32)port & 0xffff; n == 0 || rest > 0; rest /= 10) digits[n++] = (char)('0' + rest % 10);
  while (n > 0) url[length++] = digits[--n];
  copy(url + length, "/hello", 6);
  i32 handle = http_get(AT(url), length + 6);
  if (handle < 0) return handle;
  i32 result = http_status(handle) * 1000 + http_size(handle);
  http_close(handle);
  return result;
}
