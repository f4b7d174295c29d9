/**
 * Parts of streams and futures in messages. In: bytes of a stream of bytes, or elements. Out: payloads, and the same
 * again. Invariant: a channel without elements has parts without contents.
 */
import type { PayloadReader, PayloadWriter } from "@waft/engine/internal/runner/values";
import type { ChannelType, ValType } from "../model/types.ts";
import type { ValueCodec } from "./values.ts";

const BYTES: ValType = { kind: "list", element: { kind: "u8" } };

function typeOf({ kind, element }: ChannelType<ValType>): ValType | undefined {
  return kind === "stream" && element?.kind === "u8" ? BYTES : element;
}

/** Writes a part of a channel. */
export function writePart(codec: ValueCodec, writer: PayloadWriter, type: ChannelType<ValType>, value: unknown): void {
  const of = typeOf(type);
  if (of !== undefined) codec.write(writer, of, value);
}

/** Reads a part of a channel. */
export function readPart(codec: ValueCodec, reader: PayloadReader, type: ChannelType<ValType>): unknown {
  const of = typeOf(type);
  return of === undefined ? undefined : codec.read(reader, of);
}
