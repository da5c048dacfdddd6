import type { HttpScript } from '../../../sandbox/http-script.ts';

/** Kills a process right after one of its writes: the API server executes that write but its answer is lost, and no later call gets through. */
export class Fuse {
  #blows: (write: string) => boolean = never;
  #blownBy: string | undefined;

  /** Scripts of the proxies between the process and the API servers. */
  readonly script: HttpScript = {
    onRequest: ({ method, path }) => {
      if (this.#blownBy !== undefined) return 'cut';
      const write = `${method} ${path.split('?')[0]}`;
      if (method === 'GET' || path.includes('/events') || !this.#blows(write)) return 'pass';
      this.#blownBy = write;
      return 'cut-answer';
    },
  };

  /** The write that triggered it, as `PATCH /api/v1/...`; undefined before. */
  get blownBy(): string | undefined {
    return this.#blownBy;
  }

  /** Arms the fuse: it blows at the first write for which `blows` returns true. Reads and Events always pass. */
  set(blows: (write: string) => boolean): void {
    this.#blows = blows;
    this.#blownBy = undefined;
  }

  /** Forwards every call. */
  mend(): void {
    this.set(never);
  }
}

const never = (): boolean => false;
