/**
 * Component → ValidComponent (Explainer; Binary): every definition in order, against the index spaces that the earlier
 * ones have filled.
 *
 * Establishes the brand of ValidComponent: indices are in bounds, types match, names are well-formed and unique, core
 * modules are valid. Errors are InvalidError or UnsupportedError, and MalformedError for a malformed core module, each
 * with the offset of the definition or, in a core module, of the fault.
 */
import { ALL_FEATURE_ROWS, type FeatureName, featureSet } from "@waft/engine/internal/features";
import type { Component, Definition } from "../model/definitions.ts";
import type { ModuleType } from "../model/types.ts";
import type { ValidComponent } from "../model/valid_component.ts";
import { addAlias } from "./aliases.ts";
import { defineCanon } from "./canon.ts";
import { defineCoreType, validateCoreModule } from "./core_types.ts";
import { addExtern, exportedExtern, finishComponent, resolveExternDesc } from "./externs.ts";
import { coreInstanceType, instanceType } from "./instances.ts";
import { COPIED_NODES_PER_BYTE, MAX_COPIED_NODES, MAX_CORE_MODULES, MAX_FRESH_RESOURCES } from "./limits.ts";
import { Scope, type Session } from "./scope.ts";
import { Subtyping } from "./subtype.ts";
import { checkSize, defineType } from "./types.ts";

/** Options of validation. */
export interface ComponentOptions {
  /** Features of core WebAssembly, for core modules. */
  readonly features?: Partial<Record<FeatureName, boolean>>;
  /** Validate function bodies of core modules, too; default true. A compiler validates those that it compiles. */
  readonly bodies?: boolean;
}

/** Validates a decoded component and everything in it. */
export function validateComponent(component: Component, options: ComponentOptions = {}): ValidComponent {
  return validateWithin(component, sessionFor(component, options), undefined);
}

function sessionFor({ offset, bytes }: Pick<Component, "offset" | "bytes">, options: ComponentOptions): Session {
  return {
    features: featureSet(options.features),
    bodies: options.bodies ?? true,
    offset,
    modulesLeft: MAX_CORE_MODULES,
    freshLeft: MAX_FRESH_RESOURCES,
    copiesLeft: MAX_COPIED_NODES + COPIED_NODES_PER_BYTE * bytes.length,
    subtyping: new Subtyping(),
  };
}

/** The type of a core module that is known to be valid with some features. */
export function moduleType(bytes: Uint8Array): ModuleType {
  const features = Object.fromEntries(ALL_FEATURE_ROWS.map(({ name }) => [name, true]));
  const session = sessionFor({ offset: 0, bytes }, { features, bodies: false });
  return validateCoreModule(new Scope("component", session), bytes, 0);
}

function validateWithin(component: Component, session: Session, parent: Scope | undefined): ValidComponent {
  const scope = new Scope("component", session, parent);
  for (const definition of component.definitions) {
    session.offset = definition.offset;
    define(scope, definition);
  }
  const type = finishComponent(scope);
  checkSize(scope, type);
  return { component, type, spaces: scope.spaces, nested: scope.nested } as unknown as ValidComponent;
}

function define(scope: Scope, definition: Definition): void {
  const { spaces, session } = scope;
  switch (definition.kind) {
    case "core module":
      if (--session.modulesLeft < 0) scope.fail(`too many core modules: at most ${MAX_CORE_MODULES} are possible`);
      spaces.coreModules.push(validateCoreModule(scope, definition.bytes, definition.offset));
      break;
    case "core instance":
      spaces.coreInstances.push(coreInstanceType(scope, definition.expr));
      break;
    case "core type":
      defineCoreType(scope, definition.type);
      break;
    case "component": {
      const nested = validateWithin(definition.component, session, scope);
      scope.nested.push(nested);
      spaces.components.push(nested.type);
      break;
    }
    case "instance":
      spaces.instances.push(instanceType(scope, definition.expr));
      break;
    case "alias":
      addAlias(scope, definition.alias);
      break;
    case "type":
      defineType(scope, definition.type);
      break;
    case "canon":
      defineCanon(scope, definition.canon);
      break;
    case "start":
    case "value":
      scope.fail("values and start functions are not supported: they are unfinished features of the component model");
      break;
    case "import": {
      const { name, type, attributes } = definition;
      addExtern(scope, "import", name, resolveExternDesc(scope, type, "import"), attributes);
      break;
    }
    case "export":
      addExtern(
        scope,
        "export",
        definition.name,
        exportedExtern(scope, definition, definition.type),
        definition.attributes,
      );
      break;
  }
}
