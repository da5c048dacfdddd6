import assert from 'node:assert/strict';
import type { KubeObject } from '../../../src/api/object.ts';
import { awaitedDecision } from '../../../src/client/choices.ts';
import { detailsOf } from '../../../src/client/details.ts';
import { fields } from '../../../src/client/output.ts';
import { remedyOf, type State, stateOf } from '../../../src/client/request-state.ts';
import { summarized } from '../../support/summarized.ts';

const object = (status?: object, spec: object = {}, metadata: object = {}): KubeObject => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessRequest',
  metadata: { name: 'debug', namespace: 'payments', ...metadata },
  spec: { templateName: 'shell', ...spec },
  ...(status === undefined ? {} : { status: summarized(status) }),
});
const condition = (type: string, status: string, reason: string, message = 'because') => ({
  type,
  status,
  reason,
  message,
});
const grant = { expiresAt: '2026-11-21T09:30:00Z' };
/** A request with this grant, or none, whose condition of this type is false. */
const failed = (given: object | undefined, type: string, reason: string, more: object = {}): KubeObject =>
  object({ ...(given ? { grant: given } : {}), conditions: [condition(type, 'False', reason)], ...more });

type Case = readonly [what: string, request: KubeObject, state: State, code?: string];

const cases: readonly Case[] = [
  ['without a status', object(), 'Waiting'],
  [
    'that waits for approvals',
    object({ approval: { state: 'Pending' }, conditions: [condition('AccessApproved', 'Unknown', 'Pending')] }),
    'Waiting',
    'Pending',
  ],
  ['whose pod is not ready', failed(grant, 'AccessResourcesReady', 'NotYetReady'), 'Open', 'NotYetReady'],
  [
    'whose access was denied while it opened',
    object({
      grant,
      conditions: [
        condition('AccessStillValid', 'False', 'Denied'),
        condition('AccessResourcesCreated', 'False', 'PlanChanged'),
      ],
      ended: { how: 'Denied', reason: 'PlanChanged' },
    }),
    'Denied',
    'PlanChanged',
  ],
  [
    'with open access whose command does not fit the pod',
    object({
      grant,
      conditions: [
        condition('AccessResourcesReady', 'True', 'Success'),
        condition('AccessMessage', 'False', 'InvalidAccessCommand'),
      ],
    }),
    'Open',
    'InvalidAccessCommand',
  ],
  [
    'whose pod is not ready again, and whose command did not fit it',
    object({
      grant,
      conditions: [
        condition('AccessResourcesReady', 'False', 'NotYetReady'),
        condition('AccessMessage', 'False', 'InvalidAccessCommand'),
      ],
    }),
    'Open',
    'InvalidAccessCommand',
  ],
  ['with open access', object({ grant, ready: true }), 'Open'],
  [
    'that a person denied',
    failed(undefined, 'AccessApproved', 'Denied', { ended: { how: 'Denied', reason: 'VoteDenied' } }),
    'Denied',
    'VoteDenied',
  ],
  [
    'that a rule denied',
    failed(undefined, 'AccessResourcesCreated', 'LimitReached', { ended: { how: 'Denied', reason: 'LimitReached' } }),
    'Denied',
    'LimitReached',
  ],
  [
    'that was approved, but not claimed in time',
    failed(undefined, 'AccessApproved', 'NotClaimed', { ended: { how: 'Denied', reason: 'NotClaimed' } }),
    'Denied',
    'NotClaimed',
  ],
  [
    'that expired',
    failed(grant, 'AccessStillValid', 'Shortened', { ended: { how: 'Expired', reason: 'Shortened' } }),
    'Expired',
    'Shortened',
  ],
  [
    'that is kept after its end',
    failed(grant, 'AccessStillValid', 'TargetPodGone', { ended: { how: 'Revoked', reason: 'TargetPodGone' } }),
    'Revoked',
    'TargetPodGone',
  ],
  ['that was revoked', object({ grant, ready: true }, { revoked: true }), 'Ending', 'Revoked'],
  [
    'that the server cannot close',
    object({ grant, ready: true, conditions: [condition('AccessStillValid', 'Unknown', 'ResourceRefused')] }),
    'Ending',
    'ResourceRefused',
  ],
  ['that was revoked before a grant', object({}, { revoked: true }), 'Ending', 'Revoked'],
  [
    'that was revoked and closed',
    object({ grant, ended: { how: 'Revoked', reason: 'Revoked' } }, { revoked: true }),
    'Revoked',
    'Revoked',
  ],
  [
    'that was withdrawn',
    object({ ended: { how: 'Revoked', reason: 'Revoked' } }, { revoked: true }),
    'Withdrawn',
    'Revoked',
  ],
  [
    'that is being deleted',
    object({ grant, ready: true }, {}, { deletionTimestamp: '2026-11-21T09:00:00Z' }),
    'Ending',
    'Deleted',
  ],
];

describe('the state of a request', () => {
  for (const [what, request, state, code = ''] of cases) {
    it(`${what} is ${state}`, () => {
      const found = stateOf(request);
      assert.deepEqual([found.state, found.code], [state, code]);
      assert.match(
        fields(detailsOf(request, { program: 'drawbridge', where: '-n payments', kubectlFlags: [] }, 0)),
        new RegExp(`^State: +${state}$`, 'm'),
      );
    });
  }

  for (const [status, state] of [
    [{ grant, ready: true, children: [{}] }, 'Open'],
    [{ grant, ended: { how: 'Revoked', reason: 'Revoked' } }, 'Revoked'],
    [{ ended: { how: 'Revoked', reason: 'Revoked' } }, 'Withdrawn'],
    [{ ended: { how: 'Denied', reason: 'VoteDenied' } }, 'Denied'],
    [{}, 'Waiting'],
  ] as const) {
    it(`is ${state} for a status that an earlier version wrote`, () => {
      assert.equal(stateOf({ ...object({}), status }).state, state);
    });
  }

  it('has the code of its end, as for a denial', () => {
    const ended = { how: 'Revoked', reason: 'TargetPodGone' };
    assert.equal(stateOf(failed(grant, 'AccessStillValid', 'TargetPodGone', { ended })).why, 'TargetPodGone: because');
  });

  it('tells what to do about a denial, by its code', () => {
    assert.match(remedyOf('LimitReached'), /^Revoke a grant, or create/);
    assert.match(remedyOf('InvalidTemplate'), /^Ask the author of the template/);
    assert.equal(remedyOf('constructor'), '');
  });

  const questions: readonly (readonly [question: string | undefined, request: KubeObject])[] = [
    ['Access', object({ approval: { state: 'Pending' } })],
    ['Review', object({ approval: { state: 'ReviewOwed' }, ended: {} })],
    [
      'Extension-2',
      object(
        { ready: true, extensions: [{ state: 'Granted' }, { state: 'Pending' }] },
        { extensions: [{ by: '5m' }, { by: '5m' }] },
      ),
    ],
    [undefined, object({ ready: true })],
    [undefined, object({ approval: { state: 'Pending' } }, { revoked: true })],
  ];
  for (const [question, request] of questions) {
    it(`asks people about ${question ?? 'nothing'}`, () => assert.equal(awaitedDecision(request), question));
  }
});
