import type { Kubeconfig } from './kubeconfig.ts';
import { OpenSession, type SessionOptions } from './open-session.ts';

interface Entry {
  readonly session: OpenSession;
  references: number;
}

/** Sessions with reference counts, one for each server, namespace, and credentials. */
export class SessionPool {
  readonly #options: SessionOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #closing = new Set<Promise<void>>();

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Each `acquire` needs one `release`. Does not wait for the provider. */
  acquire(kubeconfig: Kubeconfig): OpenSession {
    const entry = this.#entries.get(kubeconfig.id) ?? {
      session: new OpenSession(kubeconfig, this.#options),
      references: 0,
    };
    this.#entries.set(kubeconfig.id, entry);
    entry.references++;
    return entry.session;
  }

  isOnlyReference(session: OpenSession): boolean {
    return this.#entries.get(session.id)?.references === 1;
  }

  /** The last release closes the session. */
  release(session: OpenSession): void {
    const entry = this.#entries.get(session.id);
    if (entry?.session !== session || --entry.references > 0) return;
    this.#entries.delete(session.id);
    this.#close(session);
  }

  /** A later `release` has no effect. */
  closeAll(): void {
    const sessions = [...this.#entries.values()].map(({ session }) => session);
    this.#entries.clear();
    for (const session of sessions) this.#close(session);
  }

  async closed(): Promise<void> {
    await Promise.all(this.#closing);
  }

  #close(session: OpenSession): void {
    const closing = session.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}
