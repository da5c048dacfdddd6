import type { Kubeconfig } from './kubeconfig.ts';
import { OpenSession, type SessionOptions } from './open-session.ts';

/** A session, and how many callers of `acquire` have not released it. */
interface Entry {
  readonly session: OpenSession;
  references: number;
}

/** Open sessions with providers: one for each server, namespace, and credentials, with reference counts. */
export class SessionPool {
  readonly #options: SessionOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #closing = new Set<Promise<void>>();

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /**
   * Returns the session of a kubeconfig, and opens it if needed. Each `acquire` needs one `release`. Does not wait for the provider: the
   * state of the session shows whether the provider is reachable.
   */
  acquire(kubeconfig: Kubeconfig): OpenSession {
    const entry = this.#entries.get(kubeconfig.id) ?? {
      session: new OpenSession(kubeconfig, this.#options),
      references: 0,
    };
    this.#entries.set(kubeconfig.id, entry);
    entry.references++;
    return entry.session;
  }

  /** Whether the caller holds the only reference. */
  isOnlyReference(session: OpenSession): boolean {
    return this.#entries.get(session.id)?.references === 1;
  }

  /** Releases a reference. The last release closes the session. */
  release(session: OpenSession): void {
    const entry = this.#entries.get(session.id);
    if (entry?.session !== session || --entry.references > 0) return;
    this.#entries.delete(session.id);
    this.#close(session);
  }

  /** Closes every session. A later `release` of one of them has no effect. */
  closeAll(): void {
    const sessions = [...this.#entries.values()].map(({ session }) => session);
    this.#entries.clear();
    for (const session of sessions) this.#close(session);
  }

  /** Resolves when all closing sessions are closed. */
  async closed(): Promise<void> {
    await Promise.all(this.#closing);
  }

  #close(session: OpenSession): void {
    const closing = session.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}
