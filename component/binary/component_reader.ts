/**
 * A cursor over the binary form of components: the engine's reader of bytes, with the values that only components have
 * and a count of the nesting. Errors are MalformedError with the absolute offset, or InvalidError for a limit.
 */
import { ByteReader, UNEXPECTED_END } from "@waft/engine/internal/base/bytes";
import { InvalidError } from "@waft/engine/internal/errors";
import { MAX_ITEMS, MAX_NESTING } from "./limits.ts";

/** A reader of components. */
export class ComponentReader extends ByteReader {
  #nesting = 0;

  /** Fails at the byte before the position: it is not one that `construct` may begin with. */
  badByte(construct: string): never {
    const byte = this.bytes[this.pos - 1].toString(16);
    this.fail(`invalid leading byte (0x${byte}) for ${construct}`, this.pos - 1);
  }

  /** Reads a vector: `read` is called for each item. */
  items<T>(what: string, read: () => T, most: number = MAX_ITEMS): T[] {
    const pos = this.pos;
    const count = this.count();
    if (count > most) {
      throw new InvalidError(`too many ${what}: ${count}, at most ${most} are possible`, { offset: this.base + pos });
    }
    const found: T[] = [];
    for (let left = count; left > 0; left--) {
      if (this.left === 0) this.fail(`${UNEXPECTED_END}: length out of bounds: ${left} more ${what} declared`);
      found.push(read());
    }
    return found;
  }

  /** Reads an optional item: 0x00, or 0x01 and the item. */
  optional<T>(what: string, read: () => T): T | undefined {
    switch (this.u8()) {
      case 0x00:
        return undefined;
      case 0x01:
        return read();
      default:
        return this.badByte(what);
    }
  }

  /** A byte that is 0 or 1. */
  flag(what: string): boolean {
    const byte = this.u8();
    if (byte > 1) this.fail(`invalid boolean value (0x${byte.toString(16)}) for ${what}`, this.pos - 1);
    return byte === 1;
  }

  /** The byte 0x00. */
  zero(what: string): void {
    if (this.u8() !== 0) this.badByte(what);
  }

  /** Calls `read` one level deeper. Throws InvalidError beyond the limit of nesting. */
  nested<T>(read: () => T): T {
    if (++this.#nesting > MAX_NESTING) {
      throw new InvalidError(`components and types are nested too deeply: at most ${MAX_NESTING} levels are possible`, {
        offset: this.offset,
      });
    }
    const value = read();
    this.#nesting--;
    return value;
  }

  /** Calls `read` with the end at `size` bytes from here, and requires that it reads all of them. */
  within<T>(size: number, what: string, read: () => T): T {
    if (size > this.left) {
      this.fail(`${UNEXPECTED_END}: length out of bounds: ${what} of ${size} bytes with ${this.left} left`);
    }
    const end = this.end;
    this.end = this.pos + size;
    const value = read();
    if (this.left > 0) this.fail(`section size mismatch: ${this.left} bytes of ${what} are left over`);
    this.end = end;
    return value;
  }
}
