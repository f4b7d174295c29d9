// Fetches pages: GET over HTTP or HTTPS, only from granted hosts.
//
// It speaks HTTP/1.0, so a body ends with the connection and is never chunked. While it waits for the answer, the host
// suspends it and its callers (in asynchronous calls, as `waft run` makes them). If a logging plugin is bound, every
// fetch is reported there: plugins call plugins as guests do, through a contract.
#include "../waft.h"

enum { MAX_URL = 2000, RESPONSES = 8, ROOM = 1 << 20 };

IMPORT("plugins.waft.example/contracts/log@1", "event") i32 log_event(i32 level, u64 text, u32 length);

static struct { i32 open, status; u32 head, size; u8 bytes[ROOM]; } responses[RESPONSES];
static u8 url[MAX_URL + 1];
static u8 request[MAX_URL * 2 + 200];
static u32 request_length;

static void put(const void *bytes, u32 n) {
  copy(request + request_length, bytes, n);
  request_length += n;
}

// Splits the URL in `url`; returns a status.
static i32 split(u32 length, i32 *tls, u32 *host, u32 *host_end, i32 *port, u32 *path) {
  for (u32 i = 0; i < length; i++) if (url[i] <= ' ' || url[i] >= 127) return INVALID;
  u32 at;
  if (length > 7 && same(url, "http://", 7)) at = 7, *tls = 0, *port = 80;
  else if (length > 8 && same(url, "https://", 8)) at = 8, *tls = 1, *port = 443;
  else return INVALID;
  *host = at;
  while (at < length && url[at] != '/' && url[at] != ':' && url[at] != '?' && url[at] != '#') {
    if (url[at++] == '@') return INVALID;
  }
  *host_end = at;
  if (*host_end == *host) return INVALID;
  if (at < length && url[at] == ':') {
    *port = 0;
    for (at++; at < length && url[at] >= '0' && url[at] <= '9'; at++) {
      *port = *port * 10 + (url[at] - '0');
      if (*port > 65535) return INVALID;
    }
  }
  if (at < length && url[at] != '/') return INVALID;
  *path = at;
  return OK;
}

// Finds the end of the header and the HTTP status; returns a plugin status.
static i32 parse(i32 handle) {
  u8 *bytes = responses[handle].bytes;
  u32 size = responses[handle].size;
  if (size < 12 || !same(bytes, "HTTP/1.", 7)) return FAILED;
  i32 status = 0;
  for (u32 i = 9; i < 12; i++) {
    if (bytes[i] < '0' || bytes[i] > '9') return FAILED;
    status = status * 10 + (bytes[i] - '0');
  }
  for (u32 i = 0; i + 4 <= size; i++) {
    if (!same(bytes + i, "\r\n\r\n", 4)) continue;
    responses[handle].head = i + 4;
    responses[handle].status = status;
    return OK;
  }
  return FAILED;
}

static i32 fetch(i32 handle, u32 length) {
  u32 host, host_end, path;
  i32 tls, port;
  i32 status = split(length, &tls, &host, &host_end, &port, &path);
  if (status != OK) return status;
  request_length = 0;
  put(TEXT("GET "));
  if (path == length) put(TEXT("/"));
  else put(url + path, length - path);
  put(TEXT(" HTTP/1.0\r\nHost: "));
  put(url + host, (path > host ? path : length) - host);
  put(TEXT("\r\nAccept: */*\r\nConnection: close\r\n\r\n"));
  i32 socket = tls ? net_connect_tls((char *)url + host, host_end - host, port)
                   : net_connect((char *)url + host, host_end - host, port);
  if (socket < 0) return -socket;
  responses[handle].size = 0;
  status = OK;
  for (u32 sent = 0; sent < request_length;) {
    i32 count = net_send(socket, request + sent, request_length - sent);
    if (count < 0) {
      status = -count;
      break;
    }
    sent += (u32)count;
  }
  while (status == OK && responses[handle].size < ROOM) {
    u32 size = responses[handle].size;
    i32 count = net_receive(socket, responses[handle].bytes + size, ROOM - size);
    if (count < 0) status = -count;
    if (count <= 0) break;
    responses[handle].size += (u32)count;
  }
  net_close(socket);
  if (responses[handle].size == ROOM) return INVALID;
  return status == OK ? parse(handle) : status;
}

// Fetches a page; returns a handle, or a negated status (DENIED for a host that is not granted).
EXPORT("plugins.waft.example/contracts/http@1#get") i32 get(u64 at, u32 length) {
  if (length > MAX_URL) return -INVALID;
  i32 status = caller_read(at, url, length);
  if (status != OK) return -status;
  i32 handle = 0;
  while (handle < RESPONSES && responses[handle].open) handle++;
  if (handle == RESPONSES) return -EXISTS;
  status = fetch(handle, length);
  log_event(status == OK ? LOG_DEBUG : LOG_WARN, (u64)(u32)url, length);
  if (status != OK) return -status;
  responses[handle].open = 1;
  return handle;
}

static i32 is_open(u32 handle) { return handle < RESPONSES && responses[handle].open; }

EXPORT("plugins.waft.example/contracts/http@1#status") i32 status(u32 handle) {
  return is_open(handle) ? responses[handle].status : -MISSING;
}

EXPORT("plugins.waft.example/contracts/http@1#size") i32 size(u32 handle) {
  return is_open(handle) ? (i32)(responses[handle].size - responses[handle].head) : -MISSING;
}

// Copies the body from `offset` on; returns the number of bytes.
EXPORT("plugins.waft.example/contracts/http@1#read") i32 read(u32 handle, u32 offset, u64 to, u32 room) {
  if (!is_open(handle)) return -MISSING;
  u32 body = responses[handle].size - responses[handle].head;
  if (offset > body) return -BOUNDS;
  u32 count = body - offset < room ? body - offset : room;
  i32 done = caller_write(to, responses[handle].bytes + responses[handle].head + offset, count);
  return done == OK ? (i32)count : -done;
}

EXPORT("plugins.waft.example/contracts/http@1#close") i32 close_response(u32 handle) {
  if (!is_open(handle)) return MISSING;
  responses[handle].open = 0;
  return OK;
}
