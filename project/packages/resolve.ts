/**
 * The resolver: selects one version for each plugin that is required directly or transitively.
 *
 * In: the project's requirements, the locked versions, and releases from a provider, in any order. Out: the
 * chosen releases with the skipped ones and the reasons, or a derivation of the conflict (resolve_errors.ts turns it
 * into text). Ids are decided in code-unit order among those required so far; the locked version is tried first, then
 * the highest. The result is the first solution in that order, independent of the order of the answers. Plugins of one
 * package share its version.
 *
 * The search is PubGrub's (Weizenbaum 2018): incompatibilities, unit propagation, conflict-driven learning. A state of
 * an id is "absent" (bit 0) or one of its candidates (bits 1…), so a term is a bit set and resolution is set algebra.
 */
import { fail, type ProjectError } from "../base/diagnostic.ts";
import { filterReleases, type Skipped } from "./release_filter.ts";
import type { Conflict, Fact, Resolution, ResolveRequest } from "./resolution.ts";
import { explainConflict } from "./resolve_errors.ts";
import type { Release } from "./source.ts";
import { compareVersions, type ParsedVersion, parseVersion, rangeTest, satisfies } from "../base/version.ts";

/** Maximum number of plugins in a graph. */
const MAX_PLUGINS = 512;
/** Maximum number of steps of a search. */
export const MAX_STEPS = 100_000;
/** Maximum number of versions that a search compares with ranges. */
const MAX_COMPARISONS = 1_000_000;

/** Returns the releases of ids; undefined for an unknown id. */
export interface ReleaseProvider {
  load(ids: readonly string[]): Promise<ReadonlyMap<string, readonly Release[] | undefined>>;
}

interface Incompatibility {
  readonly terms: ReadonlyMap<string, bigint>;
  readonly fact?: Fact;
  readonly parents?: readonly [Incompatibility, Incompatibility];
}

interface Assignment {
  readonly id: string;
  readonly mask: bigint;
  readonly before: bigint;
  readonly after: bigint;
  readonly level: number;
  readonly cause?: Incompatibility;
}

/** The search state of an id. */
interface Node {
  readonly candidates: readonly Release[];
  readonly versions: readonly ParsedVersion[];
  readonly full: bigint;
  readonly skipped: readonly Skipped[];
  readonly exists: boolean;
  possible: bigint;
  readonly trail: number[];
  readonly about: Incompatibility[];
}

/** Finds the solution or throws a ProjectError (`resolve.*`). */
export async function resolve(request: ResolveRequest, provider: ReleaseProvider): Promise<Resolution> {
  const outcome = await search(request, provider);
  if ("chosen" in outcome) return outcome;
  throw await explainConflict(request, outcome, (r) => search(r, provider));
}

/** The search without explanation: a resolution or the facts that contradict. */
export async function search(request: ResolveRequest, provider: ReleaseProvider): Promise<Resolution | Conflict> {
  const solver = new Solver(request, provider);
  return await solver.run();
}

class Solver {
  readonly #request: ResolveRequest;
  readonly #provider: ReleaseProvider;
  readonly #nodes = new Map<string, Node>();
  readonly #trail: Assignment[] = [];
  /** Ids with a decided candidate, in the order of decision; each decision opens a level. */
  readonly #decisions: string[] = [];
  readonly #known = new Set<string>();
  #steps = 0;
  #comparisons = 0;

  constructor(request: ResolveRequest, provider: ReleaseProvider) {
    this.#request = request;
    this.#provider = provider;
  }

