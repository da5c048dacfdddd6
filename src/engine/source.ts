/** Options of one emission; merged with what the key already has pending: lowest lane, earliest time, reasons joined. */
export interface EmitOptions {
  /** Priority lane, 0 first. Default: the queue's lowest lane. */
  readonly lane?: number;
  /** Wall-clock instant (epoch ms) before which the key is not handed out. Default: at once. */
  readonly atMs?: number;
  /** Milliseconds of monotonic time before which it is not handed out, whatever becomes of the wall clock. Instead of `atMs`. */
  readonly delayMs?: number;
}

export type Emit = (key: string, reason: string, options?: EmitOptions) => void;

/** Tells a controller which keys to look at. Emissions may repeat and may be spurious; they must never be missing. */
export interface Source {
  readonly name: string;
  /** Starts emitting; resolves once everything that exists at the start has been emitted (a store has synced). Rejects when `signal` aborts first. */
  start(emit: Emit, signal: AbortSignal): Promise<void>;
}
