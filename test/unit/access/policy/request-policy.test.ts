import assert from 'node:assert/strict';
import { firstViolation, type Violation } from '../../../../src/access/policy/policy.ts';
import {
  createRequestPolicy,
  grantPolicy,
  isEligibleByGroup,
  type RequestInput,
  type TemplateState,
} from '../../../../src/access/policy/request-policy.ts';
import { updateRequestPolicy } from '../../../../src/access/policy/request-update-policy.ts';
import { accessConfig as usual } from '../../../support/access-objects.ts';

const accessConfig = { ...usual, allowedGroups: ['devs', 'sre'] };
const ref = { apiVersion: 'apps/v1' as const, kind: 'Deployment' as const, name: 'payments' };
const template: TemplateState & { found: true } = {
  found: true,
  uid: 't1',
  generation: 3,
  spec: { accessConfig, controllerTargetRef: ref },
  ready: true,
  observedGeneration: 3,
};
const requester = { username: 'alice', uid: '', groups: ['devs'], time: '2026-11-21T09:00:00Z' };
const input: RequestInput = {
  operation: 'CREATE',
  kind: 'PodAccessRequest',
  namespace: 'payments',
  name: 'req-1',
  templateName: 'payments-shell',
  caller: { username: 'alice', uid: '', groups: ['devs', 'system:authenticated'] },
  spec: { templateName: 'payments-shell', requester },
  askedAtMs: Date.UTC(2026, 10, 21, 9),
  template,
  alreadyHolds: false,
};
const create = (over: Partial<RequestInput>): Violation | undefined =>
  firstViolation(createRequestPolicy, { ...input, ...over });
/** Of a caller whom the requester of the request names. */
const by = (username: string, ...groups: string[]): Partial<RequestInput> => ({
  caller: { username, uid: '', groups },
  ...withSpec({ requester: { ...requester, username, groups } }),
});
const withSpec = (over: object): Partial<RequestInput> => ({ spec: { ...input.spec, ...over } });
const withConfig = (over: object): Pick<RequestInput, 'template'> => ({
  template: { ...template, spec: { ...template.spec, accessConfig: { ...accessConfig, ...over } } },
});
const notReady = { type: 'TargetRefExists', reason: 'NotFound', message: 'Deployment payments is gone' };

