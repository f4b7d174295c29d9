/**
 * `waft:instance@1`: child instances that a plugin creates from modules in its own memory.
 *
 * In: a plugin and its grant (maximum number of instances, maximum bytes of memory). Out: its functions. A child
 * imports nothing, so it reaches nothing. Every instance gets an equal share of the granted memory, so no order of
 * growth exceeds the total. A trap in a child becomes a status for the plugin, and ends only that child.
 */
import { Bug } from "@waft/engine";
import { STATUS } from "../definitions/authorities.ts";
import { checkRoom, readCells, writeCells } from "./value_cells.ts";
import { type Child, type HostFunctionGroup, StatusError } from "./node.ts";

const PAGE_BYTES = 65536;

/** Functions of `waft:instance@1`. */
export const instanceFunctions: HostFunctionGroup = (node, grants) => {
  const scope = grants["instance.manage"];
  const most = (scope?.maxInstances as number | undefined) ?? 0;
  const pages = Math.min(Math.floor(((scope?.maxMemoryBytes as number | undefined) ?? 0) / PAGE_BYTES / most), 65536);
  const children: (Child | undefined)[] = [];
  node.closers.push(() => {
    for (const child of children.splice(0)) child?.instance.close();
  });
  const childAt = (handle: number): Child => {
    const child = children[handle >>> 0];
    if (child === undefined) throw new StatusError(STATUS.missing);
    return child;
  };
  const close = (handle: number): void => {
    childAt(handle).instance.close();
    children[handle >>> 0] = undefined;
  };
  return {
    create: (at: number, length: number) => {
      const bytes = node.memory.bytes(at, length).slice();
      let handle = children.indexOf(undefined);
      if (handle < 0) handle = children.length;
      if (handle >= most) throw new StatusError(STATUS.denied);
      children[handle] = contain(STATUS.invalid, () => node.services.instantiateChild(bytes, pages));
      return handle;
    },
    call: (handle: number, name: number, size: number, args: number, count: number, results: number, room: number) => {
      const child = childAt(handle);
      const text = node.memory.text(name, size);
      const type = child.functionType(text);
      if (type === undefined) throw new StatusError(STATUS.missing);
      const values = readCells(node.memory, args, count, type.params);
      checkRoom(node.memory, results, room, type.results);
      let result: unknown;
      try {
        result = contain(STATUS.failed, () => child.instance.call({}, text, ...values));
      } catch (error) {
        close(handle);
        throw error;
      }
      writeCells(node.memory, results, type.results, result);
      return STATUS.ok;
    },
    close: (handle: number) => {
      close(handle);
      return STATUS.ok;
    },
  };
};

/** Runs an action on a child; any failure becomes a status. */
function contain<T>(status: number, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (error instanceof Bug) throw error;
    throw new StatusError(status);
  }
}
