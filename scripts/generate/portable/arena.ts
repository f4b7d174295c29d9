/**
 * The memory of the compiled compiler, in AssemblyScript: it takes the place of the runtime "stub". An arena: objects
 * are adjacent up to `__arenaEnd` and are dropped together by `__reset`. It never exceeds a limit (`__setArenaLimit`,
 * in bytes): an allocation beyond it notes that the arena is full (`__isArenaFull`) and traps. Layouts of blocks and
 * objects are those of AssemblyScript's runtimes.
 */
export const ARENA = `
import { AL_MASK, BLOCK, BLOCK_MAXSIZE, BLOCK_OVERHEAD, OBJECT, OBJECT_MAXSIZE, OBJECT_OVERHEAD } from "./common";

// @ts-ignore: decorator
@lazy let first: usize = ((__heap_base + BLOCK_OVERHEAD + AL_MASK) & ~AL_MASK) - BLOCK_OVERHEAD;
// @ts-ignore: decorator
@lazy let next: usize = first;
// @ts-ignore: decorator
@lazy let limit: usize = 1 << 30;
// @ts-ignore: decorator
@lazy let isFull: bool = false;

function refuse(): void {
  isFull = true;
  unreachable();
}

function takeUntil(end: usize): void {
  if (end > limit) refuse();
  const bytes = <usize>memory.size() << 16;
  if (end > bytes) {
    const most = (limit - bytes) >>> 16, least = (end - bytes + 0xffff) >>> 16;
    const wanted = max(least, min(most, bytes >>> 16));
    if (memory.grow(<i32>wanted) < 0 && memory.grow(<i32>least) < 0) refuse();
  }
  next = end;
}

// @ts-ignore: decorator
@inline function payload(size: usize): usize {
  return ((size + BLOCK_OVERHEAD + AL_MASK) & ~AL_MASK) - BLOCK_OVERHEAD;
}

// @ts-ignore: decorator
@unsafe @global
export function __setArenaLimit(bytes: usize): void {
  limit = min<usize>(bytes, 1 << 31);
}

// @ts-ignore: decorator
@unsafe @global
export function __isArenaFull(): bool {
  return isFull;
}

// @ts-ignore: decorator
@unsafe @global
export function __arenaEnd(): usize {
  return next;
}

// @ts-ignore: decorator
@unsafe @global
export function __reset(): void {
  next = first;
  isFull = false;
}

// @ts-ignore: decorator
@unsafe @global
export function __alloc(size: usize): usize {
  if (size > BLOCK_MAXSIZE) refuse();
  const block = next, at = block + BLOCK_OVERHEAD, bytes = payload(size);
  takeUntil(at + bytes);
  changetype<BLOCK>(block).mmInfo = bytes;
  return at;
}

// @ts-ignore: decorator
@unsafe @global
export function __realloc(at: usize, size: usize): usize {
  const block = changetype<BLOCK>(at - BLOCK_OVERHEAD), old = block.mmInfo;
  if (size <= old) return at;
  if (at + old != next) {
    const copy = __alloc(max<usize>(size, old << 1));
    memory.copy(copy, at, old);
    return copy;
  }
  if (size > BLOCK_MAXSIZE) refuse();
  const bytes = payload(size);
  takeUntil(at + bytes);
  block.mmInfo = bytes;
  return at;
}

// @ts-ignore: decorator
@unsafe @global
export function __free(at: usize): void {}

// @ts-ignore: decorator
@unsafe @global
export function __new(size: usize, id: u32): usize {
  if (size > OBJECT_MAXSIZE) refuse();
  const at = __alloc(OBJECT_OVERHEAD + size);
  const object = changetype<OBJECT>(at - BLOCK_OVERHEAD);
  object.gcInfo = 0;
  object.gcInfo2 = 0;
  object.rtId = id;
  object.rtSize = <u32>size;
  return at + OBJECT_OVERHEAD;
}

// @ts-ignore: decorator
@unsafe @global
export function __renew(old: usize, size: usize): usize {
  if (size > OBJECT_MAXSIZE) refuse();
  const at = __realloc(old - OBJECT_OVERHEAD, OBJECT_OVERHEAD + size);
  changetype<OBJECT>(at - BLOCK_OVERHEAD).rtSize = <u32>size;
  return at + OBJECT_OVERHEAD;
}

// Nothing is collected.

// @ts-ignore: decorator
@global @unsafe
export function __link(parent: usize, child: usize, expectMultiple: bool): void {}

// @ts-ignore: decorator
@global @unsafe
export function __pin(at: usize): usize {
  return at;
}

// @ts-ignore: decorator
@global @unsafe
export function __unpin(at: usize): void {}

// @ts-ignore: decorator
@global @unsafe
function __visit(at: usize, cookie: u32): void {}

// @ts-ignore: decorator
@global @unsafe
export function __collect(): void {}
`;
