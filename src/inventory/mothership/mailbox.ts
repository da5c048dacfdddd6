export type Task = () => Promise<unknown> | undefined;

export interface MailboxDeps {
  /** What a task has thrown; those after it go on. */
  readonly onError: (error: unknown) => void;
  /** The last task is done with. */
  readonly onEmpty: () => void;
}

/** One task after the other, at once where nothing is to be waited for. */
export class Mailbox {
  readonly #deps: MailboxDeps;
  readonly #tasks: Task[] = [];
  #busy = false;

  constructor(deps: MailboxDeps) {
    this.#deps = deps;
  }

  do(task: Task): void {
    this.#tasks.push(task);
    if (!this.#busy) void this.#drain();
  }

  async #drain(): Promise<void> {
    this.#busy = true;
    for (let task = this.#tasks.shift(); task; task = this.#tasks.shift()) {
      try {
        const going = task();
        if (going) await going;
      } catch (error) {
        this.#deps.onError(error);
      }
    }
    this.#busy = false;
    this.#deps.onEmpty();
  }
}
