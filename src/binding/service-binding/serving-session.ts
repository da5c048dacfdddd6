import type { ProviderSession, SessionLookup, Sessions } from '../sessions/provider-session.ts';
import type { BindingView } from '../stores/views.ts';

/** What a binding's reference to a kubeconfig has come to. */
export function lookupOf(sessions: Sessions, { name, secretRef, unreadable }: BindingView): SessionLookup {
  if (unreadable === undefined) return sessions.lookup(secretRef);
  const message = `APIServiceBinding ${name} cannot be read: ${unreadable}. Nothing is bound by it; correct it, or delete it`;
  return { kind: 'invalid', reason: 'APIServiceBindingInvalid', message };
}

/** The session that serves a reference to a kubeconfig now: its own, or the last good one while the Secret cannot be used. */
export function servingSession(lookup: SessionLookup): ProviderSession | undefined {
  if (lookup.kind === 'session') return lookup.session;
  return lookup.kind === 'invalid' ? lookup.lastGood : undefined;
}
