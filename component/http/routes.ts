/**
 * Routes of a server by host and path. In: patterns, and the host and the path of a request. Out: the target of the
 * most specific pattern. Invariant: hosts are compared without case and port, paths as text by segments: nothing is
 * decoded, and no `..` is resolved.
 */

/** A pattern with its target. */
export interface Route<Target> {
  /** A host, or `*.` and the common end of several; undefined: all hosts that no other route names. */
  readonly host?: string;
  /** A path, which stands for itself and for all paths below it. */
  readonly path: string;
  readonly target: Target;
}

/** The routes of one host pattern, the longest path first. */
type Paths<Target> = readonly { readonly prefix: string; readonly target: Target }[];

/** The start of patterns for several hosts. */
const ANY_LABELS = "*.";

/** Finds targets. The host decides first: a host with routes of its own has no others. */
export class RouteTable<Target> {
  readonly #byHost = new Map<string, Paths<Target>>();

  constructor(routes: readonly Route<Target>[]) {
    for (const { host = "", path, target } of routes) {
      const key = host.toLowerCase();
      const paths = [...this.#byHost.get(key) ?? [], { prefix: path.replace(/\/+$/, ""), target }];
      this.#byHost.set(key, paths.sort((a, b) => b.prefix.length - a.prefix.length));
    }
  }

  /** The target for a request; undefined without a route. */
  find(host: string, path: string): Target | undefined {
    const paths = this.#pathsOf(host.toLowerCase());
    return paths?.find(({ prefix }) => path === prefix || path.startsWith(`${prefix}/`) || prefix === "")?.target;
  }

  #pathsOf(host: string): Paths<Target> | undefined {
    const exact = this.#byHost.get(host);
    if (exact !== undefined && !host.startsWith(ANY_LABELS)) return exact;
    // The pattern with most labels comes first.
    for (let dot = host.indexOf("."); dot >= 0; dot = host.indexOf(".", dot + 1)) {
      const found = this.#byHost.get(`*${host.slice(dot)}`);
      if (found !== undefined) return found;
    }
    return this.#byHost.get("");
  }
}
