export interface TestFile {
  readonly path: string;
  /** Files of a group share planes and servers, so one process runs as many of them as it can. */
  readonly group: string;
  /** A guess at how long it takes. */
  readonly seconds: number;
}

/** Deals test files out to processes that run at once. A process stays with its group as long as that has files. */
export class FilesByGroup {
  readonly #left = new Map<string, TestFile[]>();
  readonly #processes = new Map<string, number>();

  constructor(files: readonly TestFile[]) {
    for (const file of files.toSorted((a, b) => b.seconds - a.seconds)) {
      this.#left.set(file.group, [...(this.#left.get(file.group) ?? []), file]);
    }
  }

  /** A group for a process that is about to start: the one with the most left to do for each of its processes. */
  join(): string | undefined {
    const share = (group: string): number => {
      const seconds = (this.#left.get(group) ?? []).reduce((sum, file) => sum + file.seconds, 0);
      return seconds / ((this.#processes.get(group) ?? 0) + 1);
    };
    const [best] = [...this.#left.keys()].filter((group) => share(group) > 0).sort((a, b) => share(b) - share(a));
    if (best !== undefined) this.#processes.set(best, (this.#processes.get(best) ?? 0) + 1);
    return best;
  }

  /** Takes the file of the group that takes longest of those left. */
  next(group: string): string | undefined {
    return this.#left.get(group)?.shift()?.path;
  }

  leave(group: string): void {
    this.#processes.set(group, (this.#processes.get(group) ?? 0) - 1);
  }
}
