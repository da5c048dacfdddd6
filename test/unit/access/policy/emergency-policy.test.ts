import assert from 'node:assert/strict';
import {
  decidingGroupsOf,
  durationBoundsOf,
  emergencyViolation,
  overdueViolation,
  reasonConfigOf,
} from '../../../../src/access/policy/emergency-policy.ts';
import type { AccessConfig } from '../../../../src/api/access/template-spec.ts';
import { accessConfig as usual } from '../../../support/access-objects.ts';

const emergency = { groups: ['oncall', 'sre'], maxDuration: '30m', reviewWithin: '72h' };
const config: AccessConfig = { ...usual, emergency };
const overdue = { request: 'debug', requestUid: 'r-1', reviewBy: '2026-11-21T09:00:00Z' };

describe('emergency access', () => {
  it('is for members of its groups', () => {
    assert.equal(emergencyViolation({ emergency: true }, ['sre'], config), undefined);
  });

  for (const [title, spec, groups, template, message] of [
    ['members of the allowed groups', { emergency: true }, ['devs'], config, /none of the groups \[oncall, sre\]/],
    ['people without groups', { emergency: true }, [], config, /none of the groups/],
    ['templates without it', { emergency: true }, ['oncall'], usual, /allows no emergency access/],
    ['a later beginning', { emergency: true, startAt: '2026-11-21T12:00:00Z' }, ['oncall'], config, /starts at once/],
  ] as const) {
    it(`is not for ${title}`, () => {
      const violation = emergencyViolation(spec, groups, template);
      assert.equal(violation?.code, 'EmergencyNotAllowed');
      assert.match(violation?.message ?? '', message);
    });
  }

  for (const [title, groups, template, remedy] of [
    ['a member of the allowed groups', ['devs'], config, 'omit spec.emergency'],
    [
      'a member of the allowed groups, if the template asks for approvals',
      ['devs'],
      { ...config, approvals: { all: [{ name: 'peer', count: 1 }], pendingFor: '1h', serviceAccounts: false } },
      'omit spec.emergency, and wait for approvals',
    ],
    [
      'a user who could not request usual access either',
      ['qa'],
      config,
      'ask an administrator for membership in one of the groups [oncall, sre], or name another template',
    ],
    ['a member of the allowed groups of a template without it', ['devs'], usual, 'omit spec.emergency'],
    [
      'a user whom the template does not allow at all',
      ['qa'],
      usual,
      'name another template, because you are in none of the allowedGroups of this one either',
    ],
  ] as const satisfies readonly (readonly [string, string[], AccessConfig, string])[]) {
    it(`says what to do to ${title}`, () => {
      const violation = emergencyViolation({ emergency: true }, groups, template);
      assert.equal(violation?.message.split('; ').at(-1), remedy);
    });
  }

  it('does not concern other requests', () => {
    assert.equal(emergencyViolation({}, [], usual), undefined);
    assert.equal(emergencyViolation({ emergency: false }, [], config), undefined);
    assert.equal(overdueViolation({}, overdue), undefined);
    assert.equal(durationBoundsOf({}, config), config);
    assert.deepEqual(decidingGroupsOf({}, config), ['devs']);
  });

  it('waits for the review of the one before, if that is overdue', () => {
    assert.equal(overdueViolation({ emergency: true }, undefined), undefined);
    const violation = overdueViolation({ emergency: true }, overdue);
    assert.equal(violation?.code, 'ReviewOverdue');
    assert.match(violation?.message ?? '', /request debug \(uid r-1\) was due for review by 2026-11-21T09:00:00Z;/);
  });

  it('is shorter than other access, and never longer', () => {
    assert.equal(durationBoundsOf({ emergency: true }, config).maxDuration, '30m');
    assert.equal(durationBoundsOf({ emergency: true }, { ...config, maxDuration: '20m' }).maxDuration, '20m');
    assert.equal(durationBoundsOf({ emergency: true }, usual).maxDuration, '24h');
  });

  it('always needs a reason, that of the template or ten characters', () => {
    assert.equal(reasonConfigOf({ emergency: true }, config)?.minLength, 10);
    const ticket = { minLength: 0, pattern: '^INC-' };
    assert.deepEqual(reasonConfigOf({ emergency: true }, { ...config, reason: ticket }), { ...ticket, minLength: 1 });
    assert.equal(reasonConfigOf({}, config), undefined);
    assert.equal(reasonConfigOf({}, { ...config, reason: ticket }), ticket);
  });
});
