import type { HttpScript } from '../../../sandbox/http-script.ts';

/** Ends a process right after one of its writes: that one is carried out and not answered, and nothing gets through after it. */
export class Fuse {
  #counts: (path: string) => boolean = () => true;
  #left = Number.POSITIVE_INFINITY;
  /** The write that it was. */
  #blownBy: string | undefined;

  /** For each proxy that the process is behind. */
  readonly script: HttpScript = {
    onRequest: (request) => {
      if (this.#blownBy !== undefined) return 'cut';
      const { method, path } = request;
      if (method === 'GET' || path.includes('/events') || !this.#counts(path) || --this.#left > 0) return 'pass';
      this.#blownBy = `${method} ${path.split('?')[0]}`;
      return 'cut-answer';
    },
  };

  get blownBy(): string | undefined {
    return this.#blownBy;
  }

  /** The `count`th write from now on is the last, of those whose path counts. Reads and Events never do. */
  set(count: number, counts: (path: string) => boolean = () => true): void {
    this.#counts = counts;
    this.#left = count;
    this.#blownBy = undefined;
  }

  /** Lets everything through. */
  mend(): void {
    this.set(Number.POSITIVE_INFINITY);
  }
}
