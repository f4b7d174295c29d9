/**
 * Facts about a recording. In: a log. Out: plain data, without running anything: the module, counts of events, calls of
 * each import, and the first events as text. Errors are RecordingErrors with the place in the log.
 */
import { decodeModule } from "../binary/decode.ts";
import type { ByteReader } from "../base/bytes.ts";
import { displayName, shortName } from "../base/guest_stack.ts";
import { toHex } from "../base/hex.ts";
import type { Module } from "../wasm/module.ts";
import { isRef } from "../wasm/types.ts";
import type { NanRule } from "../settings/nans.ts";
import { EVENT, EVENT_NAMES, readCode, type RecordedCode } from "./events.ts";
import { readExhaustion } from "./exhaustion.ts";
import { skipChanges } from "./host_changes.ts";
import { LogReader, sha256 } from "./log_file.ts";
import { listText } from "./value_text.ts";
import { describeError, describeValue } from "./values.ts";

/** The number of events that are shown. */
const MAX_SHOWN = 40;

/** Calls of an import. */
interface HostCallFacts {
  readonly module: string;
  readonly name: string;
  readonly calls: number;
  /** Bytes that the import wrote to memories. */
  readonly bytesWritten: number;
}

/** Facts about a recording. */
export interface RecordingFacts {
  /** The size of the log in bytes. */
  readonly bytes: number;
  /** The recorded module, which the log contains: size in bytes and digest of its binary form. */
  readonly module: { readonly bytes: number; readonly sha256: string };
  /** Whether the recorded engine counted fuel. */
  readonly metered: boolean;
  /** The NaNs of the recorded code. */
  readonly nans: NanRule;
  /** How the recorded code limits the depth of calls. */
  readonly stack: RecordedCode["stack"];
  readonly events: number;
  /** Calls of exported functions. */
  readonly calls: number;
  readonly hostCalls: readonly HostCallFacts[];
  /** The fuel that all calls have used, as a decimal number, and the SHA-256 of the final state, in hexadecimal. */
  readonly fuel: string;
  readonly hash: string;
  /** The first events as text. */
  readonly first: readonly string[];
}

/** The facts about one import, while its calls are counted. */
interface Counts {
  readonly module: string;
  readonly name: string;
  calls: number;
  bytesWritten: number;
}

/** The facts about the recording in `log`. Throws RecordingError for a log that is damaged. */
export function recordingFacts(log: Uint8Array): RecordingFacts {
  const reader = new LogReader(log);
  return reader.reading(() => new Description(reader, log.length).read());
}

class Description {
  readonly #log: LogReader;
  readonly #bytes: number;
  readonly #module: Module;
  /** The first names under which functions are exported. */
  readonly #names = new Map<number, string>();
  readonly #hostCalls: readonly Counts[];
  /** The imports whose calls are in progress, innermost last. */
  readonly #called: Counts[] = [];
  readonly #suspended = new Map<number, Counts>();
  readonly #first: string[] = [];
  #calls = 0;
  #code: RecordedCode = { fuel: false, nans: "canonical", stack: "counted" };
  #end = { fuel: 0n, hash: "" };

