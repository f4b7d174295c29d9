// A persistent key-value store.
//
// Entries are in an arena; a hash table finds them. Every change is appended to /store/kv.log as a record with a
// checksum before it takes effect. Loading stops at the first truncated or damaged record and truncates the file there,
// so a crash loses at most the change in progress. A log that is more than half outdated is rewritten into a new file,
// which then replaces it by renaming. Without fs.read or fs.write the store works but is not persistent.
#include "../waft.h"

enum { SLOTS = 1 << 15, ARENA = 24 << 20, GONE = -1, MAX_KEY = 1024, MAX_VALUE = 1 << 20 };

typedef struct { u32 checksum, key_length; i32 value_length; } Head;

static u8 arena[ARENA];
static u32 used;
static u32 slots[SLOTS];  // Offset in the arena of a record's head, plus one; 0 is free.
static u32 entries, filled, max_entries, live_bytes;
static i64 log_size;
static i32 persistent;
static u8 incoming[sizeof(Head) + MAX_KEY + MAX_VALUE];

static const char LOG[] = "/store/kv.log", NEW[] = "/store/kv.new";

static u32 hash(const u8 *bytes, u32 n, u32 seed) {
  u32 h = 2166136261u ^ seed;
  for (u32 i = 0; i < n; i++) h = (h ^ bytes[i]) * 16777619u;
  return h;
}

static u32 size_of(const Head *head) {
  return sizeof(Head) + head->key_length + (head->value_length < 0 ? 0 : (u32)head->value_length);
}

static u32 checksum(const Head *head) { return hash((const u8 *)head + 4, size_of(head) - 4, 7); }

// The slot of a key: the one that contains it, or the free one where it belongs.
static u32 slot_of(const u8 *key, u32 length) {
  for (u32 at = hash(key, length, 0) & (SLOTS - 1);; at = (at + 1) & (SLOTS - 1)) {
    if (slots[at] == 0) return at;
    const Head *head = (const Head *)(arena + slots[at] - 1);
    if (head->key_length == length && same(head + 1, key, length)) return at;
  }
}

static const Head *entry_at(u32 slot) {
  const Head *head = slots[slot] == 0 ? 0 : (const Head *)(arena + slots[slot] - 1);
  return head == 0 || head->value_length < 0 ? 0 : head;
}

// Moves live entries to the front of the arena and rebuilds the table. The checksum field of a record in the arena is
// otherwise unused, so it marks live entries meanwhile.
static void compact_arena(void) {
  u32 to = 0, size;
  for (u32 at = 0; at < used; at += (size_of((Head *)(arena + at)) + 7) & ~7u) ((Head *)(arena + at))->checksum = 0;
  for (u32 i = 0; i < SLOTS; i++) {
    if (entry_at(i) != 0) ((Head *)(arena + slots[i] - 1))->checksum = 1;
    slots[i] = 0;
  }
  for (u32 at = 0; at < used; at += size) {
    Head *head = (Head *)(arena + at);
    size = (size_of(head) + 7) & ~7u;
    if (head->checksum != 1) continue;
    copy(arena + to, head, size);
    to += size;
  }
  used = to;
  filled = 0;
  for (u32 at = 0; at < used; at += (size_of((Head *)(arena + at)) + 7) & ~7u) {
    Head *head = (Head *)(arena + at);
    slots[slot_of((u8 *)(head + 1), head->key_length)] = at + 1;
    filled++;
  }
}

// Copies a record into the arena. The caller has made room.
static void take(const Head *record) {
  u32 size = size_of(record);
  u32 slot = slot_of((const u8 *)(record + 1), record->key_length);
  const Head *old = entry_at(slot);
  if (old != 0) {
    entries--;
    live_bytes -= size_of(old);
  }
  if (slots[slot] == 0) filled++;
  copy(arena + used, record, size);
  slots[slot] = used + 1;
  used += (size + 7) & ~7u;
  if (record->value_length >= 0) {
    entries++;
    live_bytes += size;
  }
}

static int room_for(u32 size) {
  if (used + size + 8 > ARENA || filled >= SLOTS / 4 * 3) compact_arena();
  return used + size + 8 <= ARENA;
}

