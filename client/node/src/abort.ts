// AbortSignals: one listener per signal for all of its calls. With a listener per call, Node would warn of a leak.

const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `cancel` when the signal is aborted; the returned function ends that. */
export function onAbort(signal: AbortSignal | undefined, cancel: () => void): () => void {
  if (!signal) return () => {};
  let cancels = waiting.get(signal);
  if (!cancels) {
    const all = (cancels = new Set<() => void>());
    waiting.set(signal, all);
    signal.addEventListener('abort', () => all.forEach((each) => each()), {once: true});
  }
  cancels.add(cancel);
  return () => void cancels.delete(cancel);
}
