/**
 * Type descriptors for compiled code and the collector (gc_layout.ts: DESCRIPTOR), by canonical type id, in one range
 * of memory at a fixed address. In: canonical ids (wasm/subtype.ts). Out: their rows. Rows are only ever added, as
 * canonical types are.
 */
import { DESCRIPTOR, DISPLAY_LENGTH, layoutFields, LONG_WORDS, OBJECT, TYPE_KIND } from "../abi/gc_layout.ts";
import { type Host, PROT } from "../host/host.ts";
import { canonicalType, fieldsBeforeDescriptor, MAX_SUBTYPE_DEPTH, supertypeDisplay } from "../wasm/subtype.ts";
import { byteSize, type FieldType, heapOf, isRef, type ValType } from "../wasm/types.ts";

/** The number of types there is room for: as many as the system gives address space for. */
const CAPACITIES = [1 << 24, 1 << 20, 1 << 16];
/** Bytes of a chunk of memory for data that does not fit descriptors. */
const CHUNK_BYTES = 1 << 16;
const DEEP_BYTES = (MAX_SUBTYPE_DEPTH + 1) * 4;

export class TypeTable {
  readonly address: number;
  readonly #host: Host;
  readonly #capacity: number;
  /** Views of the table, by chunks of CHUNK_BYTES. */
  readonly #views: Uint32Array[] = [];
  readonly #defined: boolean[] = [];
  /** Types without descriptors, until descriptors are read. */
  readonly #noted = new Set<number>();
  #isRead = false;
  /** The area of long bitmaps and deep displays. */
  #side: { address: number; u32: Uint32Array; used: number } | undefined;

  constructor(host: Host) {
    this.#host = host;
    let address = 0;
    let capacity = 0;
    for (capacity of CAPACITIES) {
      try {
        address = host.reserve(capacity * DESCRIPTOR.SIZE, PROT.READ | PROT.WRITE);
        break;
      } catch (error) {
        if (capacity === CAPACITIES.at(-1)) throw error;
      }
    }
    this.address = address;
    this.#capacity = capacity;
  }

  /**
   * Makes sure that the types `ids` and all above them have descriptors, from the first code on that reads descriptors
   * (`isRead`): before, their ids are noted, because most programs never create or cast a reference.
   */
  define(ids: Int32Array, isRead: boolean): void {
    if (!isRead && !this.#isRead) {
      for (const id of ids) this.#noted.add(id);
      return;
    }
    this.#isRead = true;
    for (const id of this.#noted) if (!this.#defined[id]) this.#write(id);
    this.#noted.clear();
    for (const id of ids) if (!this.#defined[id]) this.#write(id);
  }

  #write(id: number): void {
    if (id >= this.#capacity) throw new RangeError("Too many distinct types for the address space of this process");
    const { composite } = canonicalType(id);
    const display = supertypeDisplay(id);
    const { u32, at } = this.#row(id);
    u32[at + (DESCRIPTOR.KIND >> 2)] = composite.kind === "struct"
      ? TYPE_KIND.STRUCT
      : composite.kind === "array"
      ? TYPE_KIND.ARRAY
      : composite.kind === "func"
      ? TYPE_KIND.FUNC
      : TYPE_KIND.NONE;
    if (composite.kind === "struct") this.#writeFields(u32, at, composite.fields, fieldsBeforeDescriptor(id));
    else if (composite.kind === "array") {
      u32[at + (DESCRIPTOR.BYTES >> 2)] = byteSize(composite.field.storage);
      u32[at + (DESCRIPTOR.REFERENCES >> 2)] = isRef(composite.field.storage) ? 1 : 0;
      u32[at + (DESCRIPTOR.LEAVES >> 2)] = isLeaf(composite.field.storage) ? 1 : 0;
    }
    u32.set(display.subarray(0, DISPLAY_LENGTH), at + (DESCRIPTOR.DISPLAY >> 2));
    const deep = this.#take(DEEP_BYTES);
    deep.u32.set(display, deep.at);
    setWord(u32, at + (DESCRIPTOR.DEEP >> 2), deep.address);
    this.#defined[id] = true;
  }

  #writeFields(u32: Uint32Array, at: number, fields: readonly FieldType[], beforeDescriptor: number): void {
    const { offsets, descriptor, bytes } = layoutFields(
      fields.map(({ storage }) => byteSize(storage)),
      beforeDescriptor,
    );
    u32[at + (DESCRIPTOR.BYTES >> 2)] = bytes;
    const words = fields.flatMap(({ storage }, k) => isRef(storage) ? [(offsets[k] - OBJECT.FIELDS) >> 3] : []);
    if (descriptor !== 0) words.push((descriptor - OBJECT.FIELDS) >> 3);
    if (words.length === 0) return;
    let map = u32;
    let first = at + (DESCRIPTOR.REFERENCES >> 2);
    const count = (bytes - OBJECT.FIELDS) >> 3;
    if (count > LONG_WORDS) {
      const long = this.#take(Math.ceil(count / 64) * 8);
      setWord(u32, first, long.address);
      map = long.u32;
      first = long.at;
    }
    for (const word of words) map[first + (word >> 5)] |= 1 << (word & 31);
    if (count > LONG_WORDS) return;
    const leaves = at + (DESCRIPTOR.LEAVES >> 2);
    fields.forEach(({ storage }, k) => {
      const word = (offsets[k] - OBJECT.FIELDS) >> 3;
      if (isLeaf(storage)) u32[leaves + (word >> 5)] |= 1 << (word & 31);
    });
  }

  #row(id: number): { u32: Uint32Array; at: number } {
    const chunk = Math.floor(id * DESCRIPTOR.SIZE / CHUNK_BYTES);
    const u32 = this.#views[chunk] ??= new Uint32Array(
      this.#host.view(this.address + chunk * CHUNK_BYTES, CHUNK_BYTES),
    );
    return { u32, at: (id * DESCRIPTOR.SIZE % CHUNK_BYTES) >> 2 };
  }

  /** Zeroed memory beside the table. */
  #take(bytes: number): { u32: Uint32Array; at: number; address: number } {
    let side = this.#side;
    if (side === undefined || side.used + bytes > side.u32.byteLength) {
      const size = Math.max(CHUNK_BYTES, bytes);
      const address = this.#host.reserve(size, PROT.READ | PROT.WRITE);
      side = { address, u32: new Uint32Array(this.#host.view(address, size)), used: 0 };
      if (size === CHUNK_BYTES) this.#side = side;
    }
    const at = side.used;
    side.used += bytes;
    return { u32: side.u32, at: at >> 2, address: side.address + at };
  }
}

/** Whether every value of (closed) storage type `storage` is an object without references, or no object. */
function isLeaf(storage: ValType): boolean {
  if (!isRef(storage) || heapOf(storage) < 0) return false;
  const { final, descriptor, composite } = canonicalType(heapOf(storage));
  // Elements of an array's subtypes are numbers as well; a structure's may have more fields.
  if (composite.kind === "array") return !isRef(composite.field.storage);
  return composite.kind === "struct" && final && descriptor === undefined &&
    !composite.fields.some((field) => isRef(field.storage));
}

/** Writes an address as two halves. */
function setWord(u32: Uint32Array, at: number, value: number): void {
  u32[at] = value;
  u32[at + 1] = value / 0x1_0000_0000;
}
