/**
 * Scopes of identifiers: index spaces of a module, locals and labels of a function (specification, 6.1.3). In: symbols.
 * Out: indices, each by one column lookup however deep or large the scope.
 *
 * Invariant: after `clear` or the matching `pop`, a column holds 0 for every symbol, so the columns are reused.
 */
import { grown } from "../base/columns.ts";
import { NO_SYMBOL } from "./symbols.ts";

/** An index space in which each identifier is bound once. */
export class Scope {
  /** The word in `duplicate func`. */
  readonly word: string;
  /** The noun in `unknown function`. */
  readonly noun: string;
  count = 0;
  /** Index + 1 by symbol; 0 for unbound symbols. */
  #indices: Int32Array = new Int32Array(0);
  #bound: number[] = [];

  constructor(word: string, noun: string = word) {
    this.word = word;
    this.noun = noun;
  }

  /** Allocates the next index, bound to `symbol` unless that is NO_SYMBOL; false if the symbol is bound already. */
  declare(symbol: number): boolean {
    const index = this.count++;
    if (symbol === NO_SYMBOL) return true;
    if (symbol >= this.#indices.length) this.#indices = grown(this.#indices, Math.max(64, (symbol + 1) * 2));
    if (this.#indices[symbol] !== 0) return false;
    this.#indices[symbol] = index + 1;
    this.#bound.push(symbol);
    return true;
  }

  /** The index of `symbol`, −1 if it is not bound. */
  find(symbol: number): number {
    return symbol < this.#indices.length ? this.#indices[symbol] - 1 : -1;
  }

  /** Unbinds everything. */
  clear(): void {
    for (const symbol of this.#bound) this.#indices[symbol] = 0;
    this.#bound.length = 0;
    this.count = 0;
  }
}

/** The labels around an instruction; an inner one shadows an outer one of the same name. */
export class LabelScope {
  depth = 0;
  /** Depth (from 1) of the innermost label by symbol, 0 for none. */
  #depths: Int32Array = new Int32Array(0);
  #symbols: Int32Array = new Int32Array(64);
  /** The previous entry of #depths. */
  #hidden: Int32Array = new Int32Array(64);

  push(symbol: number): void {
    const at = this.depth++;
    if (at === this.#symbols.length) {
      this.#symbols = grown(this.#symbols, at * 2);
      this.#hidden = grown(this.#hidden, at * 2);
    }
    this.#symbols[at] = symbol;
    if (symbol === NO_SYMBOL) return;
    if (symbol >= this.#depths.length) this.#depths = grown(this.#depths, Math.max(64, (symbol + 1) * 2));
    this.#hidden[at] = this.#depths[symbol];
    this.#depths[symbol] = this.depth;
  }

  pop(): void {
    const at = --this.depth;
    const symbol = this.#symbols[at];
    if (symbol !== NO_SYMBOL) this.#depths[symbol] = this.#hidden[at];
  }

  /** The symbol of the innermost label. */
  get top(): number {
    return this.#symbols[this.depth - 1];
  }

  /** The number of labels between this place and the one named `symbol`, −1 if there is none. */
  find(symbol: number): number {
    const depth = symbol < this.#depths.length ? this.#depths[symbol] : 0;
    return depth === 0 ? -1 : this.depth - depth;
  }

  clear(): void {
    while (this.depth > 0) this.pop();
  }
}
