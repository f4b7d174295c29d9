/**
 * A scope of component text: the index spaces of a component, component type or instance type by number and name, and
 * the definitions that the parser has emitted. A name that a scope does not define is resolved in the enclosing scopes;
 * if one defines it, the parser emits an outer alias (Explainer, "Alias Definitions").
 */
import type { Alias, Sort, SortIndex } from "../model/definitions.ts";

/** A definition or declaration without its offset, which encoding determines. */
export type Emitted = { readonly kind: string };

const OUTER_SORTS: ReadonlySet<Sort> = new Set(["core module", "core type", "component", "type"]);

export class TextScope {
  readonly kind: "component" | "type";
  readonly id: string | undefined;
  readonly parent: TextScope | undefined;
  readonly emitted: Emitted[] = [];
  /** Exports that definitions declare inline. */
  readonly inlineExports: (Emitted & SortIndex & { readonly name: string })[] = [];
  readonly #counts = new Map<Sort, number>();
  readonly #names = new Map<Sort, Map<string, number>>();

  constructor(kind: "component" | "type", id: string | undefined, parent: TextScope | undefined) {
    this.kind = kind;
    this.id = id;
    this.parent = parent;
  }

  /** Number of entries of an index space. */
  count(sort: Sort): number {
    return this.#counts.get(sort) ?? 0;
  }

  /** Emits a definition that appends one entry to the space of `sort`; returns the entry's index. */
  emit(definition: Emitted, sort: Sort): number {
    this.emitted.push(definition);
    return this.skip(sort);
  }

  /** Appends an entry without a definition of its own. */
  skip(sort: Sort): number {
    const index = this.count(sort);
    this.#counts.set(sort, index + 1);
    return index;
  }

  /** Gives an entry a name; false if the name is taken. */
  bind(sort: Sort, name: string | undefined, index: number): boolean {
    if (name === undefined) return true;
    const names = this.#names.get(sort) ?? new Map<string, number>();
    this.#names.set(sort, names);
    if (names.has(name)) return false;
    names.set(name, index);
    return true;
  }

  /** Names of the entries of a space, by index. */
  names(sort: Sort): ReadonlyMap<number, string> {
    return new Map([...this.#names.get(sort) ?? []].map(([name, index]) => [index, name]));
  }

  /** The index that a name has here. */
  find(sort: Sort, name: string): number | undefined {
    return this.#names.get(sort)?.get(name);
  }

  /**
   * The index that a name has here, after an outer alias for a name of an enclosing scope; undefined if there is none,
   * and "not aliasable" if an enclosing scope has it, but its sort cannot be aliased.
   */
  resolve(sort: Sort, name: string): number | undefined | "not aliasable" {
    const own = this.find(sort, name);
    if (own !== undefined) return own;
    let count = 0;
    for (let scope = this.parent; scope !== undefined; scope = scope.parent) {
      count++;
      const index = scope.find(sort, name);
      if (index === undefined) continue;
      if (!OUTER_SORTS.has(sort)) return "not aliasable";
      const alias: Alias = { kind: "outer", sort, count, index };
      const here = this.emit({ kind: "alias", alias } as Emitted, sort);
      this.bind(sort, name, here);
      return here;
    }
    return undefined;
  }

  /** Number of scopes outward to the one called `id`. */
  distance(id: string): number | undefined {
    let count = 0;
    for (let scope: TextScope | undefined = this as TextScope; scope !== undefined; scope = scope.parent) {
      if (scope.id === id) return count;
      count++;
    }
    return undefined;
  }
}
