/**
 * wasi:filesystem of WASI 0.3 on the descriptors of 0.2, which confine the guest. In: descriptors, paths, streams. Out:
 * the class of the interface, in jco's form. Invariant: errors have the codes of 0.3; an error of 0.2 that 0.3 does not
 * have is `other` with its name.
 */
import { ComponentError } from "../../abi/traps.ts";
import type { Outcome } from "../../async/host_streams.ts";
import { type Descriptor, preopens } from "../filesystem.ts";
import { CHUNK_BYTES, type Preview1 } from "../preview1.ts";
import type { InputStream, IoError, OutputStream } from "../streams.ts";
import type { Instant } from "./command.ts";
import { type End, failed, produce, type Produced, receive, refused } from "./streams.ts";

/** A case of a variant. */
interface Case {
  readonly tag: string;
  readonly val?: unknown;
}

/** Codes of 0.2 that 0.3 has dropped. */
const DROPPED_CODES: ReadonlySet<string> = new Set(["would-block"]);

function errorCode(code: string): Case {
  return DROPPED_CODES.has(code) ? { tag: "other", val: code } : { tag: code };
}

/** The error-code of an error of 0.2: an enum, or the end of a stream. */
function codeOf(error: unknown): Case {
  if (!(error instanceof ComponentError)) throw error;
  const payload = error.payload as string | { readonly tag: string; readonly val?: IoError };
  if (typeof payload === "string") return errorCode(payload);
  return errorCode(payload.val?.code ?? "pipe");
}

/** Runs a function of 0.2; its error becomes one of 0.3. */
function filing<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw new ComponentError(codeOf(error));
  }
}

function descriptorType(name: string): Case {
  return name === "unknown" ? { tag: "other", val: undefined } : { tag: name };
}

type Stat = ReturnType<Descriptor["stat"]>;

function statRecord(stat: Stat): Omit<Stat, "type"> & { readonly type: Case } {
  return { ...stat, type: descriptorType(stat.type) };
}

type NewTimestamp = { readonly tag: "no-change" | "now" } | { readonly tag: "timestamp"; readonly val: Instant };

/** A time that the file system can have. */
function timestamp(stamp: NewTimestamp): NewTimestamp {
  if (stamp.tag === "timestamp" && stamp.val.seconds < 0n) throw new ComponentError("invalid");
  return stamp;
}

/** True for the error with which a stream of 0.2 ends. */
function isEnd(error: unknown): boolean {
  return error instanceof ComponentError && (error.payload as { tag?: unknown } | undefined)?.tag === "closed";
}

/** The bytes of an input-stream of 0.2. */
function bytesOf(input: InputStream): Produced<Uint8Array> {
  return produce({
    next() {
      try {
        return input.blockingRead(BigInt(CHUNK_BYTES));
      } catch (error) {
        if (isEnd(error)) return undefined;
        throw error;
      }
    },
    close: () => input[Symbol.dispose](),
  }, codeOf);
}

type PathFlags = Parameters<Descriptor["statAt"]>[0];
type OpenFlags = Parameters<Descriptor["openAt"]>[2];
type DescriptorFlags = ReturnType<Descriptor["getFlags"]>;
type Hash = ReturnType<Descriptor["metadataHash"]>;

/** wasi:filesystem/types descriptor. */
class AsyncDescriptor {
  readonly #inner: Descriptor;

  constructor(inner: Descriptor) {
    this.#inner = inner;
  }

  readViaStream(offset: bigint): Produced<Uint8Array> {
    try {
      return bytesOf(this.#inner.readViaStream(offset));
    } catch (error) {
      return failed(error, codeOf);
    }
  }

  #write(data: ReadableStream<Uint8Array>, open: () => OutputStream): Outcome<End> {
    try {
      const output = open();
      return receive(data, (bytes) => output.write(bytes), codeOf, () => output[Symbol.dispose]());
    } catch (error) {
      return refused(data, error, codeOf);
    }
  }

