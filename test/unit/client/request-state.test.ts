import assert from 'node:assert/strict';
import type { KubeObject } from '../../../src/api/object.ts';
import { awaitedDecision } from '../../../src/client/choices.ts';
import { detailsOf } from '../../../src/client/details.ts';
import { remedyOf, type State, stateOf } from '../../../src/client/request-state.ts';

const object = (status?: object, spec: object = {}, metadata: object = {}): KubeObject => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessRequest',
  metadata: { name: 'debug', namespace: 'payments', ...metadata },
  spec: { templateName: 'shell', ...spec },
  ...(status === undefined ? {} : { status }),
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
        condition('Ready', 'False', 'Denied'),
      ],
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
        condition('Ready', 'False', 'InvalidAccessCommand'),
        condition('Stalled', 'True', 'InvalidAccessCommand'),
      ],
    }),
    state: 'Ready',
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
    code: 'NotYetReady',
  },
  { what: 'with open access', request: object({ grant, ready: true }), state: 'Ready' },
  {
    what: 'that a person denied',
    request: object({ conditions: [condition('AccessApproved', 'False', 'Denied')] }),
    state: 'Denied',
    code: 'Denied',
  },
  {
    what: 'that a rule denied',
    request: object({ conditions: [condition('AccessResourcesCreated', 'False', 'LimitReached')] }),
    state: 'Denied',
    code: 'LimitReached',
  },
  {
    what: 'whose Ready condition says Denied',
    request: object({ conditions: [condition('Ready', 'False', 'Denied')], ended: {} }),
    state: 'Denied',
    code: 'Denied',
  },
  {
    what: 'that was approved, but not claimed in time',
    request: object({
      conditions: [condition('AccessApproved', 'False', 'TimedOut'), condition('Ready', 'False', 'Denied')],
      ended: { how: 'Denied', reason: 'NotClaimed' },
    }),
    state: 'Denied',
    code: 'NotClaimed',
  },
  {
    what: 'whose Ready condition says Expired',
    request: object({ grant, conditions: [condition('Ready', 'False', 'Expired')] }),
    state: 'Ended',
    code: 'Expired',
  },
  {
    what: 'that is kept after its end',
    request: object({ grant, conditions: [condition('AccessStillValid', 'False', 'Revoked')] }),
    state: 'Ended',
    code: 'Revoked',
  },
  { what: 'with status.ended', request: object({ grant, ended: { at: 'x' } }), state: 'Ended' },
  {
    what: 'that was revoked',
    request: object({ grant, ready: true }, { revoked: true }),
    state: 'Ending',
    code: 'Revoked',
  },
  { what: 'that was revoked before a grant', request: object({}, { revoked: true }), state: 'Ended', code: 'Revoked' },
  {
    what: 'that was revoked and closed',
    request: object({ grant, ended: { at: 'x' } }, { revoked: true }),
    state: 'Ended',
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
      const shown = code === 'Expired' ? code : state;
      assert.match(detailsOf(request, 0), new RegExp(`^State: +${shown}$`, 'm'));
    });
  }

  it('tells what to do about a denial, by its code or its reason', () => {
    assert.match(remedyOf('LimitReached'), /^Revoke a grant, or wait/);
    assert.equal(remedyOf('TimedOut'), remedyOf('NotApproved'));
    assert.equal(remedyOf('constructor'), '');
    assert.equal(remedyOf('ResourceRefused', 'a quota; ask an administrator'), '');
    assert.match(remedyOf('InvalidPatch', 'a path; correct it'), /^Ask the author of the template/);
    for (const code of ['AuthorLacksRights', 'AuthorUnknown']) {
      assert.equal(
        remedyOf(code, 'may not get pods/log; ask someone'),
        'Ask a user who holds the permissions to update the template, then create a new request.',
      );
    }
    assert.doesNotMatch(remedyOf('TemplateNotReady'), /author/);
  });

  it('tells the requester, and no approver, what to do about access that was not claimed', () => {
    const conditions = [
      condition('AccessApproved', 'False', 'TimedOut', 'the requester did not claim the access'),
      condition('Ready', 'False', 'Denied'),
    ];
    const request = object({ conditions, ended: { how: 'Denied', reason: 'NotClaimed' } });
    const details = detailsOf(request, 0);
    assert.match(
      details,
      /^Denied: +NotClaimed: the requester did not claim the access\nTo do: +Create a new request/m,
    );
    assert.doesNotMatch(details, /approvers/);
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
