/**
 * The order in which threads start. In: threads to start, and reports that they have started. Out: calls of `start`, a
 * limited number at once. Invariant: after `close` nothing more starts, so its end waits for few threads however many
 * were asked for.
 */
export class StartQueue<Item> {
  readonly #most: number;
  readonly #start: (item: Item) => void;
  readonly #waiting: Item[] = [];
  #starting = 0;
  #closed: (() => void) | undefined;

  /** `most` items start at once; `start` is called for each. */
  constructor(most: number, start: (item: Item) => void) {
    this.#most = most;
    this.#start = start;
  }

  /** Starts an item as soon as there is room. */
  add(item: Item): void {
    this.#waiting.push(item);
    this.#advance();
  }

  /** Reports that an item has started, or never will. */
  ended(): void {
    this.#starting--;
    this.#advance();
  }

  #advance(): void {
    if (this.#closed !== undefined) {
      if (this.#starting === 0) this.#closed();
      return;
    }
    while (this.#starting < this.#most && this.#waiting.length > 0) {
      this.#starting++;
      this.#start(this.#waiting.shift() as Item);
    }
  }

  /** Forgets the items that wait. Resolves once no item is starting. */
  close(): Promise<void> {
    this.#waiting.length = 0;
    return new Promise((resolve) => {
      this.#closed = resolve;
      this.#advance();
    });
  }
}
