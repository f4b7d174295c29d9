/**
 * The system calls of the host functions of plugins, under the limits of the running call.
 *
 * In: descriptors, and addresses in a plugin's memory. Out: bytes moved. Invariant: whatever a host function does
 * in proportion to its arguments costs fuel, and its work and its waits end at the limits of the call (waits.ts).
 */
import { currentHost } from "@waft/engine/internal/host/current";
import { fileCalls } from "@waft/engine/internal/host/file_calls";
import { FILETYPE, openFlags } from "@waft/engine/internal/wasi/abi";
import { checked, PathResolver, type PathSystem } from "@waft/engine/internal/wasi/paths";
import { Scratch } from "@waft/engine/internal/wasi/scratch";
import { filetypeOf, readStatus } from "@waft/engine/internal/wasi/status";
import { CALL_LIMITS, PIECE_BYTES, Waits } from "@waft/engine/internal/wasi/waits";

interface System extends PathSystem {
  readonly resolver: PathResolver;
}

let shared: System | undefined;

/** System calls and their buffers: one set for the process, since calls never overlap. */
export function system(): System {
  if (shared !== undefined) return shared;
  const host = currentHost();
  const sys = fileCalls(host);
  const scratch = new Scratch(host);
  const paths = { sys, scratch, open: openFlags(host.arch), waits: new Waits(sys, scratch, CALL_LIMITS) };
  return shared = { ...paths, resolver: new PathResolver(paths) };
}

/** Charges the fuel for `bytes` to be moved. Throws the trap if the fuel or the time of the call is used up. */
export function pay(bytes: number): void {
  const { waits } = system();
  waits.check();
  waits.charge(bytes);
}

/**
 * Moves `length` bytes by `move`, which returns the number of bytes that it has moved of those it is asked for: at once
 * or, where limits have to end it, in pieces. Returns the number of bytes moved.
 */
export function inPieces(length: number, move: (done: number, bytes: number) => number): number {
  const most = system().waits.isBounded ? PIECE_BYTES : Infinity;
  let done = 0;
  do {
    const piece = Math.min(length - done, most);
    pay(piece);
    const moved = move(done, piece);
    done += moved;
    if (moved < piece) break;
  } while (done < length);
  return done;
}

/** Whether a read or write of the descriptor may wait for another process. */
function mayWait(fd: number): boolean {
  const status = readStatus(system(), fd);
  const type = status === undefined ? FILETYPE.unknown : filetypeOf(status);
  return type !== FILETYPE.regular_file && type !== FILETYPE.block_device;
}

/** Reads at most `length` bytes of a descriptor to `address`. Throws WasiError. */
export function readStream(fd: number, address: number, length: number): number {
  const { sys, scratch: { out }, waits } = system();
  const waiting = mayWait(fd); // uses the buffer, too
  out.setWord(0, address);
  out.setWord(8, length);
  const got = checked(waiting ? waits.read(fd, out.address, 1) : sys("readv", fd, out.address, 1));
  pay(got);
  return got;
}

/** Writes `length` bytes at `address` to a descriptor. Throws WasiError. */
export function writeStream(fd: number, address: number, length: number): number {
  const { scratch: { out }, waits } = system();
  if (waits.isBounded && mayWait(fd)) {
    return checked(waits.write(fd, address, length, (at, bytes) => waits.writeReady(fd, at, bytes)));
  }
  out.setWord(0, address);
  out.setWord(8, length);
  const done = checked(waits.writeVectors(fd, out.address, 1));
  pay(done);
  return done;
}
