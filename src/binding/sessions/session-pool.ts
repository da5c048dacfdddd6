import type { Kubeconfig } from './kubeconfig.ts';
import { OpenSession, type SessionOptions } from './open-session.ts';

interface Entry {
  readonly session: OpenSession;
  references: number;
}

/** The sessions that are open: one for each server, namespace and credentials, shared by reference count. */
export class SessionPool {
  readonly #options: SessionOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #closing = new Set<Promise<void>>();

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** The session of that kubeconfig, opened if it is not. To be given back once. Throws when it cannot be opened; nothing is left then. */
  acquire(kubeconfig: Kubeconfig): OpenSession {
    const entry = this.#entries.get(kubeconfig.id) ?? {
      session: new OpenSession(kubeconfig, this.#options),
      references: 0,
    };
    this.#entries.set(kubeconfig.id, entry);
    entry.references++;
    return entry.session;
  }

  /** Whether nobody but the caller holds it. */
  isLast(session: OpenSession): boolean {
    return this.#entries.get(session.id)?.references === 1;
  }

  /** Gives it back; the last one to do so closes it. */
  release(session: OpenSession): void {
    const entry = this.#entries.get(session.id);
    if (entry?.session !== session || --entry.references > 0) return;
    this.#entries.delete(session.id);
    this.#close(session);
  }

  /** Ends every session, whoever holds it. */
  releaseAll(): void {
    const sessions = [...this.#entries.values()].map(({ session }) => session);
    this.#entries.clear();
    for (const session of sessions) this.#close(session);
  }

  /** Resolves when every session that was to be closed is. */
  async closed(): Promise<void> {
    await Promise.all(this.#closing);
  }

  #close(session: OpenSession): void {
    const closing = session.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}
