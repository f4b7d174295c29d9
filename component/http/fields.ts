/**
 * wasi:http fields: headers and trailers. In: names and values from a guest, or from a message that has arrived. Out:
 * entries in order, with one spelling of each name. Invariant: no field has a name or a value that could end the field
 * or the message, and a guest cannot set the fields that belong to the connection.
 */
import { Buffer } from "node:buffer";
import { ComponentError } from "../abi/traps.ts";
import { type Holding, HostShare, SHARES } from "../async/host_quota.ts";

/** A field: its name as it was given, and its value. */
type Field = readonly [name: string, value: Uint8Array];

/** Fields of the connection, which belong to the host. */
const FORBIDDEN: ReadonlySet<string> = new Set([
  "connection",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

/** A token of RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** The maximum size of all names and values of one message, in bytes. */
const MAX_BYTES = 1 << 17;
const MAX_FIELDS = 1024;
/** The bytes of the host that a field counts besides its name and its value. */
const FIELD_BYTES = 160;

function refuse(tag: "invalid-syntax" | "forbidden" | "immutable" | "size-exceeded"): never {
  throw new ComponentError({ tag });
}

function checkName(name: string): void {
  if (name.length > MAX_BYTES || !TOKEN.test(name)) refuse("invalid-syntax");
  if (FORBIDDEN.has(name.toLowerCase())) refuse("forbidden");
}

/** Values have no control characters except the tab (RFC 9110, section 5.5). */
function checkValue(value: Uint8Array): void {
  if (value.some((byte) => (byte < 0x20 && byte !== 0x09) || byte === 0x7f)) refuse("invalid-syntax");
}

/** The bytes of a field's text, one per character. */
function fieldBytes(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0) & 0xff);
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09;
}

/** A value as it is sent, one character per byte: without leading and trailing whitespace (RFC 9110, section 5.5). */
function fieldText(value: Uint8Array): string {
  const text = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("latin1");
  if (!isSpace(value[0]) && !isSpace(value[value.length - 1])) return text;
  return text.replace(/^[ \t]+/, "").replace(/(?<![ \t])[ \t]+$/, "");
}

/** The entries with one spelling of each name, the first: names are compared without regard to case. */
function withOneSpelling(entries: readonly Field[]): Field[] {
  const spellings = new Map<string, string>();
  return entries.map(([name, value]) => {
    const key = name.toLowerCase();
    const known = spellings.get(key);
    if (known === undefined) spellings.set(key, name);
    return [known ?? name, value];
  });
}

/** wasi:http/types fields. */
export class Fields implements Holding {
  #entries: readonly Field[] = [];
  #share = new HostShare();
  #isMutable = true;
  /** The fields that this object shows, if it is the view that `headers` of a message returns. */
  #shown: Fields | undefined;
  readonly #hasSizeError: boolean;

  /** With `hasSizeError`, too many bytes are the error of WASI 0.3; in 0.2, which has none, they end the component. */
  constructor(hasSizeError = false) {
    this.#hasSizeError = hasSizeError;
  }

  static fromList(entries: readonly Field[]): Fields {
    return Fields.filled(new Fields(), entries);
  }

  /** Fills `fields`, which has no entries. */
  static filled(fields: Fields, entries: readonly Field[]): Fields {
    fields.#replace(entries, entries);
    return fields;
  }

  /** The fields of a message that has arrived, without those of the connection. */
  static arrived(raw: readonly string[], hasSizeError = false): Fields {
    const fields = new Fields(hasSizeError);
    const entries: Field[] = [];
    for (let k = 0; k + 1 < raw.length; k += 2) {
      if (TOKEN.test(raw[k]) && !FORBIDDEN.has(raw[k].toLowerCase())) entries.push([raw[k], fieldBytes(raw[k + 1])]);
    }
    fields.#keep(withOneSpelling(entries));
    fields.#isMutable = false;
    return fields;
  }

  /** A view that cannot be changed. */
  view(): Fields {
    const fields = new Fields(this.#hasSizeError);
    fields.#shown = this.#shown ?? this;
    fields.#share = this.#share;
    fields.#isMutable = false;
    return fields;
  }

  /** The bytes of all names and values; those of a view are those that it shows. */
  get [SHARES](): readonly HostShare[] {
    return [this.#share];
  }

  #keep(entries: readonly Field[]): void {
    this.#share.set(entries.reduce((sum, [name, value]) => sum + FIELD_BYTES + name.length + value.length, 0));
    this.#entries = entries;
  }

  get #all(): readonly Field[] {
    return this.#shown === undefined ? this.#entries : this.#shown.#entries;
  }

  /** Replaces all entries; those in `added` are new. */
  #replace(entries: readonly Field[], added: readonly Field[]): void {
    if (!this.#isMutable) refuse("immutable");
    // The size first: it bounds the work of the other checks.
    const bytes = entries.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
    if (entries.length > MAX_FIELDS || bytes > MAX_BYTES) this.#refuseSize();
    for (const [name, value] of added) {
      checkName(name);
      checkValue(value);
    }
    this.#keep(withOneSpelling(entries));
  }

  #refuseSize(): never {
    if (this.#hasSizeError) refuse("size-exceeded");
    throw new RangeError(`A message has at most ${MAX_FIELDS} fields and ${MAX_BYTES} bytes of them`);
  }

  #without(name: string): Field[] {
    const key = name.toLowerCase();
    return this.#all.filter(([other]) => other.toLowerCase() !== key);
  }

  get(name: string): Uint8Array[] {
    if (name.length > MAX_BYTES) return [];
    const key = name.toLowerCase();
    return this.#all.filter(([other]) => other.toLowerCase() === key).map(([, value]) => value);
  }

  has(name: string): boolean {
    return this.get(name).length > 0;
  }

  set(name: string, values: readonly Uint8Array[]): void {
    checkName(name);
    if (values.length > MAX_FIELDS) this.#refuseSize();
    const added = values.map((value): Field => [name, value]);
    this.#replace([...this.#without(name), ...added], added);
  }

  delete(name: string): void {
    checkName(name);
    this.#replace(this.#without(name), []);
  }

  append(name: string, value: Uint8Array): void {
    const added: Field = [name, value];
    this.#replace([...this.#all, added], [added]);
  }

  entries(): Field[] {
    return [...this.#all];
  }

  /** The name of `entries` in WASI 0.3. */
  copyAll(): Field[] {
    return this.entries();
  }

  /** `delete` of WASI 0.3 that returns the values. */
  getAndDelete(name: string): Uint8Array[] {
    const values = this.get(name);
    this.delete(name);
    return values;
  }

  clone(): Fields {
    const copy = new Fields(this.#hasSizeError);
    copy.#keep([...this.#all]);
    return copy;
  }

  /** Alternating names and values, the form of Node's messages. */
  toRaw(): string[] {
    return this.#all.flatMap(([name, value]) => [name, fieldText(value)]);
  }

  /**
   * The length that `content-length` announces; undefined without one. Throws TypeError if it is not a number, or is
   * given several times.
   */
  get contentLength(): number | undefined {
    const values = this.get("content-length");
    if (values.length === 0) return undefined;
    const text = fieldText(values[0]);
    if (values.length > 1 || !/^\d{1,15}$/.test(text)) throw new TypeError("content-length must be one number");
    return Number(text);
  }
}
