import { createHash } from 'node:crypto';
import type { RequestKind } from '../api/access/kinds.ts';
import type { AccessEvent } from '../api/notify/events.ts';

/**
 * One thing that happened to a request or session. Only these fields leave the cluster: no token,
 * Secret, or command line of a user. Every text may come from an attacker.
 */
export interface Fact {
  /** The same after a restart, and from another replica. */
  readonly id: string;
  readonly event: AccessEvent;
  /** When it happened, epoch ms. */
  readonly atMs: number;
  readonly request: {
    readonly kind: RequestKind;
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
  };
  readonly template: string;
  /** The user name; empty if the request has none. */
  readonly requester: string;
  readonly reason?: string;
  readonly pod?: string;
  /** Such as `exec`, `get pods/log`. */
  readonly permissions: readonly string[];
  /** Of a wait without a grant: how long access is asked for, a Go duration. */
  readonly duration?: string;
  /** When access ends or ended, epoch ms. */
  readonly untilMs?: number;
  /** How many approvals each entry of the template has and needs. For an emergency: what it skipped. */
  readonly approvals: readonly {
    readonly name: string;
    readonly have: number;
    readonly need: number;
    readonly groups: readonly string[];
  }[];
  /** Who voted, and why; only votes that count. */
  readonly votes: readonly {
    readonly voter: string;
    readonly decision: 'Approve' | 'Deny';
    readonly reason?: string;
  }[];
  /** For `denied` and `ended`: `how` and `code` of `status.ended`; `by`: whose vote it was. */
  readonly end?: { readonly how: string; readonly code: string; readonly by?: string };
  /** For `extension.requested` and `extended`. `index` counts from 1; `by` is a Go duration. */
  readonly extension?: { readonly index: number; readonly by: string; readonly reason?: string };
  /** For reviews: until when, epoch ms. */
  readonly reviewByMs?: number;
  readonly session?: {
    readonly name: string;
    readonly user: string;
    readonly stream: string;
    readonly container?: string;
    readonly recording: string;
  };
}

/** `uid`: of the request or session. `n`: which of several, such as the index of an extension. */
export const factId = (uid: string, event: AccessEvent, n = 0): string => hashOf(`${uid}/${event}/${n}`, 22);

export const hashOf = (text: string, length: number): string =>
  createHash('sha256').update(text).digest('base64url').slice(0, length);
