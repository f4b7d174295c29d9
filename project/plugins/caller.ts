/**
 * `waft:caller@1`: the caller's exported memory, named exports of the caller, and its identity.
 *
 * In: a plugin and its grants. Out: its functions. Every copy is checked against the current sizes of both
 * memories; an out-of-bounds copy transfers nothing. The caller's addresses are 64 bits wide and unsigned.
 */
import { STATUS } from "../definitions/authorities.ts";
import { checkRoom, readCells, writeCells } from "./value_cells.ts";
import { type HostFunctionGroup, type PluginNode, StatusError } from "./node.ts";
import { inPieces } from "./system.ts";
import { whenThere } from "./waiting.ts";

/** Functions of `waft:caller@1`. */
export const callerFunctions: HostFunctionGroup = (node, grants) => {
  const exports = new Set((grants["caller.call"]?.exports as string[] | undefined) ?? []);
  return {
    "memory-size": () => node.caller?.instance === undefined ? 0 : sizeOf(node),
    read: (from: bigint, to: number, length: number) => {
      const source = callerBytes(node, from, length);
      return copy(source, node.memory.bytes(to, length));
    },
    write: (to: bigint, from: number, length: number) => {
      const target = callerBytes(node, to, length);
      return copy(node.memory.bytes(from, length), target);
    },
    call: (nameAt: number, nameLength: number, args: number, count: number, results: number, room: number) => {
      const name = node.memory.text(nameAt, nameLength);
      if (!exports.has(name)) throw new StatusError(STATUS.denied);
      const { caller } = node;
      const type = caller?.instance === undefined ? undefined : caller.functionType(name);
      if (type === undefined) throw new StatusError(STATUS.missing);
      const values = readCells(node.memory, args, count, type.params);
      checkRoom(node.memory, results, room, type.results);
      return whenThere(caller!.callExport(name, values), (result) => {
        writeCells(node.memory, results, type.results, result);
        return STATUS.ok;
      });
    },
    "module-digest": (at: number) => {
      if (node.caller === undefined) throw new StatusError(STATUS.missing);
      const hex = node.caller.digest.slice("sha256:".length);
      const bytes = node.memory.bytes(at, 32);
      for (let i = 0; i < 32; i++) bytes[i] = parseInt(hex.slice(i * 2, i * 2 + 2), 16);
      return STATUS.ok;
    },
    "instance-number": () => {
      const { caller } = node;
      if (caller?.instance === undefined) throw new StatusError(STATUS.missing);
      return caller.instance.internal.number;
    },
  };
};

/** Copies all of `from`, from one memory to another, under the limits of the call. */
function copy(from: Uint8Array, to: Uint8Array): number {
  inPieces(from.length, (done, bytes) => {
    to.set(from.subarray(done, done + bytes), done);
    return bytes;
  });
  return STATUS.ok;
}

function sizeOf(node: PluginNode): number {
  try {
    return node.callerMemory.byteLength;
  } catch (error) {
    if (error instanceof StatusError) return 0;
    throw error;
  }
}

function callerBytes(node: PluginNode, at: bigint, length: number): Uint8Array {
  const memory = node.callerMemory;
  const from = BigInt.asUintN(64, at);
  if (from + BigInt(length >>> 0) > BigInt(memory.byteLength)) throw new StatusError(STATUS.bounds);
  return new Uint8Array(memory.buffer, Number(from), length >>> 0);
}
