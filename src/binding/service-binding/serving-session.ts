import type { ProviderSession, SessionLookup } from '../sessions/provider-session.ts';

/** The session that serves a reference to a kubeconfig now: its own, or the last good one while the Secret cannot be used. */
export function servingSession(lookup: SessionLookup): ProviderSession | undefined {
  if (lookup.kind === 'session') return lookup.session;
  return lookup.kind === 'invalid' ? lookup.lastGood : undefined;
}