  async run(): Promise<Resolution | Conflict> {
    const direct = Object.keys(this.#request.requirements).sort();
    await this.#load(direct);
    for (const id of direct) {
      const range = this.#request.requirements[id];
      const node = this.#nodes.get(id)!;
      const fact: Fact = { kind: "project", id, range };
      const inside = this.#fitting(id, range);
      const fresh: Incompatibility[] = [];
      this.#splitPackage(id, inside, fresh);
      const own = { terms: withoutFull([[id, node.full & ~inside]], this.#nodes), fact };
      this.#register(own);
      const conflict = this.#propagate([], [own, ...fresh]);
      if (conflict !== undefined) return this.#conflict(conflict);
    }
    for (;;) {
      const id = this.#nextId();
      if (id === undefined) return this.#solution();
      const node = this.#nodes.get(id)!;
      const bit = lowestBit(node.possible & ~1n);
      const release = node.candidates[bitIndex(bit) - 1];
      if (this.#decisions.length >= MAX_PLUGINS) throw limit(`the graph has more than ${MAX_PLUGINS} plugins`);
      const fresh = await this.#load(Object.keys(release.requires).sort());
      this.#decisions.push(id);
      this.#assign(id, bit, undefined);
      const conflict = this.#propagateAfterDecision(id, release, fresh);
      if (conflict !== undefined) return this.#conflict(conflict);
    }
  }

  /** The smallest id that the project or a decided release requires and that is not decided. */
  #nextId(): string | undefined {
    let best: string | undefined;
    const consider = (id: string): void => {
      if ((best === undefined || id < best) && !this.#decisions.includes(id)) best = id;
    };
    for (const id of Object.keys(this.#request.requirements)) consider(id);
    for (const decided of this.#decisions) {
      for (const id of Object.keys(this.#decided(decided).requires)) consider(id);
    }
    return best;
  }

  #decided(id: string): Release {
    const node = this.#nodes.get(id)!;
    return node.candidates[bitIndex(node.possible) - 1];
  }

  #solution(): Resolution {
    const chosen = new Map<string, Release>();
    const skipped = new Map<string, readonly Skipped[]>();
    for (const id of [...this.#decisions].sort()) {
      const release = this.#decided(id);
      chosen.set(id, release);
      // Report only releases that would have been better than the choice.
      const better = this.#nodes.get(id)!.skipped.filter((s) => compareVersions(s.version, release.version) > 0);
      if (better.length > 0) skipped.set(id, better);
    }
    for (const [id, release] of chosen) {
      const outside = this.#newestOutside(id, release, chosen);
      if (outside !== undefined) skipped.set(id, [outside, ...skipped.get(id) ?? []]);
    }
    return { chosen, skipped, steps: this.#steps };
  }

  /** The newest release of an id, when it is newer than the choice and a range keeps it out. */
  #newestOutside(id: string, choice: Release, chosen: ReadonlyMap<string, Release>): Skipped | undefined {
    const { requirements } = this.#request;
    const own = Object.hasOwn(requirements, id) ? [requirements[id]] : [];
    const ranges = [
      ...own,
      ...[...chosen.values()].flatMap((r) => Object.hasOwn(r.requires, id) ? [r.requires[id]] : []),
    ];
    const stable = this.#nodes.get(id)!.candidates.filter((r) => !r.version.includes("-"));
    const newest = stable.reduce<Release | undefined>(
      (best, r) => best === undefined || compareVersions(r.version, best.version) > 0 ? r : best,
      undefined,
    );
    if (newest === undefined || compareVersions(newest.version, choice.version) <= 0) return undefined;
    const refusing = [...new Set(ranges)].filter((range) => !satisfies(newest.version, range));
    if (refusing.length === 0) return undefined;
    return { version: newest.version, why: "range", reason: `outside of ${refusing.join(" and ")}` };
  }

  /** Loads new ids; returns the incompatibilities that follow for the decided ones. */
  async #load(ids: readonly string[]): Promise<Incompatibility[]> {
    const missing = ids.filter((id) => !this.#nodes.has(id));
    if (missing.length === 0) return [];
    if (this.#nodes.size + missing.length > 4 * MAX_PLUGINS) {
      throw limit(`resolution visited more than ${4 * MAX_PLUGINS} plugins`);
    }
    const answers = await this.#provider.load(missing);
    for (const id of missing) {
      const releases = answers.get(id);
      const { candidates, skipped } = filterReleases(id, releases ?? [], this.#request);
      const full = (1n << BigInt(candidates.length + 1)) - 1n;
      this.#nodes.set(id, {
        candidates,
        versions: candidates.map(({ version }) => parseVersion(version)),
        skipped,
        full,
        exists: releases !== undefined,
        possible: full,
        trail: [],
        about: [],
      });
    }
    const fresh: Incompatibility[] = [];
    for (const id of missing) for (const decided of this.#decisions) this.#sharePackage(decided, id, fresh);
    return fresh;
  }

  /** Plugins of one package share a version: deciding one plugin and another version of the other is incompatible. */
  #sharePackage(decided: string, other: string, fresh: Incompatibility[]): void {
    const node = this.#nodes.get(decided)!;
    const there = this.#nodes.get(other)!;
    const own = node.candidates[0]?.package;
    if (own === undefined || other === decided || there.candidates[0]?.package !== own) return;
    const { version } = this.#decided(decided);
    if (!this.#isNew(`p ${decided} ${version} ${other}`)) return;
    let differs = there.full & ~1n;
    there.candidates.forEach((r, j) => {
      if (r.version === version) differs &= ~(1n << BigInt(j + 1));
    });
    if (differs === 0n) return;
    const fact: Fact = {
      kind: "same-package",
      package: own,
      ids: decided < other ? [decided, other] : [other, decided],
    };
    const incompatibility = { terms: new Map([[decided, node.possible], [other, differs]]), fact };
    this.#register(incompatibility);
    fresh.push(incompatibility);
  }

  /** The same rule for a range: one id inside it and another id of its package outside it are incompatible. */
  #splitPackage(id: string, inside: bigint, fresh: Incompatibility[]): void {
    const node = this.#nodes.get(id)!;
    const own = node.candidates[0]?.package;
    if (own === undefined || inside === 0n) return;
    let versions: Set<string> | undefined;
    for (const [other, there] of this.#nodes) {
      if (other === id || there.candidates[0]?.package !== own) continue;
      versions ??= new Set(
        node.candidates.filter((_, i) => (inside >> BigInt(i + 1) & 1n) === 1n).map((r) => r.version),
      );
      let outside = 0n;
      there.candidates.forEach((r, j) => {
        if (!versions!.has(r.version)) outside |= 1n << BigInt(j + 1);
      });
      if (outside === 0n || !this.#isNew(`s ${id} ${inside} ${other}`)) continue;
      const fact: Fact = { kind: "same-package", package: own, ids: id < other ? [id, other] : [other, id] };
      const incompatibility = { terms: new Map([[id, inside], [other, outside]]), fact };
      this.#register(incompatibility);
      fresh.push(incompatibility);
    }
  }

  /** True the first time; facts hold for the whole search and are added once. */
  #isNew(key: string): boolean {
    if (this.#known.has(key)) return false;
    this.#known.add(key);
    return true;
  }

  /** The candidates of an id within a range, as a set without "absent". */
  #fitting(id: string, range: string): bigint {
    const { versions } = this.#nodes.get(id)!;
    this.#comparisons += versions.length;
    if (this.#comparisons > MAX_COMPARISONS) {
      throw limit(`resolution compared more than ${MAX_COMPARISONS} versions with ranges`);
    }
    const fits = rangeTest(range);
    let set = 0n;
    versions.forEach((version, i) => {
      if (fits(version)) set |= 1n << BigInt(i + 1);
    });
    return set;
  }

  #propagateAfterDecision(id: string, release: Release, fresh: Incompatibility[]): Incompatibility | undefined {
    const node = this.#nodes.get(id)!;
    const changed = [id];
    for (const other of this.#nodes.keys()) this.#sharePackage(id, other, fresh);
    for (const needed of Object.keys(release.requires).sort()) {
      const range = release.requires[needed];
      if (!this.#isNew(`r ${id} ${needed} ${range}`)) continue;
      // All candidates with the same requirement share one incompatibility, so one conflict excludes all of them.
      let same = 0n;
      const versions: string[] = [];
      node.candidates.forEach((other, i) => {
        if (other.requires[needed] !== range) return;
        same |= 1n << BigInt(i + 1);
        versions.push(other.version);
      });
      const target = this.#nodes.get(needed)!;
      const inside = this.#fitting(needed, range);
      const outside = target.full & ~inside;
      this.#splitPackage(needed, inside, fresh);
      const pairs: [string, bigint][] = needed === id ? [[id, same & outside]] : [[id, same], [needed, outside]];
      const terms = withoutFull(pairs, this.#nodes);
      const incompatibility = { terms, fact: { kind: "requires", by: id, versions, id: needed, range } as const };
      fresh.push(incompatibility);
      this.#register(incompatibility);
    }
    return this.#propagate(changed, fresh);
  }

  #register(incompatibility: Incompatibility): void {
    for (const id of incompatibility.terms.keys()) this.#nodes.get(id)!.about.push(incompatibility);
  }

  /** Propagates to a fixed point; returns the incompatibility that proves the problem unsolvable, if one arises. */
  #propagate(changed: string[], fresh: readonly Incompatibility[]): Incompatibility | undefined {
    let pending: readonly Incompatibility[] = fresh;
    for (;;) {
      let conflict: Incompatibility | undefined;
      for (const incompatibility of pending) {
        conflict = this.#apply(incompatibility, changed);
        if (conflict !== undefined) break;
      }
      while (conflict === undefined && changed.length > 0) {
        const about = this.#nodes.get(changed.pop()!)!.about;
        for (let i = about.length - 1; i >= 0 && conflict === undefined; i--) {
          conflict = this.#apply(about[i], changed);
        }
      }
      if (conflict === undefined) return undefined;
      const learned = this.#resolveConflict(conflict);
      if (learned.terms.size === 0) return learned;
      this.#register(learned);
      changed.length = 0;
      pending = [learned];
    }
  }

  /** Unit propagation of one incompatibility; returns it when all its terms hold. */
  #apply(incompatibility: Incompatibility, changed: string[]): Incompatibility | undefined {
    if (++this.#steps > MAX_STEPS) throw limit(`resolution took more than ${MAX_STEPS} steps`);
    let open: string | undefined;
    for (const [id, term] of incompatibility.terms) {
      const { possible } = this.#nodes.get(id)!;
      if ((possible & ~term) === 0n) continue;
      if ((possible & term) === 0n || open !== undefined) return undefined;
      open = id;
    }
    if (open === undefined) return incompatibility;
    const node = this.#nodes.get(open)!;
    this.#assign(open, node.full & ~incompatibility.terms.get(open)!, incompatibility);
    if (!changed.includes(open)) changed.push(open);
    return undefined;
  }

  #assign(id: string, mask: bigint, cause: Incompatibility | undefined): void {
    const node = this.#nodes.get(id)!;
    const before = node.possible;
    const after = before & mask;
    node.possible = after;
    node.trail.push(this.#trail.length);
    const entry = { id, mask, before, after, level: this.#decisions.length };
    this.#trail.push(cause === undefined ? entry : { ...entry, cause });
  }

  /** Walks back to the reason of a conflict, learns it, and undoes the decisions that it makes impossible. */
  #resolveConflict(conflict: Incompatibility): Incompatibility {
    let current = conflict;
    for (;;) {
      if (current.terms.size === 0) return current;
      let last = -1;
      let previous = -1;
      for (const [id, term] of current.terms) {
        const at = this.#satisfiedAt(id, term);
        if (at > last) {
          previous = last;
          last = at;
        } else if (at > previous) previous = at;
      }
      const satisfier = this.#trail[last];
      const term = current.terms.get(satisfier.id)!;
      // The earlier assignment of the same id that the satisfier depends on to satisfy the term, if any.
      const rest = (satisfier.before & satisfier.mask & ~term) === 0n ? this.#satisfiedWith(satisfier, last, term) : -1;
      const level = Math.max(previous < 0 ? 0 : this.#trail[previous].level, rest < 0 ? 0 : this.#trail[rest].level);
      if (satisfier.cause === undefined || level < satisfier.level) {
        this.#backtrack(level);
        return current;
      }
      current = combine(current, satisfier.cause, satisfier.id, this.#nodes.get(satisfier.id)!.full);
    }
  }

  /** Index of the first assignment after which the term holds. */
  #satisfiedAt(id: string, term: bigint): number {
    const node = this.#nodes.get(id)!;
    for (const index of node.trail) if ((this.#trail[index].after & ~term) === 0n) return index;
    throw new Error("a term of a conflict does not hold");
  }

  /**
   * Index of the first assignment of the same id that, together with the satisfier, makes the term hold; -1 when the
   * satisfier suffices.
   */
  #satisfiedWith(satisfier: Assignment, last: number, term: bigint): number {
    if ((satisfier.mask & this.#nodes.get(satisfier.id)!.full & ~term) === 0n) return -1;
    for (const index of this.#nodes.get(satisfier.id)!.trail) {
      if (index >= last) break;
      if ((this.#trail[index].after & satisfier.mask & ~term) === 0n) return index;
    }
    return -1;
  }

  #backtrack(level: number): void {
    while (this.#trail.length > 0 && this.#trail.at(-1)!.level > level) {
      const entry = this.#trail.pop()!;
      const node = this.#nodes.get(entry.id)!;
      node.possible = entry.before;
      node.trail.pop();
    }
    this.#decisions.length = level;
  }

  #conflict(root: Incompatibility): Conflict {
    const facts: Fact[] = [];
    const seen = new Set<Incompatibility>();
    const open = [root];
    while (open.length > 0) {
      const next = open.pop()!;
      if (seen.has(next)) continue;
      seen.add(next);
      if (next.fact !== undefined && !facts.includes(next.fact)) facts.push(next.fact);
      if (next.parents !== undefined) open.push(...next.parents);
    }
    return { facts, nodes: this.#nodes, steps: this.#steps };
  }
}

/** Drops the terms that always hold: they carry no information, and a term map never contains one. */
function withoutFull(
  terms: readonly (readonly [string, bigint])[],
  nodes: ReadonlyMap<string, Node>,
): Map<string, bigint> {
  return new Map(terms.filter(([id, term]) => term !== nodes.get(id)!.full));
}

/** The resolvent of two incompatibilities on one id. */
function combine(a: Incompatibility, b: Incompatibility, id: string, full: bigint): Incompatibility {
  const terms = new Map<string, bigint>();
  for (const source of [a, b]) {
    for (const [other, term] of source.terms) {
      if (other === id) continue;
      const known = terms.get(other);
      terms.set(other, known === undefined ? term : known & term);
    }
  }
  const joined = (a.terms.get(id) ?? 0n) | (b.terms.get(id) ?? 0n);
  if (joined !== full) terms.set(id, joined);
  return { terms, parents: [a, b] };
}

function lowestBit(set: bigint): bigint {
  return set & -set;
}

function bitIndex(bit: bigint): number {
  return bit.toString(2).length - 1;
}

function limit(message: string): ProjectError {
  return fail("resolve.limit", message, { help: "narrow the ranges in waft.json" });
}