static void load(void) {
  i32 got = fs_read(TEXT(LOG), 0, incoming, sizeof(Head));
  if (got == -DENIED) return;
  persistent = 1;
  for (;;) {
    Head *head = (Head *)incoming;
    got = fs_read(TEXT(LOG), log_size, incoming, sizeof incoming);
    if (got < (i32)sizeof(Head) || head->key_length > MAX_KEY || head->value_length > MAX_VALUE) break;
    if (size_of(head) > (u32)got || head->checksum != checksum(head)) break;
    const Head *old = entry_at(slot_of(incoming + sizeof(Head), head->key_length));
    int full = old == 0 && head->value_length >= 0 && entries >= max_entries;
    if (full || !room_for(size_of(head))) host_abort(TEXT("the store holds more than maxEntries allows"));
    take(head);
    log_size += size_of(head);
  }
  if (got > 0) {
    host_log(LOG_WARN, TEXT("the end of the log is damaged and was cut off"));
    fs_truncate(TEXT(LOG), log_size);
  }
}

// Writes a new log of the live entries and replaces the old one with it.
static void rewrite_log(void) {
  i64 at = 0;
  if (fs_remove(TEXT(NEW)) == DENIED) return;
  for (u32 i = 0; i < SLOTS; i++) {
    Head *head = (Head *)entry_at(i);
    if (head == 0) continue;
    u32 size = size_of(head);
    head->checksum = checksum(head);
    if (fs_write(TEXT(NEW), at, head, size) != (i32)size) return;
    at += size;
  }
  if (at == 0) {
    if (fs_truncate(TEXT(LOG), 0) == OK) log_size = 0;
    return;
  }
  if (fs_sync(TEXT(NEW)) == OK && fs_rename(TEXT(NEW), TEXT(LOG)) == OK) log_size = at;
}

EXPORT("waft:self@1#init") void init(void) {
  max_entries = (u32)config_integer(TEXT("maxEntries"), 1000);
  load();
  if (persistent && log_size > 4096 && (i64)live_bytes * 2 < log_size) rewrite_log();
}

EXPORT("waft:self@1#stop") void stop(void) {
  if (persistent && log_size > 0) fs_sync(TEXT(LOG));
}

// Reads a key from the caller, to behind the head in `incoming`; returns a status.
static i32 read_key(u64 key, u32 length) {
  if (length > MAX_KEY) return INVALID;
  ((Head *)incoming)->key_length = length;
  return caller_read(key, incoming + sizeof(Head), length);
}

// Appends the record in `incoming` to the log and copies it into the arena; returns a status.
static i32 commit(void) {
  Head *head = (Head *)incoming;
  u32 size = size_of(head);
  if (!room_for(size)) return FAILED;
  head->checksum = checksum(head);
  if (persistent) {
    i32 wrote = fs_write(TEXT(LOG), log_size, incoming, size);
    if (wrote == -DENIED) persistent = 0;
    else if (wrote != (i32)size) return FAILED;
    else log_size += size;
  }
  take(head);
  return OK;
}

EXPORT("plugins.waft.example/contracts/kv@1#set") i32 set(u64 key, u32 key_length, u64 value, u32 value_length) {
  i32 status = read_key(key, key_length);
  if (status != OK) return status;
  if (value_length > MAX_VALUE) return INVALID;
  status = caller_read(value, incoming + sizeof(Head) + key_length, value_length);
  if (status != OK) return status;
  if (entry_at(slot_of(incoming + sizeof(Head), key_length)) == 0 && entries >= max_entries) return FAILED;
  ((Head *)incoming)->value_length = (i32)value_length;
  return commit();
}

// Copies as much of the value as fits; returns its size, or a negated status.
EXPORT("plugins.waft.example/contracts/kv@1#get") i32 get(u64 key, u32 key_length, u64 to, u32 room) {
  i32 status = read_key(key, key_length);
  if (status != OK) return -status;
  const Head *head = entry_at(slot_of(incoming + sizeof(Head), key_length));
  if (head == 0) return -MISSING;
  u32 count = (u32)head->value_length < room ? (u32)head->value_length : room;
  status = caller_write(to, (const u8 *)(head + 1) + key_length, count);
  return status == OK ? head->value_length : -status;
}

EXPORT("plugins.waft.example/contracts/kv@1#remove") i32 remove_key(u64 key, u32 key_length) {
  i32 status = read_key(key, key_length);
  if (status != OK) return status;
  if (entry_at(slot_of(incoming + sizeof(Head), key_length)) == 0) return MISSING;
  ((Head *)incoming)->value_length = GONE;
  return commit();
}

EXPORT("plugins.waft.example/contracts/kv@1#count") i32 count(void) { return (i32)entries; }
