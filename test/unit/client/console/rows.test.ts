import assert from 'node:assert/strict';
import { requestRow, sessionRow, withDecision } from '../../../../src/client/console/rows.ts';
import type { RequestRow } from '../../../../src/client/console/wire.ts';
import { request, template } from '../objects.ts';

const connection = { program: 'drawbridge', where: '-n payments', kubectlFlags: ['--context=one'] };
const nowMs = Date.parse('2026-11-21T09:00:00Z');
const rowOf = (...fields: Parameters<typeof request>): RequestRow => requestRow(request(...fields), connection, nowMs);
const grant = {
  expiresAt: '2026-11-21T10:00:00Z',
  rules: [{ apiGroups: [''], resources: ['pods/exec'], verbs: ['create'], resourceNames: ['a-access'] }],
};
const open = { grant, podName: 'a-access', ready: true };

const cases: readonly (readonly [what: string, row: RequestRow, expected: Partial<RequestRow>])[] = [
  [
    'has the names, and whose it is',
    rowOf('a', {}, { reason: 'INC-42' }, { creationTimestamp: '2026-11-21T08:00:00Z' }),
    {
      key: 'payments/PodAccessRequest/a',
      namespace: 'payments',
      name: 'a',
      type: 'pod',
      template: 'shell',
      requester: 'alice',
      reason: 'INC-42',
      link: '',
      createdMs: nowMs - 3_600_000,
    },
  ],
  [
    'that waits says for what, and until when',
    rowOf('a', {
      approval: { state: 'Pending', due: '2026-11-21T09:30:00Z', all: [{ name: 'peer', have: 0, need: 1 }] },
    }),
    { state: 'Waiting', final: false, about: 'Access', approvals: ['peer: 0 of 1'], decideByMs: nowMs + 1_800_000 },
  ],
  [
    'that is planned says when it starts',
    rowOf('a', { approval: { state: 'Scheduled' } }, { startAt: '2026-11-21T20:00:00Z', duration: '30m' }),
    { startsMs: Date.parse('2026-11-21T20:00:00Z'), duration: '30m', decideByMs: undefined },
  ],
  [
    'that its requester must start is claimable',
    rowOf('a', { approval: { state: 'Claimable', due: '2026-11-21T11:00:00Z' } }),
    { claimable: true, about: '', decideByMs: nowMs + 7_200_000 },
  ],
  [
    'that was claimed is not claimable again',
    rowOf('a', { approval: { state: 'Claimable' } }, { claimed: true }),
    { claimable: false },
  ],
  [
    'that is open says how to enter, and until when',
    rowOf('a', open, {}, { creationTimestamp: '2026-11-21T08:00:00Z' }),
    {
      state: 'Open',
      pod: 'a-access',
      use: 'kubectl --context=one exec -ti -n payments a-access -- /bin/sh',
      startsMs: nowMs - 3_600_000,
      endsMs: nowMs + 3_600_000,
      extendable: true,
    },
  ],
  [
    'whose extension waits cannot be extended again',
    rowOf('a', { ...open, extensions: [{ by: '5m', state: 'Pending' }] }, { extensions: [{ by: '5m' }] }),
    { about: 'Extension-1', duration: '5m more', extendable: false, decideByMs: nowMs + 3_600_000 },
  ],
  [
    'of an emergency waits for its review, and is not extendable',
    rowOf('a', { ...open, approval: { state: 'ReviewOwed' } }, { emergency: true }),
    { emergency: true, about: 'Review', extendable: false },
  ],
  [
    'that was denied says why, and is final',
    rowOf('a', {
      ended: { how: 'Denied', reason: 'NotInGroup', at: '2026-11-21T09:00:00Z' },
      conditions: [{ type: 'Ready', status: 'False', reason: 'NotInGroup', message: 'not in a group' }],
    }),
    { state: 'Denied', final: true, use: '', extendable: false },
  ],
  [
    'links https',
    rowOf('a', { reasonLink: 'https://tickets.example/INC-42' }),
    { link: 'https://tickets.example/INC-42' },
  ],
  ...['javascript:alert(1)', 'http://tickets.example', 'HTTPS:', ' data:text/html,x', '//x'].map(
    (reasonLink) => [`does not link ${reasonLink}`, rowOf('a', { reasonLink }), { link: '' }] as const,
  ),
];

describe('a row of the console', () => {
  for (const [what, row, expected] of cases) {
    it(what, () => {
      const shown = Object.fromEntries(Object.keys(expected).map((field) => [field, row[field as keyof RequestRow]]));
      assert.deepEqual(shown, expected);
    });
  }

  it('says what the user can decide, and for how long it is by the template', () => {
    const waiting = request('a', { approval: { state: 'Pending' } }, { duration: '8h' });
    const row = requestRow(waiting, connection, nowMs);
    const decision = {
      choice: 'approve, deny',
      template: template({ maxDuration: '2h', defaultDuration: '1h' }),
    } as const;
    assert.deepEqual([row.choice, row.duration], ['', '8h']);
    const decided = withDecision(row, waiting, decision, nowMs);
    assert.deepEqual([decided.choice, decided.duration], ['approve, deny', '2h of 8h']);
    assert.equal(withDecision(row, waiting, undefined, nowMs).choice, '');
  });

  it('of a session has what sessions list prints, and its request', () => {
    const spec = {
      user: 'alice',
      pod: 'a-access',
      stream: 'exec',
      tty: true,
      recording: 'Required',
      startedAt: '2026-11-21T09:00:00Z',
      request: { kind: 'PodAccessRequest', name: 'a' },
    };
    const metadata = { name: '0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10', namespace: 'payments' };
    assert.deepEqual(
      sessionRow({ apiVersion: 'access.drawbridge.dev/v1alpha1', kind: 'AccessSession', metadata, spec }),
      {
        key: `payments/${metadata.name}`,
        ...metadata,
        user: 'alice',
        pod: 'a-access',
        container: '',
        stream: 'exec -t',
        startedMs: nowMs,
        request: 'payments/PodAccessRequest/a',
      },
    );
  });
});
