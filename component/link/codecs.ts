/**
 * Codecs of handles (Canonical ABI: lift_own, lift_borrow, lower_own, lower_borrow, and the same for streams, futures
 * and error contexts). In: the type of a handle and the instance whose table it is in. Out: a codec between indices in
 * that table and representations, for another component, or objects, for JavaScript.
 */
import type { HandleCodec } from "../abi/runtime.ts";
import { trap } from "../abi/traps.ts";
import { ErrorContext, ResourceHandle, RuntimeResource } from "../async/entries.ts";
import type { ComponentInstance, Store } from "../async/component_instance.ts";
import { channelCodec } from "../async/channels.ts";
import { giveBack, objectOf, releaseBorrow, repOf } from "./host_resources.ts";
import type { ValType } from "../model/types.ts";

export function codecOf(type: ValType, instance: ComponentInstance, foreign: boolean): HandleCodec {
  switch (type.kind) {
    case "own":
    case "borrow": {
      const resource = type.resource.id;
      if (!(resource instanceof RuntimeResource)) throw new TypeError("The resource type is not one of an instance");
      const codec = type.kind === "own" ? ownCodec(resource, instance) : borrowCodec(resource, instance);
      return foreign ? codec : withObjects(codec, resource, instance, type.kind === "own");
    }
    case "stream":
    case "future":
      return channelCodec(type, instance, foreign);
    case "error-context":
      return {
        lift: (index) => {
          const entry = instance.handles.get(index);
          if (!(entry instanceof ErrorContext)) trap("handle index is not that of an error context");
          return entry;
        },
        lower: (value) => instance.handles.add(value as ErrorContext),
      };
    default:
      throw new TypeError(`${type.kind} is not a handle type`);
  }
}

/** The resource handle at `index`, which must be of type `resource`. */
export function resourceAt(instance: ComponentInstance, resource: RuntimeResource, index: number): ResourceHandle {
  const handle = instance.handles.get(index);
  if (!(handle instanceof ResourceHandle)) trap("handle index is not that of a resource");
  if (handle.resource !== resource) trap("handle index used with the wrong type");
  return handle;
}

interface RepCodec {
  lift(index: number): number;
  lower(rep: unknown): number;
}

function ownCodec(resource: RuntimeResource, instance: ComponentInstance): RepCodec {
  return {
    lift: (index) => {
      const handle = resourceAt(instance, resource, index);
      if (handle.lends !== 0) trap("cannot remove owned resource while borrowed");
      if (!handle.own) trap("cannot lift own resource from a borrow");
      instance.handles.remove(index);
      return handle.rep;
    },
    lower: (rep) => instance.handles.add(new ResourceHandle(resource, rep as number, true)),
  };
}

function borrowCodec(resource: RuntimeResource, instance: ComponentInstance): RepCodec {
  const { store } = instance;
  return {
    lift: (index) => {
      const handle = resourceAt(instance, resource, index);
      store.lending?.addLender(handle);
      return handle.rep;
    },
    lower: (rep) => {
      if (instance === resource.owner) return rep as number;
      const scope = store.task;
      scope.borrows++;
      return instance.handles.add(new ResourceHandle(resource, rep as number, false, scope));
    },
  };
}

/** The codec that represents handles by objects in JavaScript. */
function withObjects(
  codec: RepCodec,
  resource: RuntimeResource,
  instance: ComponentInstance,
  owned: boolean,
): HandleCodec {
  const { passing } = instance.store;
  return {
    lift: (index) => objectOf(resource, codec.lift(index), owned),
    lower: (value) => {
      const rep = repOf(resource, value, owned);
      const index = codec.lower(rep);
      const undo = () => {
        if (owned || instance !== resource.owner) removeHandle(instance, index);
        giveBack(resource, value as object, rep, owned);
      };
      passing.at(-1)?.push({ undo });
      return index;
    },
  };
}

/** Removes a handle that the instance has not seen. */
function removeHandle(instance: ComponentInstance, index: number): void {
  const handle = instance.handles.remove(index) as ResourceHandle;
  if (handle.scope !== undefined) handle.scope.borrows--;
}

/** Undoes the passing of the handles, streams and futures of a call whose arguments cannot be lowered. */
export function undoPassing({ passing }: Store): void {
  for (const passed of passing.pop()!.reverse()) passed.undo();
}

/** Completes the passing of the arguments of a call: streams and futures begin to be read. */
export function completePassing({ passing }: Store): void {
  for (const passed of passing.pop()!) passed.complete?.();
}

/** Drops the handle at `index` (canon resource.drop). */
export function dropResource(instance: ComponentInstance, resource: RuntimeResource, index: number): void {
  instance.requireLeave();
  const handle = resourceAt(instance, resource, index);
  if (handle.lends !== 0) trap("cannot remove owned resource while borrowed");
  instance.handles.remove(index);
  if (handle.own) resource.destroy?.(handle.rep, instance);
  else {
    handle.scope!.borrows--;
    if (resource.owner === undefined) releaseBorrow(resource, handle.rep);
  }
}
