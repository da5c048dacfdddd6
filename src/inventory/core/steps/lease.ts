import type { KeyEvent } from '../step.ts';
import { tokenLifetimeMs, unstoredShare } from '../timing.ts';
import type { Turn } from './turn.ts';

type Of<Kind extends KeyEvent['kind']> = Extract<KeyEvent, { readonly kind: Kind }>;

/** The component goes on by itself and reports: how long it may be silent. */
export function onAccepted(turn: Turn, { leaseMs }: Of<'accepted'>): void {
  if (isOn(turn)) turn.do({ kind: 'endpoint', verdict: 'answered', retryAfterMs: undefined });
  extend(turn, leaseMs, {});
}

/** It is alive. A new credential takes the place of the one before it, which stays good until it ends by itself. */
export function onHeartbeat(turn: Turn, { leaseMs, credential }: Of<'heartbeat'>): void {
  const current = turn.state.stored?.record.credentialId;
  const isRefresh = credential !== undefined && current !== undefined && credential.id !== current;
  const expiresAtMs = turn.context.nowMs + tokenLifetimeMs;
  extend(
    turn,
    leaseMs,
    isRefresh ? { credentialId: credential.id, previousCredential: { id: current, expiresAtMs } } : {},
  );
}

function extend(
  turn: Turn,
  leaseMs: number,
  change: Partial<Pick<NonNullable<Turn['state']['stored']>['record'], 'credentialId' | 'previousCredential'>>,
): void {
  const { stored, lastStart } = turn.state;
  if (!stored || !isOn(turn)) return;
  const { nowMs, monotonicMs, registration } = turn.context;
  const leftMs = (lastStart ?? monotonicMs) + registration.maxRunMs - monotonicMs;
  const grantedMs = Math.max(0, Math.min(leaseMs, leftMs));
  turn.become({ leaseAt: monotonicMs + grantedMs });
  const { record } = stored;
  const gainedMs = nowMs + grantedMs - (record.leaseUntilMs ?? nowMs);
  // What is stored is for whoever leads next, who waits that much longer.
  const isWorthStoring =
    !record.asynchronous || 'credentialId' in change || Math.abs(gainedMs) >= grantedMs * unstoredShare;
  if (isWorthStoring) turn.store({ ...record, ...change, asynchronous: true, leaseUntilMs: nowMs + grantedMs }, stored);
  turn.awaitLease();
}

const isOn = ({ state: { phase } }: Turn): boolean => phase === 'running' || phase === 'draining';
