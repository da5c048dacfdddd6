import assert from 'node:assert/strict';
import type { Right } from '../../../../src/access/policy/template-rights.ts';
import type { Signer } from '../../../../src/access/signing/signer.ts';
import type { TemplateView } from '../../../../src/access/stores/access-views.ts';
import { type AuthorRights, TemplateAuthors } from '../../../../src/access/template/template-authors.ts';
import type { AuthorStamp } from '../../../../src/api/access/template-spec.ts';
import { signerOf } from '../../../support/signers.ts';

const kind = 'PodAccessTemplate';
const author = { username: 'erin', uid: '', groups: ['owners'], time: '2026-11-21T09:00:00Z' };
const createdAtMs = Date.parse('2026-11-21T09:00:01Z');
const { signal } = new AbortController();

describe('whom templates are granted for', () => {
  const signer = signerOf('ours');
  const stampOf = (generation: number, over: Partial<AuthorStamp> = {}): AuthorStamp => ({
    kind,
    namespace: 'payments',
    name: 'shell',
    uid: generation === 1 ? '' : 't-1',
    generation,
    author,
    ...over,
  });

  const view = (signature: string | undefined, over: Partial<TemplateView> = {}, spec: object = {}) =>
    ({
      namespace: 'payments',
      name: 'shell',
      uid: 't-1',
      generation: 1,
      createdAtMs,
      authorSignature: undefined,
      spec: { accessConfig: {}, ...spec, ...(signature === undefined ? {} : { author: { ...author, signature } }) },
      ...over,
    }) as TemplateView;

  const codeOf = async (
    template: TemplateView,
    { lacks = [], trustExisting = false, by = signer }: { lacks?: Right[]; trustExisting?: boolean; by?: Signer } = {},
  ): Promise<string> => {
    const rights = { lacking: () => Promise.resolve(lacks) } as Partial<AuthorRights> as AuthorRights;
    const authors = new TemplateAuthors({ kind, signer: by, rights, trustExisting });
    return (await authors.refusal(template, 60_000, signal))?.code ?? 'none';
  };
  const sign = (stamp: AuthorStamp, by = signer): string => by.sealAuthor(stamp) ?? '';

  it('is who created it, while it is as it was created', async () =>
    assert.equal(await codeOf(view(sign(stampOf(1)))), 'none'));

  it('is who changed it last', async () =>
    assert.equal(await codeOf(view(sign(stampOf(5)), { generation: 5 })), 'none'));

  it('may have been proven under a key that was rotated away since', async () => {
    const signature = sign(stampOf(1), signerOf('an old key'));
    assert.equal(await codeOf(view(signature)), 'AuthorUnknown');
    assert.equal(await codeOf(view(signature, { authorSignature: sign(stampOf(1)) })), 'none');
  });

  const forged: [string, TemplateView][] = [
    ['no author', view(undefined)],
    ['no signature', view('')],
    ['a signature of somebody else', view(sign(stampOf(1), signerOf('theirs')))],
    ['the stamp of another generation', view(sign(stampOf(1)), { generation: 2 })],
    ['the stamp of a later generation', view(sign(stampOf(2)), { generation: 1 })],
    ['the stamp of another template', view(sign(stampOf(1)), { name: 'other' })],
    ['the stamp of another namespace', view(sign(stampOf(1)), { namespace: 'other' })],
    ['the stamp of another template of this name', view(sign(stampOf(5)), { generation: 5, uid: 't-2' })],
    ['the stamp of an earlier template of this name', view(sign(stampOf(1)), { createdAtMs: createdAtMs + 10_000 })],
    ['a stamp from after its creation', view(sign(stampOf(1)), { createdAtMs: createdAtMs - 4000 })],
    ['another author', view(sign(stampOf(1, { author: { ...author, username: 'admin' } })))],
    ['another status', view('', { authorSignature: sign(stampOf(1), signerOf('theirs')) })],
  ];
  for (const [title, template] of forged) {
    it(`is nobody with ${title}`, async () => assert.equal(await codeOf(template), 'AuthorUnknown'));
  }

  it('lacks what it hands out', async () => {
    const lacks: Right[] = [{ verb: 'create', group: '', resource: 'pods', subresource: 'exec' }];
    assert.equal(await codeOf(view(sign(stampOf(1))), { lacks }), 'AuthorLacksRights');
  });

  it('does not matter for templates that name no author, where those are trusted', async () => {
    assert.equal(await codeOf(view(undefined), { trustExisting: true }), 'none');
    assert.equal(await codeOf(view(''), { trustExisting: true }), 'AuthorUnknown');
    const flagged = view(undefined, {}, { allowPrivilegedPod: true });
    assert.equal(await codeOf(flagged, { trustExisting: true }), 'AuthorUnknown');
  });
});
