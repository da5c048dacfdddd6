import type { SecretKeyRef } from '../../api/binding/secret-key-ref.ts';
import { keyOf, nameOf } from '../../api/object.ts';
import { Listeners } from '../../kit/listeners.ts';
import type { KubeconfigProblem } from './kubeconfig.ts';
import type { OpenSession } from './open-session.ts';
import type { Heartbeat, ProviderSession, SessionLookup, Sessions } from './provider-session.ts';

interface SecretKeyState {
  session: OpenSession | undefined;
  /** The Secret's content cannot be used; `session` is that of an earlier content. */
  problem: KubeconfigProblem | undefined;
}

/** Only the session reconciler assigns sessions. */
export class SessionRegistry implements Sessions {
  /** By `namespace/name` of the Secret, then by key. */
  readonly #states = new Map<string, Map<string, SecretKeyState>>();
  readonly #heartbeats = new WeakMap<ProviderSession, Heartbeat>();
  readonly #listeners = new Listeners<string>();

  lookup(ref: SecretKeyRef): SessionLookup {
    const state = this.#states.get(keyOf(ref))?.get(ref.key);
    if (!state) return { kind: 'pending' };
    const { session, problem } = state;
    if (problem) return { kind: 'invalid', ...problem, ...(session ? { lastGood: session } : {}) };
    return session ? { kind: 'session', session } : { kind: 'pending' };
  }

  list(): Set<OpenSession> {
    const sessions = new Set<OpenSession>();
    for (const { session } of this.#all()) if (session) sessions.add(session);
    return sessions;
  }

  secretsOf(session: ProviderSession): Set<string> {
    return new Set(this.refsOf(session).map(keyOf));
  }

  refsOf(session: ProviderSession): SecretKeyRef[] {
    const refs: SecretKeyRef[] = [];
    for (const [secret, states] of this.#states) {
      const { namespace = '', name } = nameOf(secret);
      for (const [key, state] of states) if (state.session === session) refs.push({ namespace, name, key });
    }
    return refs;
  }

  heartbeat(session: ProviderSession): Heartbeat | undefined {
    return this.#heartbeats.get(session);
  }

  subscribe(listener: (secret: string) => void): () => void {
    return this.#listeners.add(listener);
  }

  /** It may be the session of an earlier content of the Secret. */
  serving(ref: SecretKeyRef): OpenSession | undefined {
    return this.#states.get(keyOf(ref))?.get(ref.key)?.session;
  }

  serve(ref: SecretKeyRef, session: OpenSession): void {
    const state = this.#stateOf(ref);
    if (state.session === session && !state.problem) return;
    state.session = session;
    state.problem = undefined;
    this.notifySecret(keyOf(ref));
  }

  /** The session stays. */
  fail(ref: SecretKeyRef, problem: KubeconfigProblem): void {
    const state = this.#stateOf(ref);
    if (state.problem?.reason === problem.reason && state.problem.message === problem.message) return;
    state.problem = problem;
    this.notifySecret(keyOf(ref));
  }

  /** Returns the sessions of the removed keys. */
  forget(secret: string, isUnused: (key: string) => boolean): OpenSession[] {
    const states = this.#states.get(secret);
    const forgotten = [...(states ?? [])].filter(([key]) => isUnused(key));
    for (const [key] of forgotten) states?.delete(key);
    if (states?.size === 0) this.#states.delete(secret);
    if (forgotten.length > 0) this.notifySecret(secret);
    return forgotten.flatMap(([, { session }]) => session ?? []);
  }

  forgetAll(): void {
    const secrets = [...this.#states.keys()];
    this.#states.clear();
    for (const secret of secrets) this.notifySecret(secret);
  }

  recordHeartbeat(session: ProviderSession, heartbeat: Heartbeat): void {
    const before = this.#heartbeats.get(session);
    this.#heartbeats.set(session, heartbeat);
    if (before?.ok === heartbeat.ok && (before.ok || heartbeat.ok || before.message === heartbeat.message)) return;
    this.notifyChanged(session);
  }

  /** The Secret has changed; its lookup may still be the same. */
  notifySecret(secret: string): void {
    this.#listeners.notify(secret);
  }

  /** State, refused watches, uid of the cluster namespace, or heartbeat. */
  notifyChanged(session: ProviderSession): void {
    for (const secret of this.secretsOf(session)) this.notifySecret(secret);
  }

  #stateOf(ref: SecretKeyRef): SecretKeyState {
    const secret = keyOf(ref);
    const states = this.#states.get(secret) ?? new Map<string, SecretKeyState>();
    this.#states.set(secret, states);
    const state = states.get(ref.key) ?? { session: undefined, problem: undefined };
    states.set(ref.key, state);
    return state;
  }

  *#all(): Iterable<SecretKeyState> {
    for (const states of this.#states.values()) yield* states.values();
  }
}
