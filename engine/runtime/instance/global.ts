/**
 * Global instances (specification, 4.2.9): a 16-byte cell outside the JavaScript heap, which lies in the VM context of the
 * instance that defines the global, or in a block of its own when the host made it.
 */
import type { Sharer } from "../../gc/references.ts";
import { type GlobalType, isRef } from "../../wasm/types.ts";
import { funcInfo } from "./func.ts";
import type { NativeRegion } from "../memory/native_region.ts";

export class Global {
  /** Its type, closed (wasm/subtype.ts). */
  readonly type: GlobalType;
  readonly region: NativeRegion;
  readonly offset: number;
  /** What keeps the cell alive. */
  readonly owner: unknown;

  constructor(type: GlobalType, region: NativeRegion, offset: number, owner: unknown) {
    this.type = type;
    this.region = region;
    this.offset = offset;
    this.owner = owner;
  }

  /** Marks the reference that it holds, if any. */
  markReferences(mark: (word: number) => void): void {
    if (!isRef(this.type.type)) return;
    const word = this.region.word(this.offset);
    if (word !== 0) mark(word);
  }

  /** The same for the collected heap. */
  visitReferences(_range: unknown, word: (word: number) => void): void {
    this.markReferences(word);
  }

  keepAlive(other: Sharer): void {
    this.#kept.add(other);
  }
  readonly #kept: Set<Sharer> = new Set();

  /** Keeps the instance of a function alive that was just stored. */
  keepOwner(value: unknown): void {
    const info = funcInfo(value);
    this.#keep = info?.owner;
  }
  #keep: unknown;

  get address(): number {
    return this.region.address + this.offset;
  }
}
