import assert from 'node:assert/strict';
import type { Permission } from '../../../../src/access/policy/template-permissions.ts';
import type { Signer } from '../../../../src/access/signing/signer.ts';
import type { TemplateView } from '../../../../src/access/stores/access-views.ts';
import { type AuthorPermissions, TemplateAuthors } from '../../../../src/access/template/template-authors.ts';
import type { AuthorAttestation, TemplateVersion } from '../../../../src/api/access/template-spec.ts';
import { signerOf } from '../../../support/signers.ts';

const kind = 'PodAccessTemplate';
const author = { username: 'erin', uid: '', groups: ['owners'], time: '2026-11-21T09:00:00Z' };
const createdAtMs = Date.parse('2026-11-21T09:00:01Z');
const { signal } = new AbortController();

describe('whom templates are granted for', () => {
  const signer = signerOf('ours');
  const stampOf = (version: TemplateVersion, over: Partial<AuthorAttestation> = {}): AuthorAttestation => ({
    kind,
    namespace: 'payments',
    name: 'shell',
    version,
    author,
    ...over,
  });
  /** As the webhook signs a new one. */
  const first: TemplateVersion = { spec: { accessConfig: {}, author: 'whatever' } };
  const generation = (number: number): TemplateVersion => ({ uid: 't-1', generation: number });

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
    {
      lacks = [],
      trustExisting = false,
      by = signer,
    }: { lacks?: Permission[]; trustExisting?: boolean; by?: Signer } = {},
  ): Promise<string> => {
    const rights = { lacking: () => Promise.resolve(lacks) } as Partial<AuthorPermissions> as AuthorPermissions;
    const authors = new TemplateAuthors({ kind, signer: by, permissions: rights, trustExisting });
    return (await authors.violation(template, 60_000, signal))?.code ?? 'none';
  };
  const sign = (stamp: AuthorAttestation, by = signer): string => by.signAuthor(stamp) ?? '';

  it('is who created it, while it is as it was created', async () =>
    assert.equal(await codeOf(view(sign(stampOf(first)))), 'none'));

  it('is who changed it last', async () =>
    assert.equal(await codeOf(view(sign(stampOf(generation(5))), { generation: 5 })), 'none'));

  it('may have been proven under a key that was rotated away since', async () => {
    const signature = sign(stampOf(first), signerOf('an old key'));
    assert.equal(await codeOf(view(signature)), 'AuthorUnknown');
    assert.equal(await codeOf(view(signature, { authorSignature: sign(stampOf(generation(1))) })), 'none');
  });

  it('stays who created it when a newer CRD adds a default to the spec, once that was proven', async () => {
    const grown = { grown: true };
    assert.equal(await codeOf(view(sign(stampOf(first)), {}, grown)), 'AuthorUnknown');
    const proven = { authorSignature: sign(stampOf(generation(1))) };
    assert.equal(await codeOf(view(sign(stampOf(first)), proven, grown)), 'none');
  });

  it('may have been signed by a server that did not sign the spec of a new one', async () => {
    const before = stampOf({ uid: '', generation: 1 });
    assert.equal(await codeOf(view(sign(before))), 'none');
    assert.equal(await codeOf(view('', { authorSignature: sign(before) })), 'none');
    assert.equal(await codeOf(view(sign(before), { createdAtMs: createdAtMs + 10_000 })), 'AuthorUnknown');
    assert.equal(await codeOf(view(sign(before), { generation: 2 })), 'AuthorUnknown');
  });

  const forged: [string, TemplateView][] = [
    ['no author', view(undefined)],
    ['no signature', view('')],
    ['a signature by another key', view(sign(stampOf(first), signerOf('theirs')))],
    ['the stamp of a new template with another spec', view(sign(stampOf(first)), {}, { allowPrivilegedPod: true })],
    ['the stamp of a new template, later changed', view(sign(stampOf(first)), { generation: 2 })],
    ['the stamp of another generation', view(sign(stampOf(generation(3))), { generation: 2 })],
    ['the stamp of a later generation', view(sign(stampOf(generation(2))), { generation: 1 })],
    ['the stamp of another template', view(sign(stampOf(first)), { name: 'other' })],
    ['the stamp of another namespace', view(sign(stampOf(first)), { namespace: 'other' })],
    ['the stamp of another template of this name', view(sign(stampOf(generation(5))), { generation: 5, uid: 't-2' })],
    [
      'the stamp of an earlier template of this name',
      view(sign(stampOf(first)), { createdAtMs: createdAtMs + 10_000 }),
    ],
    ['a stamp from after its creation', view(sign(stampOf(first)), { createdAtMs: createdAtMs - 4000 })],
    ['another author', view(sign(stampOf(first, { author: { ...author, username: 'admin' } })))],
    ['another status', view('', { authorSignature: sign(stampOf(generation(1)), signerOf('theirs')) })],
    ['the status of another template', view('', { authorSignature: sign(stampOf(generation(1))), uid: 't-2' })],
  ];
  for (const [title, template] of forged) {
    it(`is unknown with ${title}`, async () => assert.equal(await codeOf(template), 'AuthorUnknown'));
  }

  it('lacks what it hands out', async () => {
    const lacks: Permission[] = [{ verb: 'create', group: '', resource: 'pods', subresource: 'exec' }];
    assert.equal(await codeOf(view(sign(stampOf(first))), { lacks }), 'AuthorLacksRights');
  });

  it('does not matter for templates that name no author, where those are trusted', async () => {
    assert.equal(await codeOf(view(undefined), { trustExisting: true }), 'none');
    assert.equal(await codeOf(view(''), { trustExisting: true }), 'AuthorUnknown');
    const flagged = view(undefined, {}, { allowPrivilegedPod: true });
    assert.equal(await codeOf(flagged, { trustExisting: true }), 'AuthorUnknown');
  });
});
