import type { CodeTable } from '../code-table.ts';

/** Denials by what protects requests, templates, and the objects of grants. */
export const policyCodes = {
  FinalizerKept: {
    audience: 'operator',
    meaning: 'Only the server removes its finalizer, once it has revoked the access.',
    remedy: 'Wait. If the request stays, check the log of the leader.',
  },
  StatusReserved: {
    audience: 'anyone',
    meaning: 'Only the server writes statuses, and only the gateway AccessSessions. An ended request gets no grant.',
    remedy: 'Find out which client tries, and why. To end a session, delete its AccessSession.',
  },
  ProbeOnly: {
    audience: 'anyone',
    meaning:
      'The server creates the ConfigMap `drawbridge-probe` only as a dry run, to prove that the policy `drawbridge-access` denies it.',
    remedy: 'Choose another name.',
  },
  ReservedLabel: {
    audience: 'anyone',
    meaning: 'Only the server creates objects with the label `access.drawbridge.dev/request`.',
    remedy: 'Remove the label.',
  },
  GrantKept: {
    audience: 'anyone',
    meaning: 'Objects of a grant cannot change.',
    remedy: 'Find out which client tries, and why. To revoke the access, delete the request.',
  },
  TokenMisused: {
    audience: 'operator',
    meaning: 'A ServiceAccount of drawbridge did what the server or the gateway never does, such as to enter a pod.',
    remedy: 'Find out which client has its token. To revoke it, delete the Pods of the server or the gateway.',
  },
} as const satisfies CodeTable;
