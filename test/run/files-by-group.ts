export interface TestFile {
  readonly path: string;
  /** Files of a group share planes and servers, so one process runs as many of them as it can. */
  readonly group: string;
  /** Estimated duration. */
  readonly seconds: number;
}

/** Work that repays the start of another process of a group with its planes, in seconds. */
const repays = 15;

/** Distributes test files to concurrent processes. A process stays with its group while the group has files. */
export class FilesByGroup {
  readonly #left = new Map<string, TestFile[]>();
  readonly #processes = new Map<string, number>();

  constructor(files: readonly TestFile[]) {
    for (const file of files.toSorted((a, b) => b.seconds - a.seconds)) {
      this.#left.set(file.group, [...(this.#left.get(file.group) ?? []), file]);
    }
  }

  /** The group for a process that starts: the one with the most remaining work for each of its processes, if that repays the start. */
  join(): string | undefined {
    const processes = (group: string): number => this.#processes.get(group) ?? 0;
    const share = (group: string): number => {
      const seconds = (this.#left.get(group) ?? []).reduce((sum, file) => sum + file.seconds, 0);
      return seconds / (processes(group) + 1);
    };
    const [best] = [...this.#left.keys()]
      .filter((group) => share(group) > (processes(group) > 0 ? repays : 0))
      .sort((a, b) => share(b) - share(a));
    if (best !== undefined) this.#processes.set(best, processes(best) + 1);
    return best;
  }

  /** Takes the longest remaining file of the group. */
  next(group: string): string | undefined {
    return this.#left.get(group)?.shift()?.path;
  }

  leave(group: string): void {
    this.#processes.set(group, (this.#processes.get(group) ?? 0) - 1);
  }
}