describe('request policy on create', () => {
  for (const [title, over] of [
    ['a member of an allowed group', {}],
    ['a caller who already has the permissions', { ...by('alice'), alreadyHolds: true }],
    ['a duration within bounds', withSpec({ duration: '1h30m' })],
    ['a duration beyond the maximum, which is cut later', withSpec({ duration: '100h' })],
    ['a template without conditions', { template: { ...template, ready: undefined, observedGeneration: undefined } }],
    [
      'a template whose failure is of an older generation',
      { template: { ...template, ready: false, observedGeneration: 2 } },
    ],
    ['a target pod', { kind: 'ExecAccessRequest' as const, ...withSpec({ targetPod: 'web-0' }) }],
    [
      'a reason that matches',
      {
        ...withSpec({ reason: 'INC-42 disk full' }),
        ...withConfig({ reason: { minLength: 10, pattern: '^INC-[0-9]+' } }),
      },
    ],
    ['a reason that the template does not ask for', withSpec({ reason: 'x' })],
    [
      'a beginning that the template allows',
      { ...withSpec({ startAt: '2026-11-21T12:00:00Z' }), ...withConfig({ start: { maxAhead: '24h' } }) },
    ],
  ] as const) {
    it(`admits ${title}`, () => assert.equal(create(over), undefined));
  }

  for (const [title, over, code, status, message] of [
    ['no user', by(''), 'MissingIdentity', 403, /no authenticated user/],
    ['the anonymous user', by('system:anonymous', 'devs'), 'MissingIdentity', 403, /log in/],
    [
      'an attestation with a group that the caller is not in',
      withSpec({ requester: { ...requester, groups: ['devs', 'sre'] } }),
      'MissingIdentity',
      403,
      /groups has "sre", and "alice" is not in that group/,
    ],
    ['a request without an attestation', withSpec({ requester: undefined }), 'MissingIdentity', 403, /names no user/],
    [
      'the requester of another user',
      withSpec({ requester: { ...requester, username: 'root' } }),
      'MissingIdentity',
      403,
      /names "root"; it must name "alice"/,
    ],
    [
      'a template that does not exist',
      { template: { found: false } as const },
      'TemplateNotFound',
      404,
      /PodAccessTemplate "payments-shell" does not exist in namespace "payments"; to list those that do: kubectl get/,
    ],
    [
      'the name of a template of another kind',
      { template: { found: false, otherKind: 'ExecAccessTemplate' } as const },
      'TemplateNotFound',
      404,
      /"payments"; template payments-shell is of kind ExecAccessTemplate; create a request of kind ExecAccessRequest$/,
    ],
    [
      'a template known to fail',
      { template: { ...template, ready: false, failing: notReady } },
      'TemplateNotReady',
      403,
      /TargetRefExists is not True: Deployment payments is gone\. Ask the author of the template to correct it$/,
    ],
    ...['AuthorLacksRights', 'AuthorUnknown'].map((reason): [string, Partial<RequestInput>, string, number, RegExp] => [
      `a template with ${reason}`,
      {
        template: {
          ...template,
          ready: false,
          failing: { type: 'AuthorHoldsRights', reason, message: "ask someone who holds them: kubectl patch -p '{}'" },
        },
      },
      'TemplateNotReady',
      403,
      /AuthorHoldsRights is not True: ask someone who holds them: kubectl patch -p '\{\}'$/,
    ]),
    [
      'a caller of other groups',
      by('bob', 'qa'),
      'NotEligible',
      403,
      /^user bob is in \[qa\]; template payments-shell allows \[devs, sre\]; ask for membership in one of these groups, or name another template$/,
    ],
    ['a word as duration', withSpec({ duration: 'long' }), 'InvalidDuration', 422, /spec\.duration .*"30m"/],
    ['no time', withSpec({ duration: '0' }), 'InvalidDuration', 422, /must be above zero.*30m/],
    ['negative time', withSpec({ duration: '-5m' }), 'InvalidDuration', 422, /must be above zero/],
    ['less than a second', withSpec({ duration: '10ms' }), 'InvalidDuration', 422, /at least 1s/],
    [
      'a reason that does not match',
      { ...withSpec({ reason: 'because I can' }), ...withConfig({ reason: { minLength: 1, pattern: '^INC-' } }) },
      'InvalidRequest',
      422,
      /does not match "\^INC-"/,
    ],
    [
      'a beginning that the template does not allow',
      withSpec({ startAt: '2026-11-21T12:00:00Z' }),
      'InvalidRequest',
      403,
      /is set; the template does not allow it; omit it/,
    ],
    [
      'a stored template whose pattern cannot be used',
      { ...withSpec({ reason: 'INC-1' }), ...withConfig({ reason: { minLength: 1, pattern: '(?=x)' } }) },
      'InvalidTemplate',
      422,
      /RE2 syntax/,
    ],
    [
      'a stored template with an unknown time zone',
      withConfig({ start: { windows: [{ days: ['Mon'], from: '08:00', to: '18:00', timeZone: 'Mars/Olympus' }] } }),
      'InvalidTemplate',
      422,
      /IANA name/,
    ],
    [
      'a stored template that gives voters the access',
      withConfig({ grantTo: 'AllowedGroups', approvals: { all: [{ name: 'peer', count: 1 }] } }),
      'InvalidTemplate',
      422,
      /approvals is set/,
    ],
    [
      'a path as target pod',
      { kind: 'ExecAccessRequest' as const, ...withSpec({ targetPod: '../x' }) },
      'InvalidTargetPod',
      422,
      /"\.\.\/x"/,
    ],
  ] as const) {
    it(`denies ${title}`, () => {
      const violation = create(over);
      assert.equal(violation?.code, code);
      assert.equal(violation?.status, status);
      assert.match(violation?.message ?? '', message);
      assert.ok(violation?.field?.startsWith('spec.'));
    });
  }

  it('quotes group names in the message', () => {
    const groups = ['a\nb', ...Array.from({ length: 40 }, (_, i) => `g${i}`)];
    const message = create({ caller: { ...input.caller, groups } })?.message ?? '';
    assert.match(message, /\["a\\nb", g0, .*, and 21 more\]/);
  });

  it('equals the grant policy, without the checks of the attestation, of later fields, and of the limits', () => {
    const { requester: _, 'requester-groups': __, 'later-fields': ___, limits: ____, ...rest } = createRequestPolicy;
    assert.deepEqual(rest, grantPolicy);
  });
});

