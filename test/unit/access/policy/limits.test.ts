import assert from 'node:assert/strict';
import { type LimitUse, limitViolation } from '../../../../src/access/policy/limits.ts';

const use = (over: Partial<LimitUse> = {}): LimitUse => ({ scope: 'user', name: 'alice', limit: 2, open: 1, ...over });

describe('limits on open grants', () => {
  for (const [title, uses] of [
    ['no limit', []],
    ['room', [use()]],
    ['room under every limit', [use(), use({ scope: 'namespace', limit: 10, open: 9 })]],
  ] as const) {
    it(`allow a grant with ${title}`, () => assert.equal(limitViolation(uses), undefined));
  }

  for (const [title, uses, message] of [
    [
      'the last place is taken',
      [use({ open: 2, freeAt: '2026-11-21T10:00:00Z', canMove: true })],
      'user "alice" has 2 open grants, and the limit is 2; wait until 2026-11-21T10:00:00Z, or longer if a holder extends access, or revoke an open request',
    ],
    [
      'the limit was lowered below the open grants',
      [use({ limit: 1, open: 4, freeAt: '2026-11-21T11:00:00Z', canMove: false })],
      'user "alice" has 4 open grants, and the limit is 1; wait until 2026-11-21T11:00:00Z, or revoke an open request',
    ],
    [
      'only the second of two is full',
      [use(), use({ scope: 'template', name: 'shell', limit: 1, open: 1 })],
      'template "shell" has 1 open grant, and the limit is 1',
    ],
  ] as const) {
    it(`deny if ${title}`, () => {
      assert.deepEqual(limitViolation(uses), { code: 'LimitReached', message, status: 403 });
    });
  }
});
