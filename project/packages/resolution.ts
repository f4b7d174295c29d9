/** The resolver's question and its answers: a solution, or a proof that there is none. Types alone (resolve.ts). */
import type { Skipped } from "./release_filter.ts";
import type { Release } from "./source.ts";

/** The problem to solve. */
export interface ResolveRequest {
  readonly requirements: { readonly [id: string]: string };
  /** Locked versions by plugin id; preferred while they fit. */
  readonly locked?: ReadonlyMap<string, string>;
  /** The host, for `engines` and `platforms`: engine name to version. */
  readonly engines?: { readonly [name: string]: string };
  readonly platform?: string;
  /** Choose yanked versions that a requirement names exactly. */
  readonly allowYanked?: boolean;
  /** Releases published after this time are not chosen. */
  readonly notAfterMs?: number;
}

/** The solution. */
export interface Resolution {
  /** In code-unit order of the ids. */
  readonly chosen: ReadonlyMap<string, Release>;
  readonly skipped: ReadonlyMap<string, readonly Skipped[]>;
  readonly steps: number;
}

/** A fact that the search used. */
export type Fact =
  | { readonly kind: "project"; readonly id: string; readonly range: string }
  | {
    readonly kind: "requires";
    readonly by: string;
    readonly versions: readonly string[];
    readonly id: string;
    readonly range: string;
  }
  | { readonly kind: "same-package"; readonly package: string; readonly ids: readonly [string, string] };

/** A proof that there is no solution, as data. */
export interface Conflict {
  readonly steps: number;
  readonly facts: readonly Fact[];
  readonly nodes: ReadonlyMap<
    string,
    { readonly exists: boolean; readonly candidates: readonly Release[]; readonly skipped: readonly Skipped[] }
  >;
}