describe('request policy on update', () => {
  const update = (spec: object, oldSpec: object): Violation | undefined =>
    firstViolation(updateRequestPolicy, {
      ...input,
      operation: 'UPDATE',
      spec: { ...input.spec, ...spec },
      oldSpec: { ...input.spec, ...oldSpec },
      // These do not matter once the request exists.
      caller: { username: 'kube-controller', uid: '', groups: [] },
      template: { found: false },
    });

  for (const [title, spec, oldSpec] of [
    ['an unchanged spec', {}, {}],
    ['fields in any order', { requester: { time: requester.time, groups: ['devs'], uid: '', username: 'alice' } }, {}],
    ['a request that never had a requester', { requester: undefined }, { requester: undefined }],
    ['access that is revoked', { revoked: true }, {}],
    ['access that is no longer revoked', { revoked: true }, { revoked: false }],
    ['access that stays revoked', { revoked: true }, { revoked: true }],
    ['an unset field that is spelled out', { revoked: false }, {}],
    ['access that is revoked with a reason', { revoked: true, revokedReason: 'done' }, {}],
    ['a reason that stays', { revoked: true, revokedReason: 'done' }, { revoked: true, revokedReason: 'done' }],
  ] as const) {
    it(`admits ${title}`, () => assert.equal(update(spec, oldSpec), undefined));
  }

  for (const [title, spec, oldSpec, code, message] of [
    ['another template', { templateName: 'other' }, {}, 'SpecImmutable', /was "payments-shell" .* "other"/],
    [
      'a longer duration',
      { duration: '9h' },
      { duration: '1h' },
      'SpecImmutable',
      /spec\.duration was "1h" and cannot become "9h": only claimed, extensions, and revoked with its reason can change; to extend open access, if the template allows extensions, add an entry to spec\.extensions \(drawbridge extend\); otherwise, create another request$/,
    ],
    ['a duration set later', { duration: '9h' }, {}, 'SpecImmutable', /was unset and cannot become "9h"/],
    ['a removed duration', {}, { duration: '1h' }, 'SpecImmutable', /was "1h" and cannot become unset/],
    [
      'access that is taken again',
      { revoked: false },
      { revoked: true },
      'SpecImmutable',
      /true .* become false: a rev/,
    ],
    ['access that is taken again by leaving it out', {}, { revoked: true }, 'SpecImmutable', /cannot become unset/],
    ['a longer duration of a revoked request', { revoked: true, duration: '9h' }, {}, 'SpecImmutable', /\.duration/],
    ['a reason of a revocation alone', { revokedReason: 'x' }, {}, 'SpecImmutable', /set both together/],
    [
      'a reason after the revocation',
      { revoked: true, revokedReason: 'x' },
      { revoked: true },
      'SpecImmutable',
      /^spec\.revokedReason changes only .*; the request is revoked already, so its reason cannot change$/,
    ],
    [
      'another reason of a revocation',
      { revoked: true, revokedReason: 'x' },
      { revoked: true, revokedReason: 'y' },
      'SpecImmutable',
      /^spec\.revokedReason changes only .*; the request is revoked already, so its reason cannot change$/,
    ],
    ['another reason of the request', { reason: 'x' }, { reason: 'y' }, 'SpecImmutable', /change; create another/],
    ['a beginning set later', { startAt: '2026-11-21T12:00:00Z' }, {}, 'SpecImmutable', /spec\.startAt/],
    ['a target pod set later', { targetPod: 'web-0' }, {}, 'SpecImmutable', /spec\.targetPod/],
    ['another requester', { requester: { ...requester, username: 'bob' } }, {}, 'SpecImmutable', /requester/],
    ['more groups', { requester: { ...requester, groups: ['devs', 'sre'] } }, {}, 'SpecImmutable', /requester/],
    ['a requester set later', {}, { requester: undefined }, 'SpecImmutable', /requester/],
    ['a removed requester', { requester: undefined }, {}, 'SpecImmutable', /requester/],
  ] as const) {
    it(`denies ${title}`, () => {
      const violation = update(spec, oldSpec);
      assert.equal(violation?.code, code);
      assert.match(violation?.message ?? '', message);
    });
  }
});

describe('eligibility by group', () => {
  for (const [groups, allowed, eligible] of [
    [['a', 'b'], ['b'], true],
    [['a'], ['b'], false],
    [[], ['b'], false],
    [['a'], [], false],
    [['a'], ['A'], false],
  ] as const) {
    it(`is ${eligible} for [${groups}] where [${allowed}] are allowed`, () => {
      assert.equal(isEligibleByGroup({ username: 'x', uid: '', groups }, allowed), eligible);
    });
  }
});
