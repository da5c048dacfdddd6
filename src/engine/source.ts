/** Options of one emission. They merge with those of the pending key: the lowest lane, the earliest time, all reasons. */
export interface EmitOptions {
  /** Priority lane, 0 first. Default: the lowest lane of the queue. */
  readonly lane?: number;
  /** Wall-clock instant (epoch ms) before which no worker gets the key. Default: at once. */
  readonly atMs?: number;
  /** Milliseconds of monotonic time before which no worker gets the key, even if the wall clock jumps. Instead of `atMs`. */
  readonly delayMs?: number;
}

export type Emit = (key: string, reason: string, options?: EmitOptions) => void;

/** Emits the keys that a controller reconciles. Emissions may repeat and may be spurious, but none may be missing. */
export interface Source {
  readonly name: string;
  /** Starts emitting. Resolves once it has emitted everything that exists (a store has synced); rejects if `signal` aborts first. */
  start(emit: Emit, signal: AbortSignal): Promise<void>;
}
