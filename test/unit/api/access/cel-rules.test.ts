import assert from 'node:assert/strict';
import { execAccessRequestKind, execAccessTemplateKind } from '../../../../src/api/access/exec-access.ts';
import { podAccessRequestKind, podAccessTemplateKind } from '../../../../src/api/access/pod-access.ts';
import { grantIsFinal } from '../../../../src/api/access/status.ts';
import { controllerTargetRef } from '../../../../src/api/access/template-spec.ts';
import { toStructural } from '../../../../src/api/schema/structural-schema.ts';
import { execTemplateManifest, grantOf } from '../../../support/access-objects.ts';
import { celRefusals } from '../../../support/cel-rules.ts';

const badDuration = 'must be a Go duration of at least 1s, such as 30m or 1h30m; write h, m, or s after each number';
const tooLong = (defaultDuration: string, maxDuration: string): string =>
  `${defaultDuration} is longer than maxDuration ${maxDuration}; lower defaultDuration, which is 1h if unset, or raise maxDuration`;

describe('the rules for durations', () => {
  const refusals = (defaultDuration: string, maxDuration: string, more: object = {}): string[] => {
    const accessConfig = { allowedGroups: ['devs'], defaultDuration, maxDuration, ...more };
    return celRefusals(execAccessTemplateKind.structural.spec, execTemplateManifest({ accessConfig }).spec);
  };

  for (const duration of ['1h', '30m', '1h30m', '1.5h', '.5h', '90s', '1ms', '1us', '1ns', '8760h']) {
    it(`accept ${duration}`, () => assert.deepEqual(refusals(duration, duration), []));
  }

  for (const duration of ['', '1d', '1 h', '1h 30m', '5', '0', '0s', '-1h', '+1h', 'h', '1e3s', '1hour', '1H']) {
    it(`reject ${JSON.stringify(duration)}, once for each field`, () =>
      assert.deepEqual(refusals(duration, duration), [badDuration, badDuration]));
  }

  it('compare lengths, not spellings', () => {
    assert.deepEqual(refusals('90m', '1h30m'), []);
    assert.deepEqual(refusals('61m', '1h'), [tooLong('61m', '1h')]);
    assert.deepEqual(refusals('9h', '10h'), []);
  });

  it('do not compare with an invalid duration', () => assert.deepEqual(refusals('2h', '1d'), [badDuration]));

  it('name the bounds of a field that has some, and the units', () => {
    assert.deepEqual(refusals('1h', '1h', { historyTTL: '7d' }), [
      'must be a Go duration from 0s to 168h, such as 1h30m; write h, m, or s after each number',
    ]);
  });
});

describe('the rules for templates', () => {
  const { spec: schema } = podAccessTemplateKind.structural;
  const target = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x' };

  const specs: [string, object, boolean][] = [
    ['a target', { controllerTargetRef: target }, true],
    ['a podSpec', { podSpec: { containers: [] } }, true],
    ['both', { controllerTargetRef: target, podSpec: {} }, true],
    ['neither', {}, false],
  ];
  for (const [title, spec, accepted] of specs) {
    it(`${accepted ? 'accept' : 'reject'} ${title}`, () =>
      assert.equal(celRefusals(schema, spec).length, accepted ? 0 : 1));
  }

  const pairs: [string, string, boolean][] = [
    ['apps/v1', 'Deployment', true],
    ['apps/v1', 'Rollout', false],
    ['argoproj.io/v1alpha1', 'Rollout', true],
    ['argoproj.io/v1alpha1', 'StatefulSet', false],
  ];
  for (const [apiVersion, kind, accepted] of pairs) {
    it(`${accepted ? 'accept' : 'reject'} a ${kind} of ${apiVersion}`, () => {
      const refusals = celRefusals(toStructural(controllerTargetRef), { apiVersion, kind, name: 'x' });
      assert.equal(refusals.length, accepted ? 0 : 1);
    });
  }

  it('require the source of a move or copy in a patch', () => {
    const spec = (operation: object): object => ({
      controllerTargetRef: target,
      controllerTargetMutationConfig: { patchSpecOperations: [operation] },
    });
    assert.equal(celRefusals(schema, spec({ op: 'copy', path: '/spec/a' })).length, 1);
    assert.equal(celRefusals(schema, spec({ op: 'move', path: '/spec/a' })).length, 1);
    assert.deepEqual(celRefusals(schema, spec({ op: 'move', path: '/spec/a', from: '/spec/b' })), []);
    assert.deepEqual(celRefusals(schema, spec({ op: 'remove', path: '/spec/a' })), []);
  });
});

