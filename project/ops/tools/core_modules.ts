/** The core modules inside of a component. In: a decoded component. Out: their binary forms. */
import type { Component } from "@waft/component/internal/model/definitions";

/** The core modules of a component and of the components in it, in the order of the file. */
export function coreModules({ definitions }: Component): Uint8Array[] {
  return definitions.flatMap((definition) => {
    if (definition.kind === "component") return coreModules(definition.component);
    return definition.kind === "core module" ? [definition.bytes] : [];
  });
}
