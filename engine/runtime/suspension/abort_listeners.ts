/**
 * What calls do when a signal aborts. In: a signal, and what to do. Out: how to forget it again. Invariant: a signal has one listener for all calls
 * that it is given to, since Node warns of a leak when it has many.
 */

/** What waits for one signal. */
interface Waiting {
  readonly actions: Set<() => void>;
  readonly listener: () => void;
}

const WAITING = new WeakMap<AbortSignal, Waiting>();

/** Does `action`, which is no other call's, when `signal` aborts, unless what this returns is called before. */
export function onAbort(signal: AbortSignal, action: () => void): () => void {
  const { actions, listener } = WAITING.get(signal) ?? startWaiting(signal);
  actions.add(action);
  return () => {
    if (!actions.delete(action) || actions.size > 0) return;
    signal.removeEventListener("abort", listener);
    WAITING.delete(signal);
  };
}

function startWaiting(signal: AbortSignal): Waiting {
  const actions = new Set<() => void>();
  const listener = () => {
    for (const action of actions) action();
  };
  const waiting = { actions, listener };
  WAITING.set(signal, waiting);
  signal.addEventListener("abort", listener);
  return waiting;
}