  writeViaStream(data: ReadableStream<Uint8Array>, offset: bigint): Outcome<End> {
    return this.#write(data, () => this.#inner.writeViaStream(offset));
  }

  appendViaStream(data: ReadableStream<Uint8Array>): Outcome<End> {
    return this.#write(data, () => this.#inner.appendViaStream());
  }

  advise(offset: bigint, length: bigint, advice: string): void {
    filing(() => this.#inner.advise(offset, length, advice));
  }

  syncData(): void {
    filing(() => this.#inner.syncData());
  }

  getFlags(): DescriptorFlags {
    return filing(() => this.#inner.getFlags());
  }

  getType(): Case {
    return filing(() => descriptorType(this.#inner.getType()));
  }

  setSize(size: bigint): void {
    filing(() => this.#inner.setSize(size));
  }

  setTimes(accessed: NewTimestamp, modified: NewTimestamp): void {
    filing(() => this.#inner.setTimes(timestamp(accessed), timestamp(modified)));
  }

  readDirectory(): Produced<{ readonly type: Case; readonly name: string }> {
    try {
      const entries = this.#inner.readDirectory();
      const next = () => {
        const entry = entries.readDirectoryEntry();
        return entry === undefined ? undefined : { type: descriptorType(entry.type), name: entry.name };
      };
      return produce({ next }, codeOf);
    } catch (error) {
      return failed(error, codeOf);
    }
  }

  sync(): void {
    filing(() => this.#inner.sync());
  }

  createDirectoryAt(path: string): void {
    filing(() => this.#inner.createDirectoryAt(path));
  }

  stat(): ReturnType<typeof statRecord> {
    return filing(() => statRecord(this.#inner.stat()));
  }

  statAt(flags: PathFlags, path: string): ReturnType<typeof statRecord> {
    return filing(() => statRecord(this.#inner.statAt(flags, path)));
  }

  setTimesAt(flags: PathFlags, path: string, accessed: NewTimestamp, modified: NewTimestamp): void {
    filing(() => this.#inner.setTimesAt(flags, path, timestamp(accessed), timestamp(modified)));
  }

  linkAt(flags: PathFlags, path: string, target: AsyncDescriptor, targetPath: string): void {
    filing(() => this.#inner.linkAt(flags, path, target.#inner, targetPath));
  }

  openAt(pathFlags: PathFlags, path: string, open: OpenFlags, flags: DescriptorFlags): AsyncDescriptor {
    return filing(() => new AsyncDescriptor(this.#inner.openAt(pathFlags, path, open, flags)));
  }

  readlinkAt(path: string): string {
    return filing(() => this.#inner.readlinkAt(path));
  }

  removeDirectoryAt(path: string): void {
    filing(() => this.#inner.removeDirectoryAt(path));
  }

  renameAt(path: string, target: AsyncDescriptor, targetPath: string): void {
    filing(() => this.#inner.renameAt(path, target.#inner, targetPath));
  }

  symlinkAt(content: string, path: string): void {
    filing(() => this.#inner.symlinkAt(content, path));
  }

  unlinkFileAt(path: string): void {
    filing(() => this.#inner.unlinkFileAt(path));
  }

  isSameObject(other: AsyncDescriptor): boolean {
    return this.#inner.isSameObject(other.#inner);
  }

  metadataHash(): Hash {
    return filing(() => this.#inner.metadataHash());
  }

  metadataHashAt(flags: PathFlags, path: string): Hash {
    return filing(() => this.#inner.metadataHashAt(flags, path));
  }

  [Symbol.dispose](): void {
    this.#inner[Symbol.dispose]();
  }
}

/** wasi:filesystem. */
export function filesystemInterfaces(preview1: Preview1): Record<string, object> {
  return {
    "wasi:filesystem/types@0.3.0": { Descriptor: AsyncDescriptor },
    "wasi:filesystem/preopens@0.3.0": {
      getDirectories: () => preopens(preview1).map(([descriptor, name]) => [new AsyncDescriptor(descriptor), name]),
    },
  };
}
