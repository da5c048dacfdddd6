import assert from 'node:assert/strict';
import { tokenUserOf } from '../../../src/kube/token-user.ts';

const user = { username: 'system:serviceaccount:a:b', uid: 'u', groups: ['g'], extra: { k: ['v'] } };
const yes = { authenticated: true, user };

describe('the user of a token', () => {
  const cases: [string, unknown, string[] | undefined, unknown][] = [
    ['one that is good', yes, undefined, user],
    ['one of the audience', { ...yes, audiences: ['mine'] }, ['mine'], user],
    ['one of another audience', { ...yes, audiences: ['theirs'] }, ['mine'], undefined],
    ['one of no audience that is known', yes, ['mine'], undefined],
    ['one that is not good', { authenticated: false, user }, undefined, undefined],
    ['one without a user', { authenticated: true, user: { username: '' } }, undefined, undefined],
    ['one with an invalid authenticated', { authenticated: 'true', user }, undefined, undefined],
    ['nothing', undefined, undefined, undefined],
    [
      'one with little',
      { authenticated: true, user: { username: 'a', extra: { k: 7 } } },
      undefined,
      { username: 'a', uid: '', groups: [], extra: { k: [] } },
    ],
  ];
  for (const [what, status, audiences, expected] of cases) {
    it(`is ${expected ? 'named' : 'nobody'} for ${what}`, () =>
      assert.deepEqual(tokenUserOf(status, audiences), expected));
  }
});
