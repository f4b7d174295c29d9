/**
 * Readiness that the event loop brings about: arrived bytes, accepted connections, ended operations. In: notifications.
 * Out: promises for waiters. Invariant: a wait that has ended leaves no watcher behind.
 */

/** Something that becomes ready in the event loop. */
export interface Readiness {
  readonly kind: "event";
  readonly isReady: boolean;
  /** Calls `wake` whenever it may have become ready, until the returned function is called. */
  watch(wake: () => void): () => void;
}

/** The watchers of something that changes. */
export class Signal {
  readonly #watchers = new Set<() => void>();

  notify(): void {
    for (const wake of [...this.#watchers]) wake();
  }

  watch(wake: () => void): () => void {
    this.#watchers.add(wake);
    return () => this.#watchers.delete(wake);
  }
}

/** Readiness that a condition decides; `notify` reports that it may have changed. */
export class Condition implements Readiness {
  readonly kind = "event";
  readonly #signal = new Signal();
  readonly #test: () => boolean;

  constructor(test: () => boolean) {
    this.#test = test;
  }

  get isReady(): boolean {
    return this.#test();
  }

  notify(): void {
    this.#signal.notify();
  }

  watch(wake: () => void): () => void {
    return this.#signal.watch(wake);
  }
}

/** Runs `action` once `readiness` is ready: now, or later with a promise for its result. */
export function whenReady<T>(readiness: Readiness, action: () => T): T | Promise<T> {
  if (readiness.isReady) return action();
  return new Promise<void>((resolve) => {
    const stop = readiness.watch(() => {
      if (!readiness.isReady) return;
      stop();
      resolve();
    });
  }).then(action);
}

/** Continues with a value, or with that of a promise. */
export function whenThere<T, R>(value: T | Promise<T>, action: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(action) : action(value);
}
