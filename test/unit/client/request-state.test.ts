import assert from 'node:assert/strict';
import type { KubeObject } from '../../../src/api/object.ts';
import { awaitedDecision } from '../../../src/client/choices.ts';
import { detailsOf } from '../../../src/client/details.ts';
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

interface Case {
  readonly what: string;
  readonly request: KubeObject;
  readonly state: State;
  readonly code?: string;
}

const cases: readonly Case[] = [
  { what: 'without a status', request: object(), state: 'New' },
  {
    what: 'that waits for approvals',
    request: object({
      approval: { state: 'Pending' },
      conditions: [condition('AccessApproved', 'Unknown', 'Pending')],
    }),
    state: 'Pending',
    code: 'Pending',
  },
  { what: 'that waits for its start', request: object({ approval: { state: 'Scheduled' } }), state: 'Scheduled' },
  { what: 'that waits for its claim', request: object({ approval: { state: 'Claimable' } }), state: 'Claimable' },
  {
    what: 'whose pod is not ready',
    request: object({ grant, conditions: [condition('AccessResourcesReady', 'False', 'NotYetReady')] }),
    state: 'Opening',
    code: 'NotYetReady',
  },
  {
    what: 'whose access was denied while it opened',
    request: object({
      grant,
      conditions: [
        condition('AccessStillValid', 'False', 'Denied'),
        condition('AccessResourcesCreated', 'False', 'PlanChanged'),
      ],
      ended: { how: 'Denied', reason: 'PlanChanged' },
    }),
    state: 'Denied',
    code: 'PlanChanged',
  },
  {
    what: 'with open access whose command does not fit the pod',
    request: object({
      grant,
      conditions: [
        condition('AccessResourcesReady', 'True', 'Success'),
        condition('AccessMessage', 'False', 'InvalidAccessCommand'),
      ],
    }),
    state: 'Open',
    code: 'InvalidAccessCommand',
  },
  {
    what: 'whose pod is not ready again, and whose command did not fit it',
    request: object({
      grant,
      conditions: [
        condition('AccessResourcesReady', 'False', 'NotYetReady'),
        condition('AccessMessage', 'False', 'InvalidAccessCommand'),
      ],
    }),
    state: 'Opening',
    code: 'InvalidAccessCommand',
  },
  { what: 'with open access', request: object({ grant, ready: true }), state: 'Open' },
  {
    what: 'that a person denied',
    request: object({
      conditions: [condition('AccessApproved', 'False', 'Denied')],
      ended: { how: 'Denied', reason: 'VoteDenied' },
    }),
    state: 'Denied',
    code: 'VoteDenied',
  },
  {
    what: 'that a rule denied',
    request: object({
      conditions: [condition('AccessResourcesCreated', 'False', 'LimitReached')],
      ended: { how: 'Denied', reason: 'LimitReached' },
    }),
    state: 'Denied',
    code: 'LimitReached',
  },
  {
    what: 'that was approved, but not claimed in time',
    request: object({
      conditions: [condition('AccessApproved', 'False', 'NotClaimed')],
      ended: { how: 'Denied', reason: 'NotClaimed' },
    }),
    state: 'Denied',
    code: 'NotClaimed',
  },
  {
    what: 'that expired',
    request: object({
      grant,
      conditions: [condition('AccessStillValid', 'False', 'Shortened')],
      ended: { how: 'Expired', reason: 'Shortened' },
    }),
    state: 'Ended',
    code: 'Expired',
  },
  {
    what: 'that is kept after its end',
    request: object({
      grant,
      conditions: [condition('AccessStillValid', 'False', 'TargetPodGone')],
      ended: { how: 'Revoked', reason: 'TargetPodGone' },
    }),
    state: 'Ended',
    code: 'Revoked',
  },
  {
    what: 'that was revoked',
    request: object({ grant, ready: true }, { revoked: true }),
    state: 'Ending',
    code: 'Revoked',
  },
  { what: 'that was revoked before a grant', request: object({}, { revoked: true }), state: 'Ended', code: 'Revoked' },
  {
    what: 'that was revoked and closed',
    request: object({ grant, ended: { how: 'Revoked', reason: 'Revoked' } }, { revoked: true }),
    state: 'Ended',
    code: 'Revoked',
  },
  {
    what: 'that is being deleted',
    request: object({ grant, ready: true }, {}, { deletionTimestamp: '2026-11-21T09:00:00Z' }),
    state: 'Ending',
    code: 'Deleted',
  },
];

describe('the state of a request', () => {
  for (const { what, request, state, code = '' } of cases) {
    it(`${what} is ${state}`, () => {
      const found = stateOf(request);
      assert.deepEqual([found.state, found.code], [state, code]);
      const shown = state === 'Ended' ? code : state;
      assert.match(
        detailsOf(request, { program: 'drawbridge', where: '-n payments' }, 0),
        new RegExp(`^State: +${shown}$`, 'm'),
      );
    });
  }

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