  constructor(log: LogReader, bytes: number) {
    this.#log = log;
    this.#bytes = bytes;
    this.#module = decodeModule(log.module);
    for (const { kind, index, name } of this.#module.exports) {
      if (kind === "func" && !this.#names.has(index)) this.#names.set(index, name);
    }
    this.#hostCalls = this.#module.imports.filter(({ desc }) => desc.kind === "func").map(({ module, name }) => ({
      module,
      name,
      calls: 0,
      bytesWritten: 0,
    }));
  }

  read(): RecordingFacts {
    while (!this.#log.isAtEnd) {
      const { kind } = this.#log;
      const text = this.#event(kind, this.#log.event());
      if (this.#first.length < MAX_SHOWN) this.#first.push(`${EVENT_NAMES.get(kind)}${text === "" ? "" : ` ${text}`}`);
    }
    const { module } = this.#log;
    return {
      bytes: this.#bytes,
      module: { bytes: module.length, sha256: toHex(sha256(module)) },
      metered: this.#code.fuel,
      nans: this.#code.nans,
      stack: this.#code.stack,
      events: this.#log.count,
      calls: this.#calls,
      hostCalls: this.#hostCalls.filter(({ calls }) => calls > 0),
      fuel: String(this.#end.fuel),
      hash: this.#end.hash,
      first: this.#first,
    };
  }

  /** Reads an event of `kind`. Returns its fields as text. */
  #event(kind: number, reader: ByteReader): string {
    switch (kind) {
      case EVENT.BEGIN:
        return this.#begin(reader);
      case EVENT.READY:
        return "";
      case EVENT.CALL:
      case EVENT.START:
        return this.#call(kind, reader);
      case EVENT.HOST: {
        const called = this.#hostCalls[reader.u32()] ?? this.#log.fail("an unknown import");
        called.calls++;
        this.#called.push(called);
        return `${shortName(called.module)} ${shortName(called.name)}(${values(reader)})`;
      }
      case EVENT.RETURN:
      case EVENT.THROW: {
        this.#changed(reader, this.#called.pop());
        return kind === EVENT.RETURN ? values(reader) : describeError(reader);
      }
      case EVENT.SUSPEND: {
        const number = reader.u32();
        const called = this.#called.pop();
        if (called !== undefined) this.#suspended.set(number, called);
        this.#changed(reader, called);
        return String(number);
      }
      case EVENT.RESUME:
      case EVENT.REJECT: {
        const number = reader.u32();
        this.#changed(reader, this.#suspended.get(number));
        return `${number}: ${kind === EVENT.RESUME ? values(reader) : describeError(reader)}`;
      }
      case EVENT.DONE:
        return ended(reader, values);
      case EVENT.THREW:
      case EVENT.STOPPED:
        return ended(reader, describeError);
      case EVENT.INTERRUPTED:
        return ended(reader, (fields) => `after ${fields.u64BigInt()} units of fuel`);
      case EVENT.EXHAUSTED: {
        const { depth, near } = readExhaustion(reader);
        return `stack, at activation ${depth}: ${this.#functionName(near[0])}`;
      }
      case EVENT.TAKE: {
        this.#changed(reader, undefined);
        const index = reader.u32();
        const position = reader.u32();
        return position === 0 ? `global ${index}` : `element ${position - 1} of table ${index}`;
      }
      case EVENT.END: {
        this.#changed(reader, undefined);
        this.#end = { fuel: reader.u64BigInt(), hash: toHex(reader.take(32)) };
        return "";
      }
      default:
        return this.#log.fail(`an unknown event ${kind}`);
    }
  }

  #begin(reader: ByteReader): string {
    this.#code = readCode(reader);
    for (let limit = 0; limit < 4; limit++) reader.u64();
    for (const { desc } of this.#module.imports) {
      if (desc.kind === "func") reader.u8();
      else reader.u32();
      if (desc.kind === "memory" || desc.kind === "table") {
        reader.u32();
        reader.u32();
      } else if (desc.kind === "global") {
        if (isRef(desc.type.type)) describeValue(reader);
        else reader.take(reader.count());
      }
    }
    this.#changed(reader, undefined);
    return "";
  }

  #call(kind: number, reader: ByteReader): string {
    const index = reader.u32();
    reader.u64();
    if (kind === EVENT.CALL) reader.u32();
    this.#calls++;
    const text = `${this.#functionName(index)}(${values(reader)})`;
    this.#changed(reader, undefined);
    return text;
  }

  #functionName(index: number): string {
    return displayName(this.#names.get(index) ?? `function ${index}`);
  }

  #changed(reader: ByteReader, called: Counts | undefined): void {
    const bytes = skipChanges(reader, describeValue);
    if (called !== undefined) called.bytesWritten += bytes;
  }
}

function values(reader: ByteReader): string {
  const described = Array.from({ length: reader.count() }, () => describeValue(reader));
  return listText(described, ({ type, value }) => `${type} ${value}`);
}

function ended(reader: ByteReader, describe: (reader: ByteReader) => string): string {
  const call = reader.u32();
  return call === 0 ? describe(reader) : `call ${call}: ${describe(reader)}`;
}
