/**
 * The runner's end of the pipes to its program: standard input and output, by system calls that block. In: messages to
 * send. Out: messages as they come; the process ends with the input. Invariant: no read waits beyond the deadline of
 * the guest's call, and none goes through the event loop.
 */
import { now } from "../host/clocks.ts";
import { fileCalls } from "../host/calls/file_calls.ts";
import { type Host, PROT } from "../host/host.ts";
import { E } from "../host/calls/linux_errors.ts";
import type { LinuxCalls } from "../host/calls/linux_calls.ts";
import { HEADER_BYTES, type Message, readHeader } from "./protocol.ts";

/** Bytes that one system call moves at most. */
const BUFFER_BYTES = 1 << 20;
/** A pollfd record and a timespec. */
const WAIT_BYTES = 64;
const POLLIN = 1;
const POLLOUT = 4;

/** The program has closed the pipe. */
export class PipeClosed extends Error {}

export class Pipe {
  readonly #sys: LinuxCalls;
  readonly #maxBytes: number;
  readonly #input: number;
  readonly #output: number;
  readonly #wait: number;
  readonly #in: Uint8Array;
  readonly #inView: DataView;
  readonly #out: Uint8Array;
  readonly #waitView: DataView;
  /** The bytes of the input buffer that have been read and not taken. */
  #start = 0;
  #end = 0;

  /** Payloads have at most `maxBytes`. */
  constructor(host: Host, maxBytes: number) {
    this.#sys = fileCalls(host);
    this.#maxBytes = maxBytes;
    const base = host.reserve(2 * BUFFER_BYTES + host.pageSize, PROT.READ | PROT.WRITE);
    [this.#input, this.#output, this.#wait] = [base, base + BUFFER_BYTES, base + 2 * BUFFER_BYTES];
    this.#in = new Uint8Array(host.view(this.#input, BUFFER_BYTES));
    this.#inView = new DataView(this.#in.buffer);
    this.#out = new Uint8Array(host.view(this.#output, BUFFER_BYTES));
    this.#waitView = new DataView(host.view(this.#wait, WAIT_BYTES));
  }

  /** Whether a message, or its beginning, is there already. */
  get hasInput(): boolean {
    return this.#end > this.#start;
  }

  /**
   * Waits for the next message; undefined if none has come at `deadline`, on the clock of performance.now(). Throws
   * PipeClosed, and ProtocolError for bytes that are no message.
   */
  read(deadline = Infinity): Message | undefined {
    while (this.#end - this.#start < HEADER_BYTES) if (!this.#fill(deadline)) return undefined;
    const { kind, id, subject, bytes } = readHeader(this.#inView, this.#start, this.#maxBytes);
    this.#start += HEADER_BYTES;
    const payload = new Uint8Array(bytes);
    for (let at = 0; at < bytes;) {
      if (this.#start === this.#end) this.#fill(Infinity);
      const taken = Math.min(bytes - at, this.#end - this.#start);
      payload.set(this.#in.subarray(this.#start, this.#start + taken), at);
      this.#start += taken;
      at += taken;
    }
    return { kind, id, subject, payload };
  }

  /** Sends bytes. Throws PipeClosed. */
  write(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const part = bytes.subarray(at, at + BUFFER_BYTES);
      this.#out.set(part);
      for (let sent = 0; sent < part.length;) {
        const count = this.#sys("write", 1, this.#output + sent, part.length - sent);
        if (count > 0) sent += count;
        else if (count === E.AGAIN) this.#poll(1, POLLOUT, Infinity);
        else if (count !== EINTR) throw new PipeClosed();
      }
      at += part.length;
    }
  }

  /** Reads more input; false if the deadline has passed. */
  #fill(deadline: number): boolean {
    if (this.#start > 0) {
      this.#in.copyWithin(0, this.#start, this.#end);
      this.#end -= this.#start;
      this.#start = 0;
    }
    for (;;) {
      if (deadline !== Infinity && !this.#poll(0, POLLIN, deadline)) return false;
      const count = this.#sys("read", 0, this.#input + this.#end, BUFFER_BYTES - this.#end);
      if (count > 0) {
        this.#end += count;
        return true;
      }
      if (count === E.AGAIN) {
        if (!this.#poll(0, POLLIN, deadline)) return false;
      } else if (count !== EINTR) throw new PipeClosed();
    }
  }

  /** Waits until a descriptor is ready; false if the deadline has passed. */
  #poll(fd: number, events: number, deadline: number): boolean {
    for (;;) {
      const left = Math.max(0, deadline - now());
      this.#waitView.setInt32(0, fd, true);
      this.#waitView.setInt16(4, events, true);
      this.#waitView.setBigInt64(16, BigInt(left === Infinity ? 0 : Math.floor(left / 1000)), true);
      this.#waitView.setBigInt64(24, BigInt(left === Infinity ? 0 : Math.ceil(left % 1000 * 1e6)), true);
      const ready = this.#sys("ppoll", this.#wait, 1, left === Infinity ? 0 : this.#wait + 16, 0, 0);
      if (ready > 0) return true;
      if (ready === 0 && left === 0) return false;
      if (ready < 0 && ready !== EINTR) throw new PipeClosed();
    }
  }
}

const EINTR = -4;
