import type { Source } from '../../engine/source.ts';
import type { Projected, Store, StoreEvent } from '../../kube/store.ts';
import type { ProviderSession, Sessions } from './provider-session.ts';

/** Emits what `keysOf` makes of the events of one store of every session, while the session serves. It waits for no provider. */
export function fromSessions<T extends Projected>(
  name: string,
  sessions: Sessions,
  storeOf: (session: ProviderSession) => Store<T>,
  keysOf: (session: ProviderSession, event: StoreEvent<T>) => Iterable<string>,
): Source {
  return {
    name,
    start(emit, signal) {
      signal.throwIfAborted();
      const followed = new Map<ProviderSession, () => void>();
      const follow = (): void => {
        const now = new Set(sessions.list());
        for (const [session, unsubscribe] of followed) {
          if (now.has(session)) continue;
          followed.delete(session);
          unsubscribe();
        }
        for (const session of now) {
          if (followed.has(session)) continue;
          // Known before its first events arrive, which is at once.
          followed.set(session, () => undefined);
          const unsubscribe = storeOf(session).subscribe((event) => {
            for (const key of keysOf(session, event)) emit(key, name);
          });
          followed.set(session, unsubscribe);
        }
      };
      const unsubscribe = sessions.subscribe(follow);
      signal.addEventListener(
        'abort',
        () => {
          unsubscribe();
          for (const leave of followed.values()) leave();
        },
        { once: true },
      );
      follow();
      return Promise.resolve();
    },
  };
}
