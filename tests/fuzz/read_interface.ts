/**
 * Reads the parts of a module that the fuzzer needs to drive it: types, imports and exported functions (specification,
 * 5.5). In: a valid binary module. Out: its interface. Deliberately independent of the engine's decoder.
 */
import { readType, type Signature, type TypeName } from "./value_types.ts";

export type ImportType =
  | { kind: "func"; signature: Signature }
  | { kind: "table"; type: TypeName; min: number; max: number | undefined; is64: boolean }
  | { kind: "memory"; min: number; max: number | undefined; is64: boolean; shared: boolean }
  | { kind: "global"; type: TypeName; mutable: boolean }
  | { kind: "tag"; signature: Signature };

/** The module uses a construct that the fuzzer does not support. */
export class UnknownInterface extends Error {}

export interface ModuleInterface {
  readonly imports: readonly { module: string; name: string; type: ImportType }[];
  /** Signatures by function index. */
  readonly functions: readonly Signature[];
  /** The byte ranges of bodies, by function index; undefined for imports. */
  readonly bodies: readonly ({ start: number; end: number } | undefined)[];
  /** Signatures of tags by tag index. */
  readonly tags: readonly Signature[];
  /** Function types by type index. */
  readonly types: readonly (Signature | undefined)[];
  /** Whether it has a start function. */
  readonly start: boolean;
  readonly exports: readonly { name: string; kind: "func" | "table" | "memory" | "global" | "tag"; index: number }[];
}

const KINDS = ["func", "table", "memory", "global", "tag"] as const;

/** What follows the empty name of an import that is a group (compact import section). */
const GROUP = 0x7f;
const GROUP_OF_TYPE = 0x7e;

const decoder = new TextDecoder();
const known = new WeakMap<Uint8Array, ModuleInterface>();

/** Reads the interface of a module that is known to be valid, once: each engine that runs it needs the interface. */
export function readInterface(bytes: Uint8Array): ModuleInterface {
  const face = known.get(bytes) ?? new InterfaceReader(bytes).read();
  known.set(bytes, face);
  return face;
}

function unknown(message: string): never {
  throw new UnknownInterface(message);
}

