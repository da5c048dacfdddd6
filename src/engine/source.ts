/** If the key is already pending, the more urgent lane and the earlier time count. */
export interface EmitOptions {
  /** 0 is the most urgent. Default: the least urgent. */
  readonly lane?: number;
  /** Epoch ms. Default: now. */
  readonly atMs?: number;
  /** On the monotonic clock. Overrides `atMs`. */
  readonly delayMs?: number;
}

/** `reason` is for logs. */
export type Emit = (key: string, reason: string, options?: EmitOptions) => void;

/** Emits the keys to reconcile. They may repeat and be spurious, but none may be missing. */
export interface Source {
  readonly name: string;
  /**
   * Resolves once its stores have synced and it has emitted each existing key; at once if it waits
   * for no store. Rejects if `signal` aborts or such a store closes first.
   */
  start(emit: Emit, signal: AbortSignal): Promise<void>;
}
