/**
 * A scope under validation: the index spaces of a component, component type or instance type, its imports and exports,
 * and the resource types that it introduces. Scopes form a chain to the outermost component.
 *
 * Every failure is an InvalidError at the offset of the current definition.
 */
import type { FeatureSet } from "@waft/engine/internal/features";
import { invalid } from "../model/invalid.ts";
import type { ClosedFuncType, CoreInstanceType, CoreTypeEntry, ValidComponent } from "../model/valid_component.ts";
import type {
  AnyType,
  ComponentType,
  CoreExternType,
  ExportPath,
  Extern,
  FuncType,
  InstanceType,
  ModuleType,
  ResourceId,
  ResourcePath,
  ResourceType,
  ValType,
} from "../model/types.ts";
import type { ValType as CoreValType } from "@waft/engine/internal/wasm/types";
import { MAX_FRESH_RESOURCES } from "./limits.ts";
import { NameSet } from "./name_set.ts";
import type { Subtyping } from "./subtype.ts";
import { factsOf } from "./type_facts.ts";

/** The state that all scopes of one validation share. */
export interface Session {
  readonly features: FeatureSet;
  /** Whether function bodies of core modules are validated. */
  readonly bodies: boolean;
  /** Offset of the current definition. */
  offset: number;
  /** Core modules that may still follow. */
  modulesLeft: number;
  /** Resource types that may still be made, and nodes of types that may still be copied. */
  freshLeft: number;
  copiesLeft: number;
  /** Comparisons of types; all of one validation share it, so no pair is compared twice. */
  readonly subtyping: Subtyping;
}

/**
 * Charges for an instance of `type` with `fresh` resource types of its own. A short component can ask for any number of
 * large instances.
 */
export function chargeCopy(scope: Scope, type: AnyType, fresh: number): void {
  const { session } = scope;
  session.freshLeft -= fresh;
  if (session.freshLeft < 0) scope.fail(`too many resource types: at most ${MAX_FRESH_RESOURCES} are possible`);
  chargeNodes(scope, factsOf(type).nodes);
}

/** Charges for `count` nodes of types. */
export function chargeNodes(scope: Scope, count: number): void {
  scope.session.copiesLeft -= count;
  if (scope.session.copiesLeft < 0) scope.fail("the types of all instances together are too large");
}

type ScopeKind = "component" | "component type" | "instance type";

/** One side of a scope, its imports or its exports. */
export interface Side {
  readonly direction: "import" | "export";
  readonly externs: Map<string, Extern>;
  readonly names: NameSet;
  /** Types with a name that is visible on this side. */
  readonly named: Set<AnyType>;
  /** Types whose parts are all named on this side. */
  readonly visible: Set<AnyType>;
}

function makeSide(direction: Side["direction"]): Side {
  return { direction, externs: new Map(), names: new NameSet(direction), named: new Set(), visible: new Set() };
}

/** Names of index spaces in messages. */
const SPACE_TITLES = {
  coreModules: "module",
  coreInstances: "core instance",
  coreTypes: "core type",
  coreFuncs: "core function",
  coreTables: "table",
  coreMemories: "memory",
  coreGlobals: "global",
  coreTags: "tag",
  components: "component",
  instances: "instance",
  funcs: "function",
  types: "type",
  values: "value",
} as const;

type CoreTyped<K extends CoreExternType["kind"]> = Extract<CoreExternType, { kind: K }>["type"];

interface Spaces {
  readonly coreModules: ModuleType[];
  readonly coreInstances: CoreInstanceType[];
  readonly coreTypes: CoreTypeEntry[];
  readonly coreFuncs: ClosedFuncType[];
  readonly coreTables: CoreTyped<"table">[];
  readonly coreMemories: CoreTyped<"memory">[];
  readonly coreGlobals: CoreTyped<"global">[];
  readonly coreTags: ClosedFuncType[];
  readonly components: ComponentType[];
  readonly instances: InstanceType[];
  readonly funcs: FuncType[];
  readonly types: AnyType[];
  readonly values: ValType[];
}

export class Scope {
  readonly kind: ScopeKind;
  readonly session: Session;
  readonly parent: Scope | undefined;
  readonly spaces: Spaces;
  readonly imports: Side = makeSide("import");
  readonly exports: Side = makeSide("export");
  /** Resource types of imports, with the paths of the imports. */
  readonly imported: ResourcePath[] = [];
  /** Resource types that this scope introduces other than by import. */
  readonly defined = new Set<ResourceId>();
  /** Resource types that this component defines itself. */
  readonly local = new Set<ResourceId>();
  /** Paths of the exports that name resource types. */
  readonly paths = new Map<ResourceId, ExportPath>();
  readonly nested: ValidComponent[] = [];
  /** The type of the context slots of this component, once a built-in has used them. */
  contextType: CoreValType | undefined;

  constructor(kind: ScopeKind, session: Session, parent?: Scope) {
    this.kind = kind;
    this.session = session;
    this.parent = parent;
    this.spaces = {
      coreModules: [],
      coreInstances: [],
      coreTypes: [],
      coreFuncs: [],
      coreTables: [],
      coreMemories: [],
      coreGlobals: [],
      coreTags: [],
      components: [],
      instances: [],
      funcs: [],
      types: [],
      values: [],
    };
  }

  /** Throws InvalidError at the current definition. */
  fail(message: string): never {
    throw invalid(message, this.session.offset);
  }

  /** Entry `index` of an index space. */
  at<K extends keyof Spaces>(space: K, index: number): Spaces[K][number] {
    const entries: readonly Spaces[K][number][] = this.spaces[space];
    if (index < entries.length) return entries[index];
    const title = SPACE_TITLES[space];
    const shared = /function$/.test(title) ? "function" : /type$/.test(title) ? "type" : title;
    return this.fail(`unknown ${title} ${index}: ${shared} index out of bounds`);
  }

  /** The resource type with index `index`. */
  resourceAt(index: number): ResourceType {
    const type = this.at("types", index);
    return type.kind === "resource" ? type : this.fail(`type index ${index} is not a resource type`);
  }

  /** The scope `count` levels outward. */
  outer(count: number): Scope {
    let scope: Scope | undefined = this as Scope;
    for (let left = count; left > 0 && scope !== undefined; left--) scope = scope.parent;
    return scope ?? this.fail(`invalid outer alias count of ${count}`);
  }

  /** Whether the way to the scope `count` levels outward leaves a component. */
  leavesComponent(count: number): boolean {
    let scope: Scope | undefined = this as Scope;
    for (let left = count; left > 0 && scope !== undefined; left--) {
      if (scope.kind === "component") return true;
      scope = scope.parent;
    }
    return false;
  }

  /** The side of imports or of exports. */
  side(direction: Side["direction"]): Side {
    return direction === "import" ? this.imports : this.exports;
  }
}