describe('the rule that the spec of a request is immutable', () => {
  const { spec: schema } = execAccessRequestKind.structural;
  const requester = { username: 'alice', uid: '', groups: ['devs'], time: '2026-11-21T09:00:00Z' };
  const stored = { templateName: 'payments-exec', duration: '10m', requester };

  const changes: [string, object, boolean][] = [
    ['no change', structuredClone(stored), true],
    ['another template', { ...stored, templateName: 'other' }, false],
    ['a longer duration', { ...stored, duration: '20m' }, false],
    ['a removed duration', { templateName: 'payments-exec', requester }, false],
    ['an added target pod', { ...stored, targetPod: 'payments-0' }, false],
    ['another requester', { ...stored, requester: { ...requester, username: 'mallory' } }, false],
    ['a requester in one group more', { ...stored, requester: { ...requester, groups: ['devs', 'sre'] } }, false],
    ['a removed requester', { templateName: 'payments-exec', duration: '10m' }, false],
    ['revoked access', { ...stored, revoked: true }, true],
    ['an explicit default', { ...stored, revoked: false }, true],
    ['revoked access and a longer duration', { ...stored, revoked: true, duration: '20m' }, false],
    ['revoked access and a target pod', { ...stored, revoked: true, targetPod: 'payments-0' }, false],
  ];
  for (const [title, changed, accepted] of changes) {
    it(`${accepted ? 'accepts' : 'rejects'} ${title}`, () =>
      assert.equal(celRefusals(schema, changed, stored).length, accepted ? 0 : 1));
  }

  it('covers every field of both kinds', () => {
    for (const { structural } of [podAccessRequestKind, execAccessRequestKind]) {
      const rules = (structural.spec['x-kubernetes-validations'] ?? []).map(({ rule }) => rule).join(' ');
      for (const field of Object.keys(structural.spec.properties ?? {}))
        assert.ok(rules.includes(`self.${field}`), field);
    }
  });

  it('rejects undoing a revocation', () => {
    const revoked = { ...stored, revoked: true };
    assert.deepEqual(celRefusals(schema, revoked, revoked), []);
    for (const changed of [stored, { ...stored, revoked: false }]) {
      assert.equal(celRefusals(schema, changed, revoked).length, 1);
    }
  });

  it('says that the reason of a revoked request cannot change, also to a user who sets both fields', () => {
    const revoked = { ...stored, revoked: true };
    assert.deepEqual(celRefusals(schema, { ...revoked, revokedReason: 'done' }, revoked), [
      'SpecImmutable: revokedReason can be set only in the update that changes revoked to true; once a request is revoked, its reason cannot change',
    ]);
  });

  it('accepts a new request', () => assert.deepEqual(celRefusals(schema, stored), []));
});

describe('the rule that a grant is immutable', () => {
  const schema = { 'x-kubernetes-validations': [grantIsFinal] };
  const granted = { status: { ready: false, grant: grantOf() } };

  const changes: [string, object, object, boolean][] = [
    ['the first grant', {}, granted, true],
    ['the first grant beside a status', { status: { ready: false } }, granted, true],
    ['a status around the same grant', granted, { status: { ready: true, grant: grantOf() } }, true],
    ['a later deadline', granted, { status: { grant: grantOf({ expiresAt: '2027-01-01T00:00:00Z' }) } }, false],
    ['another subject', granted, { status: { grant: grantOf({ subjects: [{ kind: 'Group', name: 'x' }] }) } }, false],
    [
      'an added pod uid',
      granted,
      { status: { grant: grantOf({ pod: { name: 'debug-1a2b3c4d-access', uid: 'x' } }) } },
      false,
    ],
    ['a removed grant', granted, { status: { ready: false } }, false],
    ['a removed status', granted, {}, false],
  ];
  for (const [title, old, changed, accepted] of changes) {
    it(`${accepted ? 'accepts' : 'rejects'} ${title}`, () =>
      assert.equal(celRefusals(schema, changed, old).length, accepted ? 0 : 1));
  }
});
