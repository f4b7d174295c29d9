/**
 * Abort signals of calls. In: a signal and an action. Out: a function that cancels the registration. Invariant: each
 * signal has one listener for all calls that use it, because Node warns of a leak if a signal has many.
 */

/** The registrations of one signal. */
interface Waiting {
  readonly actions: Set<() => void>;
  readonly listener: () => void;
}

const WAITING = new WeakMap<AbortSignal, Waiting>();

/**
 * Runs `action`, which must be unique to the call, when `signal` aborts. Returns a function that cancels the
 * registration.
 */
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
  signal.addEventListener("abort", listener);
  WAITING.set(signal, waiting);
  return waiting;
}
