import type { HttpScript } from '../../../sandbox/http-script.ts';

/** Ends a process right after one of its writes: that one is carried out and not answered, and nothing gets through after it. */
export class Fuse {
  #blows: (write: string) => boolean = never;
  #blownBy: string | undefined;

  /** For each proxy that the process is behind. */
  readonly script: HttpScript = {
    onRequest: ({ method, path }) => {
      if (this.#blownBy !== undefined) return 'cut';
      const write = `${method} ${path.split('?')[0]}`;
      if (method === 'GET' || path.includes('/events') || !this.#blows(write)) return 'pass';
      this.#blownBy = write;
      return 'cut-answer';
    },
  };

  /** The write that it was, as `PATCH /api/v1/...`. */
  get blownBy(): string | undefined {
    return this.#blownBy;
  }

  /** `blows` is asked of each write; neither of reads nor of Events. */
  set(blows: (write: string) => boolean): void {
    this.#blows = blows;
    this.#blownBy = undefined;
  }

  /** Lets everything through. */
  mend(): void {
    this.set(never);
  }
}

const never = (): boolean => false;
