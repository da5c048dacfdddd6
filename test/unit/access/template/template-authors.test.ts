import assert from 'node:assert/strict';
import type { Permission } from '../../../../src/access/policy/template-permissions.ts';
import type { TemplateView } from '../../../../src/access/stores/access-views.ts';
import { type AuthorPermissions, TemplateAuthors } from '../../../../src/access/template/template-authors.ts';

const kind = 'PodAccessTemplate';
const author = { username: 'erin', uid: '', groups: ['owners'], time: '2026-11-21T09:00:00Z' };
const lacks: Permission[] = [{ verb: 'create', group: '', resource: 'pods', subresource: 'exec' }];
const { signal } = new AbortController();

describe('the author of a template', () => {
  const view = (spec: object = {}) =>
    ({
      namespace: 'payments',
      name: 'shell',
      uid: 't-1',
      generation: 1,
      spec: { accessConfig: {}, ...spec },
    }) as TemplateView;
  const violationOf = (spec: object, lacking: Permission[] = [], trustExisting = false) => {
    const permissions = { missing: () => Promise.resolve(lacking) } as Partial<AuthorPermissions> as AuthorPermissions;
    return new TemplateAuthors({ kind, permissions, trustExisting }).violation(view(spec), 60_000, signal);
  };
  const codeOf = async (...given: Parameters<typeof violationOf>): Promise<string | undefined> =>
    (await violationOf(...given))?.code;

  it('holds the permissions that the template grants, or lacks them', async () => {
    assert.equal(await codeOf({ author }), undefined);
    assert.equal(await codeOf({ author }, lacks), 'AuthorLacksRights');
  });

  it('is required, unless templates without an author are trusted and hand out no privilege', async () => {
    assert.equal(await codeOf({}), 'AuthorUnknown');
    assert.equal(await codeOf({}, [], true), undefined);
    assert.equal(await codeOf({ allowPrivilegedPod: true }, [], true), 'AuthorUnknown');
  });

  it('changes by a command that both codes have, because applying the manifest again changes nothing', async () => {
    for (const violation of [await violationOf({ author }, lacks), await violationOf({})])
      assert.match(violation?.message ?? '', /-n \w+ --type=merge -p '\{"spec":\{"author":\{"username":"me"\}\}\}'$/);
  });
});
