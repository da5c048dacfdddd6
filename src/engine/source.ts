/** Options of one emission. If the key is already pending, the more urgent lane and the earlier time count. */
export interface EmitOptions {
  /** Priority lane; 0 is the most urgent. Default: the least urgent lane. */
  readonly lane?: number;
  /** Wall-clock instant (epoch ms) at which the key becomes due. Default: now. */
  readonly atMs?: number;
  /** Delay in milliseconds, on the monotonic clock. Overrides `atMs`. */
  readonly delayMs?: number;
}

/** The queue keeps the first 8 distinct reasons of a pending key, for logs. */
export type Emit = (key: string, reason: string, options?: EmitOptions) => void;

/** Emits the keys that a controller reconciles. Emissions may repeat and may be spurious, but none may be missing. */
export interface Source {
  readonly name: string;
  /**
   * Starts emitting. A source of one store resolves once the store has synced and it has emitted each existing key. It rejects if `signal`
   * aborts or the store closes first. Sources of hints, intervals, deadlines, or changing sets of stores wait for nothing.
   */
  start(emit: Emit, signal: AbortSignal): Promise<void>;
}