class InterfaceReader {
  readonly #bytes: Uint8Array;
  #at = 8;
  readonly #signatures: (Signature | undefined)[] = [];
  readonly #imports: { module: string; name: string; type: ImportType }[] = [];
  readonly #functions: Signature[] = [];
  readonly #tags: Signature[] = [];
  readonly #bodies: { start: number; end: number }[] = [];
  readonly #exports: { name: string; kind: (typeof KINDS)[number]; index: number }[] = [];
  #importedFunctions = 0;
  #start = false;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  read(): ModuleInterface {
    while (this.#at < this.#bytes.length) {
      const id = this.#byte();
      const length = this.#u32();
      const end = this.#at + length;
      this.#section(id);
      this.#at = end;
    }
    return {
      imports: this.#imports,
      functions: this.#functions,
      bodies: this.#bodies,
      tags: this.#tags,
      types: this.#signatures,
      start: this.#start,
      exports: this.#exports,
    };
  }

  #section(id: number): void {
    if (id === 1) this.#each(() => this.#group());
    else if (id === 2) this.#each(() => this.#import());
    else if (id === 3) this.#each(() => this.#functions.push(this.#signature()));
    else if (id === 7) this.#each(() => this.#export());
    else if (id === 8) this.#start = true;
    else if (id === 10) this.#each((n) => this.#body(n));
    else if (id === 13) {
      this.#each(() => {
        this.#byte(); // attribute
        this.#tags.push(this.#signature());
      });
    }
  }

  // ---- primitives ---------------------------------------------------------------------------------------------------

  #byte(): number {
    return this.#bytes[this.#at++];
  }

  #u32(): number {
    let value = 0;
    for (let shift = 0;; shift += 7) {
      const byte = this.#byte();
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  }

  #signed(): number {
    const start = this.#at;
    const value = this.#u32();
    return (this.#bytes[this.#at - 1] & 64) === 0 ? value : value - 2 ** (7 * (this.#at - start));
  }

  /** Reads a count, then calls `read` for each entry. */
  #each(read: (n: number) => void): void {
    const count = this.#u32();
    for (let n = 0; n < count; n++) read(n);
  }

  #text(): string {
    const length = this.#u32();
    this.#at += length;
    return decoder.decode(this.#bytes.subarray(this.#at - length, this.#at));
  }

  // ---- types --------------------------------------------------------------------------------------------------------

  #type(): TypeName {
    const start = this.#at;
    const name = readType(() => this.#byte(), () => this.#signed());
    if (name === undefined) throw new UnknownInterface(`type 0x${this.#bytes[start].toString(16)}`);
    return name;
  }

  #types(): TypeName[] {
    const types: TypeName[] = [];
    this.#each(() => types.push(this.#type()));
    return types;
  }

  #limits(): { min: number; max: number | undefined; shared: boolean; is64: boolean } {
    const flags = this.#u32();
    const min = this.#u32();
    const max = (flags & 1) !== 0 ? this.#u32() : undefined;
    if ((flags & 8) !== 0) this.#u32(); // size of pages
    return { min, max, shared: (flags & 2) !== 0, is64: (flags & 4) !== 0 };
  }

  /** Reads the index of a function type. */
  #signature(): Signature {
    const index = this.#u32();
    return this.#signatures[index] ?? unknown(`type ${index}, which is not a function type`);
  }

  /** One entry of the type section: a definition or a group of them. */
  #group(): void {
    if (this.#bytes[this.#at] !== 0x4e) return this.#definition();
    this.#at++;
    this.#each(() => this.#definition());
  }

  /** Reads one definition of the type section; only function types are kept. */
  #definition(): void {
    if (this.#bytes[this.#at] === 0x50 || this.#bytes[this.#at] === 0x4f) {
      this.#at++;
      this.#each(() => this.#u32()); // supertypes
    }
    const form = this.#byte();
    if (form === 0x60) {
      const params = this.#types();
      this.#signatures.push({ params, results: this.#types() });
      return;
    }
    if (form === 0x5f) this.#each(() => this.#storage());
    else if (form === 0x5e) this.#storage();
    else throw new UnknownInterface(`type definition 0x${form.toString(16)}`);
    this.#signatures.push(undefined);
  }

  #storage(): void {
    if (this.#bytes[this.#at] === 0x78 || this.#bytes[this.#at] === 0x77) this.#at++;
    else this.#type();
    this.#at++; // mutability
  }

  // ---- entries ------------------------------------------------------------------------------------------------------

  #import(): void {
    const module = this.#text();
    const name = this.#text();
    const isGroup = name === "" && (this.#bytes[this.#at] === GROUP || this.#bytes[this.#at] === GROUP_OF_TYPE);
    if (!isGroup) return this.#addImport(module, name, this.#importType());
    if (this.#byte() === GROUP) this.#each(() => this.#addImport(module, this.#text(), this.#importType()));
    else {
      const type = this.#importType();
      this.#each(() => this.#addImport(module, this.#text(), type));
    }
  }

  #addImport(module: string, name: string, type: ImportType): void {
    const entry = { module, name, type };
    this.#imports.push(entry);
    if (entry.type.kind === "func") this.#importedFunctions = this.#functions.push(entry.type.signature);
    if (entry.type.kind === "tag") this.#tags.push(entry.type.signature);
  }

  #importType(): ImportType {
    const kind = this.#byte();
    if (kind === 0) return { kind: "func", signature: this.#signature() };
    if (kind === 1) return { kind: "table", type: this.#type(), ...this.#limits() };
    if (kind === 2) return { kind: "memory", ...this.#limits() };
    if (kind === 3) return { kind: "global", type: this.#type(), mutable: this.#byte() === 1 };
    if (kind === 4) {
      this.#byte(); // attribute
      return { kind: "tag", signature: this.#signature() };
    }
    throw new UnknownInterface(`import of kind ${kind}`);
  }

  #export(): void {
    const name = this.#text();
    const kind = KINDS[this.#byte()];
    const index = this.#u32();
    if (kind !== undefined) this.#exports.push({ name, kind, index });
  }

  #body(n: number): void {
    const size = this.#u32();
    this.#bodies[this.#importedFunctions + n] = { start: this.#at, end: this.#at + size };
    this.#at += size;
  }
}
