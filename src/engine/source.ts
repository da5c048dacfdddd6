/** Options of one emission. If the key is already pending, the more urgent lane and the earlier time count. */
export interface EmitOptions {
  /** Priority lane; 0 is the most urgent, the number of lanes of the controller minus 1 the least urgent. Default: the least urgent. */
  readonly lane?: number;
  /** Wall-clock instant (epoch ms) at which the key becomes due. Default: now. */
  readonly atMs?: number;
  /** Delay in milliseconds, on the monotonic clock. Overrides `atMs`. */
  readonly delayMs?: number;
}

/** Passes a key to the queue of the controller. `reason` is for logs; the queue keeps the first 8 distinct reasons of a pending key. */
export type Emit = (key: string, reason: string, options?: EmitOptions) => void;

/** Emits the keys that a controller reconciles. Emissions may repeat and may be spurious, but none may be missing. */
export interface Source {
  readonly name: string;
  /**
   * Starts emitting. Resolves once the stores that the source waits for have synced and, for `fromSubscription` of a store, once it has
   * emitted each existing key. Rejects if `signal` aborts or such a store closes first. A source that waits for no store resolves at once,
   * for example `interval`, `deadlines`, `fromEach` (stores that come and go), and `hintSource` (keys from other code of this process).
   */
  start(emit: Emit, signal: AbortSignal): Promise<void>;
}
